"""Studies that an earlier version stored open, resume, and suggest the same next trials.

Bit for bit where numbers are rounded alike. Other processors round matrix products differently, so numbers are compared
to four digits there, and to two after a few suggestions: a change of a strategy shows there too.
"""

import json
import lzma
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from data.make_forty_trials import NAMES, ONLINE_NAMES, SUGGESTIONS, rounding, suggested_next

import farthing as ft
from farthing.cli.app import farthing as program
from farthing.testing import check_replay

DATA = Path(__file__).parents[1] / "data"
EXPECTED: dict[str, Any] = json.loads((DATA / "stored_suggestions.json").read_text())
ONLINE = [name for name in EXPECTED if name.startswith("online")]
ROUNDED = "6f8dcd5c4d58fa4c"
"""How numbers were rounded where `former_workers.db.xz` was made: there its suggestions are the same bit for bit."""
NEXT_TEN: dict[str, Any] = json.loads(SUGGESTIONS.read_text())


def is_same(found: Any, expected: Any, tolerance: float = 1e-4, *, of_logs: bool = False) -> bool:
    """Hyperparameters are logarithms: a share of one is a difference of them, also near zero."""
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(
            is_same(found[one], expected[one], tolerance, of_logs="theta" in one) for one in found
        )
    if isinstance(expected, list):
        pairs = zip(found, expected, strict=True)
        return len(found) == len(expected) and all(is_same(*pair, tolerance, of_logs=of_logs) for pair in pairs)
    if isinstance(expected, float):
        return math.isclose(found, expected, rel_tol=tolerance, abs_tol=tolerance if of_logs else tolerance / 100)
    return bool(found == expected)


@pytest.fixture
def storage(tmp_path: Path) -> str:
    """A copy, because opening a study for a suggestion writes to it."""
    shutil.copy(DATA / "stored_studies.db", tmp_path / "stored.db")
    return f"sqlite:///{tmp_path}/stored.db"


@pytest.mark.parametrize("name", [name for name in EXPECTED if name not in ONLINE])
def test_a_stored_study_suggests_what_it_would_have_suggested(name: str, storage: str) -> None:
    study = ft.Study.load(name, storage)
    (trial,) = study.ask(count=1)
    stored = study.trials[trial.number]
    found = {
        "params": dict(trial.params),
        "fidelity": dict(trial.fidelity),
        "resume_from": stored.resume_from,
        "note": stored.note,
    }
    assert is_same(found, EXPECTED[name]), f"{found} instead of {EXPECTED[name]}"
    study.close()


@pytest.mark.parametrize("name", ONLINE)
def test_a_stored_online_run_goes_on_with_the_same_decisions(name: str, storage: str) -> None:
    from data.make_stored_studies import described, online_tuner, play

    expected, tuner = EXPECTED[name], online_tuner(name, storage)
    assert tuner.round > 0, "the run was not taken up"
    decisions = [described(decision) for decision in play(tuner, expected[-1]["round"] - tuner.round)]
    assert is_same(decisions[-len(expected) :], expected), f"{decisions} instead of {expected}"


@pytest.mark.parametrize("name", [*NAMES, *ONLINE_NAMES])
def test_after_forty_trials_it_suggests_the_ten_that_it_would_have_suggested(name: str, tmp_path: Path) -> None:
    how, *expected = NEXT_TEN[name]
    tolerance = 0.0 if how["rounding"] == rounding() else 1e-2  # LogEI's fit differed by .002 on an old processor
    for place, pair in enumerate(zip(suggested_next(name, tmp_path), expected, strict=True)):
        assert is_same(*pair, tolerance), f"{place}: {pair[0]} instead of {pair[1]}"


@pytest.fixture
def former(tmp_path: Path) -> str:
    """Studies with several trials in flight, of before notes became differences."""
    packed = (DATA / "former_workers.db.xz").read_bytes()
    (tmp_path / "former.db").write_bytes(lzma.decompress(packed))
    return f"sqlite:///{tmp_path}/former.db"


def test_notes_that_list_all_that_ran_are_read_as_they_were_written(former: str) -> None:
    with ft.Study.load("eight", former) as study:
        notes = [trial.note["knew"] for trial in study.trials if isinstance(trial.note, dict)]
        assert max(len(knew["running"]) for knew in notes) == 7
        if rounding() == ROUNDED:
            assert check_replay(study) == []


@pytest.mark.parametrize("name", ["haste", "evolution", "categories"])
def test_a_study_that_other_rules_of_haste_decided_opens_and_goes_on(name: str, former: str) -> None:
    with ft.Study.load(name, former) as study:
        known = list(study.trials)
        asked = [study.ask() for _ in range(2)]
        for trial in asked:
            if trial.fidelity:
                trial.report(0.01, epochs=int(trial.fidelity["epochs"]))
                study.tell(trial)
            else:
                study.tell(trial, 0.01)
        assert study.best.value == 0.01
        assert study.trials[: len(known)] == known
        assert len(json.loads(study.export(format="json"))["trials"]) == len(known) + 2
        assert not {trial.number for trial in asked} & set(check_replay(study)), "what is new is by the rules of today"
    shown = CliRunner().invoke(program, ["show", name, "--storage", former])
    assert shown.exit_code == 0, shown.output
    assert f"{len(known) + 2} trials" in shown.output


def test_no_strategy_is_forgotten_or_left_behind() -> None:
    assert sorted(NEXT_TEN) == sorted([*NAMES, *ONLINE_NAMES])
