"""A database that somebody has tampered with: commands that read it say what is wrong, or show it, and run nothing."""

import os
import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

import farthing as ft
from farthing.cli.app import farthing as program
from farthing.errors import FarthingError
from farthing.storage import open_storage
from farthing.trials.events import BUDGET, CHANGED, EXTENDED, LEARNED, NOISE_DECLARED
from farthing.trials.prefixes import EVICTED

SPACE = ft.Space({"x": ft.Float(0, 1)}, fidelities={"epochs": ft.Fidelity(1, 9, integer=True, trace=True)})
DEEP = "[" * 200_000
HUGE = '{"x": 0.5, "more": "' + "x" * 5_000_000 + '"}'
CODE = "__import__('os').system('touch ran')"
ESCAPES = "\x1b[2J\x1b]0;owned\x07"

TEXTS = ["5", '{"training": "much"}', DEEP, CODE]
MORE = ["", "null", "[]", '"text"', '{"x": [1]}', "{'x': 1}", "NaN"]
COLUMNS = {
    "study": ["problem", "strategy", "settings"],
    "trial": ["params", "fidelity", "predicted_cost", "predicted_value", "note", "failure", "tags", "comment"],
    "measurement": ["cost", "fidelity", "metrics", "saved", "params", "gradient"],
    "event": ["payload"],
}
VALUES: dict[str, dict[str, list[object]]] = {
    "study": {"name": [CODE, ESCAPES, "../../ran", "x" * 100_000], "created_at": ["late", 1e300, -1e300]},
    "trial": {
        "state": ["sleeping", CODE, 7],
        "value": ["text", 9e999, b"\xff"],
        "attempt": ["text", -1, 2**62],
        "resume_from": [1, 10**6, -5, "text"],
        "checkpoint": ["../../../../etc", CODE, "/etc/passwd"],
        "owner": [CODE, ESCAPES, 5],
        "overhead": ["text", 9e999],
        "opened_at": ["text"],
        "params": [HUGE, b"\xff\xfe", '{"of another space": 1}'],
        "fidelity": ['{"epochs": [1]}', '{"of another space": 1}'],
        "comment": ['"' + CODE + '"', '"=HYPERLINK(1)"'],
    },
    "measurement": {
        "value": ["text", 9e999],
        "fidelity": ['{"epochs": [1]}', '{"of another space": 1}'],
        "amount": ["text", 9e999, -5.0],
        "step": ["text", -1],
        "attempt": ["text", 7],
        "charged": ["text", 7],
        "time": ["text"],
    },
}
CHANGES = [
    *((table, column, text) for table, columns in COLUMNS.items() for column in columns for text in TEXTS),
    *(
        (table, column, value)
        for table, columns in VALUES.items()
        for column, some in columns.items()
        for value in some
    ),
    ("study", "strategy", '{"name": "os:system", "arguments": {"command": "touch ran"}}'),
    ("study", "strategy", '{"name": "../ran:Strategy", "arguments": {}}'),
]
MORE_CHANGES = [(table, column, text) for table, columns in COLUMNS.items() for column in columns for text in MORE]
COMMANDS = [
    ["list"],
    ["show", "--json"],
    ["show", "--all"],
    ["show", "--trial", "1"],
    ["best"],
    ["export"],
    ["check"],
]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("original") / "study.db"
    make_small(path)
    return path


def make_small(path: Path) -> None:
    study = ft.Study(SPACE, minimize="error", storage=path, strategy=ft.Random(), seed=0)
    study.run(report, budget=ft.Budget(trials=4), executor="inline")
    study.ask(budget=ft.Budget(trials=5))
    study.close()
    with closing(open_storage(path)) as storage:
        storage.log_event("study", "evicted", {"prefix": "a", "length": 1, "why": "limit"})


def report(trial: ft.RunningTrial) -> float:
    trial.report(0.5, epochs=1)
    if trial.number == 3:
        raise ValueError("no")
    return float(trial.params["x"])


