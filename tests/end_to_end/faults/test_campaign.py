"""The attack suite counts what it does and finds, and the page shows its record."""

import json
import re
from datetime import date
from pathlib import Path

import campaign
import pytest
from campaign import KINDS, Found, recorded, table

PAGE = Path(__file__).parents[3] / "docs" / "reliability.md"


def test_the_page_shows_the_record() -> None:
    assert table(recorded()) in PAGE.read_text(), "print the table by `python tests/end_to_end/faults/campaign.py 0`"


def test_the_page_has_the_day_of_the_record_and_the_faults_that_a_campaign_does() -> None:
    text = PAGE.read_text()
    ended = date.fromisoformat(json.loads(campaign.RECORD.read_text())["ended"])
    kills, cuts, values, on_a_server, damaged = (goal for goal, _ in KINDS.values())
    assert f"The record of {ended:%d %B %Y}".replace(" 0", " ") in text
    assert f"up to {spaced(kills + cuts + values + on_a_server + damaged)} faults" in text
    assert re.findall(r"(\d+ \w+) in the campaign", text) == [f"{kills} kills", f"{cuts} cuts"]
    changes = f"{spaced(values + on_a_server)} changes, every command and endpoint, and {damaged} damaged files"
    assert f"in the campaign {changes}" in text
    assert all(one.faults <= goal for one, (goal, _) in zip(recorded().values(), KINDS.values(), strict=True))


def spaced(number: int) -> str:
    return f"{number:,}".replace(",", " ")


def test_the_table_counts_every_fault_and_all_that_it_broke() -> None:
    lines = table({"power cut": Found(1_200, lost=1), "another": Found(3, orphans=2, stuck=4, unhandled=5)})
    assert lines.splitlines()[2:] == [
        "| power cut | 1 200 | 1 | 0 | 0 | 0 |",
        "| another | 3 | 0 | 2 | 4 | 5 |",
        "| all | 1 203 | 1 | 2 | 4 | 5 |",
    ]


@pytest.mark.filterwarnings("ignore")  # of numbers that are too large to add
@pytest.mark.parametrize("kind", [kind for kind, (_, attack) in KINDS.items() if attack is not campaign.kills])
def test_each_kind_of_fault_is_done(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """`test_kills.py` does the one that is left out."""
    if "PostgreSQL" in kind:
        request.getfixturevalue("postgres")  # which skips where there can be none
    monkeypatch.chdir(tmp_path)
    attack = KINDS[kind][1](tmp_path, 0)
    assert next(attack) == Found(1)
    attack.close()


def test_a_record_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "RECORD", tmp_path / "campaign.json")
    kind = next(iter(KINDS))
    assert recorded()[kind] == Found()
    campaign.keep({kind: Found(3, lost=1)})
    assert recorded()[kind].plus(Found(2)) == Found(5, lost=1)
