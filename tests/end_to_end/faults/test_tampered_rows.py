"""Single values of a database changed by seed: every command, every endpoint and the library show it or say why not."""

import shutil
import sqlite3
from contextlib import closing
from itertools import chain
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlalchemy.exc import OperationalError

import farthing as ft
from farthing.cli.app import farthing as program
from farthing.storage.faults import is_outage
from tests.end_to_end.faults.tampering import after_changes, after_changes_on_a_server, client_of, make_original

SHORT = range(12)
SHORT_ON_A_SERVER = range(4)
"""The long form is `campaign.py`."""
FOUND = (101_134, 101_148)
"""Seeds of the long form that ended in an error: a fidelity that was a text, and one of another name."""


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("original") / "study.db"
    make_original(path)
    return path


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")


@pytest.mark.filterwarnings("ignore")  # of numbers that are too large to add
def test_a_changed_value_ends_in_no_unhandled_error(original: Path, tmp_path: Path) -> None:
    assert list(chain.from_iterable(after_changes(original, tmp_path, [*FOUND, *SHORT]))) == []


@pytest.mark.filterwarnings("ignore")
def test_a_changed_value_on_a_server_ends_in_no_unhandled_error(original: Path, postgres_url: str) -> None:
    found = after_changes_on_a_server(original, postgres_url, SHORT_ON_A_SERVER)
    assert list(chain.from_iterable(found)) == []


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