def tampered(original: Path, folder: Path, table: str, column: str, value: object) -> Path:
    """A copy of the database with that value in a row of that column; in one of a finished trial where there are."""
    path = folder / "study.db"
    shutil.copy(original, path)
    row = {"trial": "number = 1", "measurement": "trial = 1"}.get(table, "1 = 1")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE {row}", [value])
    return path


def shown(change: tuple[str, str, object]) -> str:
    table, column, value = change
    return f"{table}.{column}={str(value)[:30]!r}"


def assert_harmless(command: list[str], path: Path) -> None:
    result = CliRunner().invoke(program, [*command, "--storage", str(path)])
    assert result.exception is None or isinstance(result.exception, SystemExit), (command, repr(result.exception)[:500])
    assert result.exit_code in (0, 1), (command, result.output[:500])
    assert not any(line.startswith("Traceback") for line in result.output.splitlines()), command  # one may be quoted
    assert "fault of Farthing" not in result.output, (command, result.output[:500])
    assert not Path("ran").exists(), command


EVENTS = [BUDGET, EXTENDED, LEARNED, CHANGED, EVICTED, NOISE_DECLARED]
PAYLOADS = ["5", "null", "[]", "{}", '{"trials": "many", "limits": 3, "given": 1, "before": 1, "after": [], "fill": 2}']


@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize("kind", EVENTS)
def test_an_event_with_a_payload_of_another_form_is_shown_or_refused(original, tmp_path, monkeypatch, kind, payload):
    monkeypatch.chdir(tmp_path)
    path = tampered(original, tmp_path, "event", "payload", payload)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE event SET kind = ?", [kind])
    for command in (["show"], ["show", "--all"], ["best"], ["check"]):
        assert_harmless(command, path)
    checked = CliRunner().invoke(program, ["check", "--storage", str(path)])
    assert checked.exit_code == 1
    assert "an event cannot be read" in checked.output


@pytest.mark.parametrize("change", CHANGES, ids=shown)
def test_a_tampered_database_is_shown_or_refused_and_runs_nothing(original, tmp_path, monkeypatch, change):
    """Three of the commands for each change, in turn."""
    monkeypatch.chdir(tmp_path)
    path = tampered(original, tmp_path, *change)
    first = CHANGES.index(change)
    for place in (0, 2, 5):
        assert_harmless(COMMANDS[(first + place) % len(COMMANDS)], path)


@pytest.mark.long
@pytest.mark.parametrize("change", [*CHANGES, *MORE_CHANGES], ids=shown)
def test_more_that_is_tampered_with_runs_nothing_either(original, tmp_path, monkeypatch, change):
    monkeypatch.chdir(tmp_path)
    path = tampered(original, tmp_path, *change)
    for command in COMMANDS:
        assert_harmless(command, path)


@pytest.mark.parametrize("size", [0, 1, 100, 4096, 10_000])
def test_a_database_that_was_cut_short_is_refused_in_a_sentence(original, tmp_path, monkeypatch, size):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "study.db"
    path.write_bytes(original.read_bytes()[:size])
    for command in COMMANDS:
        assert_harmless(command, path)


def flip_bytes(original: Path, folder: Path, *, seeds: range) -> None:
    """Bytes changed anywhere: every command ends with a result or a reason."""
    for seed in seeds:
        rng, content = random.Random(seed), bytearray(original.read_bytes())
        for _ in range(rng.randint(1, 20)):
            content[rng.randrange(100, len(content))] = rng.randrange(256)
        path = folder / "study.db"
        path.write_bytes(content)
        for command in COMMANDS:
            assert_harmless(command, path)
        for side in (f"{path}-wal", f"{path}-shm"):
            if os.path.exists(side):
                os.unlink(side)


def test_changed_bytes_end_no_command_with_a_traceback(original, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    flip_bytes(original, tmp_path, seeds=range(10))


def test_a_study_whose_trials_continue_each_other_in_a_circle_is_refused(original, tmp_path):
    path = tampered(original, tmp_path, "trial", "resume_from", 1)
    with pytest.raises(FarthingError):
        ft.Study.load("study", path).history.lineage(1)
