"""The pages for people who come from another tuner: both columns run, and their lines are counted."""

import re
from pathlib import Path

import pytest
from test_docs import ROOT, blocks_of, is_absent, run

OPTUNA, RAY = ROOT / "docs" / "coming_from_optuna.md", ROOT / "docs" / "coming_from_ray_tune.md"
SCRIPTS = {
    f"{page.stem}/{block.title}": block.text
    for page in (OPTUNA, RAY)
    for block in blocks_of(page.read_text(encoding="utf-8"))
    if block.title
}


def lines_of(script: str) -> int:
    return sum(bool(line.strip()) and not line.strip().startswith("#") for line in script.splitlines())


OWN = "coming_from_ray_tune/ray_short.py"
"""Ray's own program: it starts an actor for each of twenty trials, and has nothing of ours in it."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long) if name == OWN else name for name in SCRIPTS]
)
def test_a_column_runs_where_its_library_is_installed(name: str, tmp_path: Path) -> None:
    library = re.match(r"\w+/([a-z]+)_", name)
    assert library
    if is_absent(library[1]):
        pytest.skip(f"{library[1]} is not installed; see make test-integrations")
    path = tmp_path / "column.py"
    path.write_text(SCRIPTS[name], encoding="utf-8")
    assert run(path, folder=tmp_path).strip(), "a column shows its result"


def test_the_page_counts_its_lines() -> None:
    rows = re.findall(r"^\| \[.*?\]\(#.*?\) \| (\d+) \| (\d+) \|$", OPTUNA.read_text(encoding="utf-8"), re.MULTILINE)
    counted = [
        tuple(lines_of(SCRIPTS[f"coming_from_optuna/{library}_{task}.py"]) for library in ("optuna", "farthing"))
        for task in ("minimise", "short", "ask")
    ]
    assert [(int(theirs), int(ours)) for theirs, ours in rows] == counted
    theirs, ours = (lines_of(SCRIPTS[f"coming_from_ray_tune/{name}_short.py"]) for name in ("ray", "farthing"))
    assert f"{theirs} lines against {ours}" in RAY.read_text(encoding="utf-8")
