"""A database that cannot be used is refused in one line, and nothing in it is touched."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from farthing.errors import FarthingError, MissingExtra, StorageError
from farthing.space import Float, Space
from farthing.storage import StudyRecord, open_storage
from farthing.storage.sql import SqlStorage
from farthing.trials import Attempt, Measurement, Problem, Suggestion
from tests.postgres import PostgresServer

PROBLEM = Problem(Space({"x": Float(0.0, 1.0)}))


def make_garbage(path: Path) -> None:
    path.write_bytes(b"not a database, whatever its name says" * 100)


def make_another_applications(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE customers (name TEXT)")
    connection.close()


def make_optunas(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE alembic_version (version_num TEXT)")
        connection.execute("INSERT INTO alembic_version VALUES ('v3.2.0.a')")
    connection.close()


def make_newer(path: Path) -> None:
    SqlStorage(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()


def make_folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (make_garbage, "must be an intact SQLite file"),
        (make_another_applications, "must be empty or Farthing's"),
        (make_optunas, "must be empty or Farthing's"),
        (make_newer, "got '9999'"),
        (make_folder, "must be in a folder that exists"),
    ],
)
def test_a_file_that_is_no_storage_is_refused_untouched(
    tmp_path: Path, make: Callable[[Path], None], said: str
) -> None:
    path = tmp_path / "study.db"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(StorageError) as refusal:
        open_storage(path)
    assert_one_line(refusal.value, said)
    assert str(path) in str(refusal.value)
    assert before == (path.read_bytes() if path.is_file() else None)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError) as refusal:
        open_storage(tmp_path / "missing" / "study.db")
    assert_one_line(refusal.value, "must be in a folder that exists")


def test_a_torn_file_is_an_error_and_its_check_says_so(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    storage = SqlStorage(path)
    storage.create_study(StudyRecord("study", PROBLEM))
    storage.open_trials("study", [Suggestion({"x": 0.5})] * 500, owner="ada", lease=60)
    storage.close()
    whole = bytearray(path.read_bytes())
    pages = len(whole) // 4096
    for page in range(pages * 3 // 4, pages):
        whole[page * 4096 : page * 4096 + 64] = os.urandom(64)
    path.write_bytes(whole)
    torn = SqlStorage(path)
    with pytest.raises(StorageError) as refusal:
        torn.history("study")
    assert_one_line(refusal.value, "must be an intact SQLite file")
    assert torn.check()
    torn.close()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("UPDATE trial SET params = '{'", "Stored values must be JSON"),
        ('UPDATE trial SET params = \'{"x":{"a":1}}\'', "Trial 0 cannot be read: Stored params"),
        ("UPDATE trial SET params = '{\"x\":[[]]}'", "Trial 0 cannot be read: Stored params"),
        ("UPDATE trial SET state = 'asleep'", "got 'asleep'"),
        ("UPDATE study SET trials = 5", "it counts 5 trials and has 1"),
        ("UPDATE trial SET number = 3; UPDATE measurement SET trial = 3", "the trials are not numbered 0, 1, 2"),
        ("UPDATE trial SET finished_at = 1.0", "is running and has finished_at=1.0"),
        ("INSERT INTO run VALUES (77, 1, 0.0, 0.0, 0.0, 0.0, 0.0)", "has a row that belongs to nothing"),
        (
            "UPDATE trial SET value = 'low'",
            "Trial 0 cannot be read: A stored trial.value",
        ),
        (
            "UPDATE trial SET value = 9e999",
            "Trial 0 cannot be read: A stored trial.value",
        ),
        ("UPDATE trial SET attempt = 'first'", "cannot be read"),
        ("UPDATE trial SET opened_at = 'today'", "Trial 0 cannot be read: A stored trial.opened_at"),
        (
            "UPDATE measurement SET value = 'low'",
            "Trial 0 cannot be read: A stored measurement.value",
        ),
        ("UPDATE measurement SET value = 9e999", "Trial 0 cannot be read: A stored measurement.value"),
        (
            "UPDATE measurement SET cost = '{\"training\":Infinity}'",
            "Trial 0 cannot be read: A stored cost must be finite",
        ),
        ("UPDATE measurement SET cost = '{\"training\":-1}'", "Trial 0 cannot be read: A stored cost must be amounts"),
        ("UPDATE measurement SET cost = '[1]'", "must be a mapping, got '[1]'"),
        (
            'UPDATE measurement SET metrics = \'{"loss":"low"}\'',
            "Trial 0 cannot be read: A stored metric",
        ),
        ("UPDATE trial SET version = 0", "1 of its trials have a version outside 1 to 2"),
        ("UPDATE measurement SET version = 9", "1 of its measurements have a version outside 1 to 2"),
        ("UPDATE study SET version = 0", "have a version outside 1 to 0"),
        ("UPDATE study SET problem = ''", "Stored values must be JSON"),
        ("UPDATE study SET problem = '{}'", "the problem or the settings cannot be read"),
        ("UPDATE study SET problem = 'null'", "the problem or the settings cannot be read"),
        ("UPDATE study SET settings = '[]'", "must be a mapping, got '[]'"),
        ("INSERT INTO alembic_version VALUES ('0000')", "2 versions of the schema"),
    ],
)
def test_what_was_changed_by_hand_is_found_by_check(tmp_path: Path, change: str, said: str) -> None:
    storage = SqlStorage(tmp_path / "study.db")
    storage.create_study(StudyRecord("study", PROBLEM))
    storage.open_trials("study", [Suggestion({"x": 0.5})], owner="ada", lease=60)
    storage.record("study", Attempt(0, 1), [Measurement(0.5, {"training": 1.0}, metrics={"loss": 1.0})], lease=60)
    assert storage.check() == []
    with sqlite3.connect(tmp_path / "study.db") as connection:
        connection.executescript(change)
    connection.close()
    faults = storage.check()
    assert any(said in fault for fault in faults)
    assert all(fault.endswith(".") and not fault.endswith("..") for fault in faults)
    storage.close()


READ_ONLY = """
import os, sys
from farthing.errors import StorageError
from farthing.storage import open_storage
from farthing.trials import Suggestion
open_storage(sys.argv[2]).close()  # imports whatever it needs, while it may
if os.geteuid() == 0:
    os.seteuid(65534)  # root may write everything
