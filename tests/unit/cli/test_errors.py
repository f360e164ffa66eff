"""Whatever is wrong: one line with the rule, what came and what to do, and an exit code that is not 0."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from farthing.cli.commands.views import list_studies

STUDY = """
[study]
minimize = "error"
[budget]
trials = 3
[space]
lr = {float = [0.1, 1.0]}
[work]
command = "true {lr}"
"""


def study_file(**replaced: str) -> Callable[[Path], None]:
    """Writes `study.toml` with some words replaced by others."""

    def write(folder: Path) -> None:
        text = STUDY
        for old, new in replaced.items():
            text = text.replace(old, new)
        (folder / "study.toml").write_text(text)

    return write


def corrupt_database(folder: Path) -> None:
    (folder / "corrupt.db").write_bytes(b"SQLite format 3\x00" + b"\x01" * 4096)


def not_a_database(folder: Path) -> None:
    (folder / "notes.db").write_text("milk, eggs\n" * 100)


def foreign_database(folder: Path) -> None:
    connection = sqlite3.connect(folder / "other.db")
    connection.execute("CREATE TABLE recipes (name TEXT)")
    connection.close()


def nothing(folder: Path) -> None:
    """An empty folder."""


CASES = {
    "a missing file": (nothing, ["run", "nowhere.toml"], "'nowhere.toml'", "Check the path"),
    "a typo in TOML": (study_file(trials="trials ="), ["run", "study.toml"], "line 5", "Correct it"),
    "an unknown table": (study_file(budget="bugdet"), ["run", "study.toml"], "'bugdet'", "Did you mean 'budget'?"),
    "reversed bounds": (study_file(**{"0.1, 1.0": "1.0, 0.1"}), ["run", "study.toml"], "Float(1.0, 0.1)", "Swap"),
    "no budget": (study_file(**{"[budget]\ntrials = 3": ""}), ["run", "study.toml"], "got none", "--seconds"),
    "a budget below zero": (
        study_file(),
        ["run", "study.toml", "--seconds", "-1"],
        "-1",
        "Write seconds=1, or leave it out",
    ),
    "a command not found": (study_file(true="no-such-program"), ["run", "study.toml"], "'no-such-program'", "Check"),
    "an unknown field": (
        study_file(**{"{lr}": "{lr} {trail}"}),
        ["run", "study.toml"],
        "{trail}",
        "Did you mean 'trial'?",
    ),
    "a parameter not passed on": (study_file(**{" {lr}": ""}), ["run", "study.toml"], "without {lr}", "Add"),
    "an unknown scheme": (
        study_file(),
        ["run", "study.toml", "--storage", "mysql://me@host/x"],
        "'mysql'",
        "sqlite://",
    ),
    "no database here": (nothing, ["list"], "none in", "--storage"),
    "a missing database": (nothing, ["show", "--storage", "gone.db"], "'gone.db'", "Check the path"),
    "a corrupt database": (corrupt_database, ["list", "--storage", "corrupt.db"], "corrupt.db", "Restore"),
    "no database at all": (not_a_database, ["list", "--storage", "notes.db"], "notes.db", "choose another file"),
    "somebody else's database": (foreign_database, ["list", "--storage", "other.db"], "other.db", "Choose another"),
}


@pytest.mark.parametrize(("prepare", "arguments", "came", "remedy"), CASES.values(), ids=CASES)
def test_what_is_wrong_is_said_in_one_line(
    farthing, folder: Path, prepare: Callable[[Path], None], arguments: list[str], came: str, remedy: str
) -> None:
    prepare(folder)
    before = {path: path.read_bytes() for path in folder.iterdir()}

    result = farthing(*arguments)

    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert came in result.stderr
    assert remedy in result.stderr
    assert {path: path.read_bytes() for path in folder.iterdir()} == before, "nothing may be created or changed"


NAMED = {
    "no such study": (["show", "digist"], "'digist'", "Did you mean 'digits'?"),
    "no such trial": (["show", "digits", "--trial", "99"], "got 99", "--all"),
    "no log of a trial": (["show", "digits", "--trial", "0", "--log"], "trial 0", "print where they run"),
    "a place that cannot be written": (["export", "digits", "--output", "no/such/x.csv"], "no/such/x.csv", "folder"),
    "an unknown picture": (["plot", "digits", "--output", "x.docx"], "'x.docx'", ".png"),
    "a study of a program": (["resume", "digits"], "'digits'", "--work train.py:train"),
}


@pytest.mark.parametrize(("arguments", "came", "remedy"), NAMED.values(), ids=NAMED)
def test_what_is_wrong_about_a_study_is_said_in_one_line(
    farthing, digits, arguments: list[str], came: str, remedy: str
) -> None:
    result = farthing(*arguments)

    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert came in result.stderr
    assert remedy in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [["shwo"], ["run"], ["run", "x.toml", "--workers", "0"], ["show", "--log"], ["plot", "--kind", "pie"]],
)
def test_a_wrong_call_ends_with_exit_code_2(farthing, arguments: list[str]) -> None:
    result = farthing(*arguments)

    assert result.exit_code == 2
    assert "Error: " in result.stderr


def test_debug_shows_the_traceback(farthing) -> None:
    result = farthing("--debug", "list")

    assert type(result.exception).__name__ == "StorageError"


def test_a_fault_of_our_own_is_said_in_one_line_too(farthing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_studies, "callback", lambda **_: 1 / 0)

    result = farthing("list")

    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert "ZeroDivisionError" in result.stderr
    assert "--debug" in result.stderr


def test_an_interrupt_ends_with_exit_code_130(farthing, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(list_studies, "callback", interrupted)

    assert farthing("list").exit_code == 130
