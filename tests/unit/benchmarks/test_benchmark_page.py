"""docs/benchmarks says what the committed records say, byte for byte on the pinned versions."""

from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.evidence.figures import LEAST, Line, Panel, draw
from benchmarks.evidence.others import coverage
from benchmarks.evidence.page import DOCS, IMAGES, PAGES, write_pages
from benchmarks.records import MANIFEST, RESULTS
from benchmarks.report import main
from benchmarks.spread import Spread

REPOSITORY = Path(__file__).parents[3]
ADVICE = "Make them again: python -m benchmarks.report"


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages made once more, elsewhere."""
    folder = tmp_path_factory.mktemp("docs")
    write_pages(folder)
    return folder


def texts(docs: Path = DOCS) -> dict[str, str]:
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted((docs / PAGES).glob("*.md"))}


def test_the_pages_say_what_the_committed_records_say(again: Path) -> None:
    made, committed = texts(again), texts()
    assert made.keys() == committed.keys(), "Make them again: python -m benchmarks.report"
    assert [name for name in made if made[name] != committed[name]] == [], (
        "Make them again: python -m benchmarks.report"
    )


def test_the_index_lists_every_page() -> None:
    pages = texts()
    assert [name for name in pages if name != "index" and f"[{name}]({name}.md)" not in pages["index"]] == []


def test_the_figures_come_out_byte_for_byte(again: Path) -> None:
    if f"matplotlib=={version('matplotlib')}" not in (REPOSITORY / "constraints.txt").read_text():
        pytest.skip("another version of matplotlib than the pinned one draws other bytes")
    made, committed = ({path.name: path.read_bytes() for path in (docs / IMAGES).iterdir()} for docs in (again, DOCS))
    assert made.keys() == committed.keys()
    assert [name for name in made if made[name] != committed[name]] == []


def test_every_file_of_records_that_is_reported_is_on_the_page() -> None:
    """All but the records of choices (tuning-…) and of a stage's seconds, which are inputs of another suite."""
    text = "\n".join(texts().values())
    stems = sorted({path.name.partition(".")[0] for path in RESULTS.iterdir() if path.name != MANIFEST})
    names = [name for name in stems if not name.startswith("tuning-") and not name.endswith(("-table", "-quick"))]
    absent = [name for name in names if f"# {name.replace('speed-', 'speed ')}" not in text]
    assert absent == []


@pytest.mark.parametrize("page", sorted(texts()))
def test_a_page_has_one_title_and_skips_no_level(page: str) -> None:
    levels = [line.index(" ") for line in texts()[page].splitlines() if line[:1] == "#"]
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_a_figure_is_the_same_every_time_and_has_no_date(tmp_path: Path) -> None:
    panel = Panel("p", "cost", "regret", (Line("a", (1.0, 2.0), (Spread(0.0, 0.0, 1.0, 3),) * 2),), log_y=True)
    for name in ("one.svg", "two.svg"):
        draw([panel], tmp_path / name)
    one, two = ((tmp_path / name).read_text(encoding="utf-8") for name in ("one.svg", "two.svg"))
    assert one == two
    assert "dc:date" not in one
    assert LEAST > 0.0  # what makes a regret of zero visible on a logarithmic scale


def test_outlooks_say_how_many_gains_were_within_their_interval() -> None:
    records = [{"family": "curves", "inside": one} for one in (1.0, 0.0, 1.0, 1.0)]
    assert coverage(records) == ["Within the interval of 80 %: curves 3 of 4 (75%)."]
    assert coverage([{"family": "curves", "saved": 0.5}]) == []


def test_a_name_that_is_no_suite_is_refused_without_writing_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["nonesuch"])
    assert "invalid choice" in capsys.readouterr().err