storage = open_storage(sys.argv[1])
print(len(storage.history("study").trials))
try:
    storage.open_trials("study", [Suggestion({"x": 0.5})], owner="ada", lease=60)
except StorageError as error:
    print(error)
"""


def test_a_read_only_file_can_be_read(tmp_path: Path) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "study.db"
        storage = SqlStorage(path)
        storage.create_study(StudyRecord("study", PROBLEM))
        storage.close()
        path.chmod(0o444)
        Path(folder).chmod(0o777)
        program = [sys.executable, "-c", READ_ONLY, str(path), str(tmp_path / "other.db")]
        finished = subprocess.run(program, capture_output=True, text=True)
    count, refusal = finished.stdout.splitlines()
    assert count == "0"
    assert "A storage must be writable" in refusal


def test_an_older_file_that_may_only_be_read_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    saved = Path(__file__).parents[2] / "data" / "schema_0001.db"
    with TemporaryDirectory() as folder:
        path = Path(shutil.copy(saved, folder))
        path.chmod(0o444)
        Path(folder).chmod(0o755)
        program = [sys.executable, "-c", READ_ONLY, str(path), str(tmp_path / "other.db")]
        finished = subprocess.run(program, capture_output=True, text=True)
        assert path.read_bytes() == saved.read_bytes()
        assert [each.name for each in Path(folder).iterdir()] == [path.name]
    assert "StorageError: A storage must be writable" in finished.stderr
    assert "copy it to a place that is" in finished.stderr


def test_a_server_that_does_not_answer_is_named_without_credentials() -> None:
    with pytest.raises(StorageError) as refusal:
        open_storage("postgresql://ada:secret@127.0.0.1:1/studies?password=hush")
    assert_one_line(refusal.value, "must accept the connection")
    assert "127.0.0.1:1/studies" in str(refusal.value)


def test_a_wrong_password_is_named_without_credentials(postgres: PostgresServer) -> None:
    url = postgres.url()
    password = url.split(":")[2].split("@")[0]
    with pytest.raises(StorageError) as refusal:
        open_storage(url.replace(password, "secret"))
    assert_one_line(refusal.value, "authentication failed")


def test_a_missing_database_is_named(postgres: PostgresServer) -> None:
    with pytest.raises(StorageError) as refusal:
        open_storage(postgres.url("nowhere"))
    assert_one_line(refusal.value, "does not exist")


def test_another_applications_database_is_refused(postgres_url: str) -> None:
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE customers (name TEXT)")
    with pytest.raises(StorageError) as refusal:
        open_storage(postgres_url)
    assert_one_line(refusal.value, "must be empty or Farthing's")


def test_a_missing_driver_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra) as refusal:
        open_storage("postgresql://ada:secret@127.0.0.1/studies")
    assert_one_line(refusal.value, "farthing[postgres]")


def assert_one_line(error: FarthingError, said: str) -> None:
    text = str(error)
    assert said in text
    assert "\n" not in text
    assert not any(secret in text for secret in ("secret", "hush"))
