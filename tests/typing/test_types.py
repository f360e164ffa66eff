"""What type checkers tell users: every planted mistake is found, line by line, and no correct use is refused."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
MISTAKES = HERE / "mistakes.py"
CORRECT = HERE / "correct.py"

pytestmark = pytest.mark.timeout(3000)  # a checker that has nothing cached reads all of Farthing first


def marked(path: Path) -> list[int]:
    lines = path.read_text().splitlines()
    return [number for number, line in enumerate(lines, start=1) if line.endswith("# mistake")]


def run(*command: str | Path) -> str:
    return subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True).stdout


def found_by_mypy() -> set[tuple[str, int]]:
    told = run("mypy", "--hide-error-context", MISTAKES, CORRECT)
    assert "checked 2 source files" in told, told
    errors = re.findall(r"^(.+?):(\d+): error:", told, flags=re.MULTILINE)
    return {(Path(file).name, int(line)) for file, line in errors}


def found_by_pyright() -> set[tuple[str, int]]:
    told = json.loads(run("basedpyright", "--outputjson", "--pythonpath", sys.executable, "--project", HERE))
    assert told["summary"]["filesAnalyzed"] == 2, told["summary"]
    errors = [error for error in told["generalDiagnostics"] if error["severity"] == "error"]
    return {(Path(error["file"]).name, error["range"]["start"]["line"] + 1) for error in errors}


@pytest.mark.parametrize("find", [found_by_mypy, found_by_pyright])
def test_a_type_checker_finds_every_planted_mistake_and_nothing_else(find):
    planted = marked(MISTAKES)
    assert len(planted) >= 25
    assert sorted(find()) == [(MISTAKES.name, line) for line in planted]
