"""Single values of a database changed by seed: every command, every endpoint and the library show it or say why not."""

import os
import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlalchemy import create_engine
from sqlalchemy.exc import OperationalError

import farthing as ft
from farthing.cli.app import farthing as program
from farthing.storage.faults import is_outage
from tests.end_to_end.faults.tampering import change_something, client_of, make_original, unhandled

SHORT = range(12)
LONG = range(100_000, 102_000)
DRAWN = 16
"""Of so many changed databases one is drawn too."""


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("original") / "study.db"
    make_original(path)
    return path


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")


def faults_after_changes(original: Path, folder: Path, seeds: range) -> list[str]:
    found = []
    for seed in seeds:
        path = folder / "study.db"
        for old in folder.glob("study.db*"):
            os.unlink(old)
        shutil.copy(original, path)
        engine = create_engine(f"sqlite:///{path}")
        change = change_something(engine, random.Random(seed))
        engine.dispose()
        draws = seed % DRAWN == DRAWN - 1
        found += [f"{seed}, {change}: {fault}" for fault in unhandled(str(path), change.study, draws=draws)]
    return found


@pytest.mark.filterwarnings("ignore")  # of numbers that are too large to add
def test_a_changed_value_ends_in_no_unhandled_error(original: Path, tmp_path: Path) -> None:
    assert faults_after_changes(original, tmp_path, SHORT) == []


@pytest.mark.long
@pytest.mark.timeout(36_000)
@pytest.mark.filterwarnings("ignore")
def test_two_thousand_changed_values_end_in_no_unhandled_error(original: Path, tmp_path: Path) -> None:
    assert faults_after_changes(original, tmp_path, LONG) == []


@pytest.mark.parametrize("column", ["problem", "settings", "strategy", "created_at"])
def test_a_study_that_cannot_be_read_hides_no_other(original: Path, tmp_path: Path, column: str) -> None:
    path = shutil.copy(original, tmp_path / "study.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"UPDATE study SET {column} = '[]' WHERE name = 'asha'")
    listed = CliRunner().invoke(program, ["list", "--storage", str(path)])
    assert listed.exit_code == 0
    assert "pb2" in listed.output
    assert {one.record.name for one in ft.studies(path)} == {"lambo", "log-ei", "online", "pb2"}
    with client_of(str(path)) as client:
        answer = client.get("/api/studies").json()
    assert [one["name"] for one in answer["studies"]] == ["lambo", "log-ei", "online", "pb2"]
    assert answer["unreadable"] == ["asha"]
    checked = CliRunner().invoke(program, ["check", "--storage", str(path)])
    assert checked.exit_code == 1
    assert "Study 'asha'" in checked.output


def test_a_damaged_file_is_no_server_that_is_away(original: Path, tmp_path: Path) -> None:
    """A text that is no UTF-8 was waited for, for a minute, as if PostgreSQL were to come back."""
    path = shutil.copy(original, tmp_path / "study.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE trial SET owner = CAST(x'ff' AS TEXT)")
    result = CliRunner().invoke(program, ["best", "asha", "--storage", str(path)])
    assert result.exit_code == 1
    assert "PostgreSQL" not in result.output
    assert "Restore" in result.output


def test_an_error_of_sqlite_without_a_name_is_no_outage() -> None:
    error = sqlite3.OperationalError("Could not decode to UTF-8 column 'x' with text '\ufffd'")
    assert not is_outage(OperationalError(None, None, error))
