"""Databases of every version can be opened."""

import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, MetaData, create_engine, insert, inspect

from farthing.costs import FakeClock
from farthing.storage import schema
from farthing.storage.engines import database_url, make_engine
from farthing.storage.sql import SqlStorage
from farthing.storage.tables import metadata
from farthing.trials import Event, Failure, History, Prediction, State

SAVED = Path(__file__).parents[2] / "data"
FIRST = SAVED / "schema_0001.db"
KILLED = Path(__file__).parent / "killed_migration.py"


def test_the_first_schema_is_still_read(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    shutil.copy(SAVED / "schema_0001.db", path)
    storage = SqlStorage(path, clock=FakeClock(1_700_000_100.0))
    record = storage.load_study("digits")
    changes = storage.history("digits")
    history = History(record.problem, changes.trials, events=changes.events, version=changes.version)

    assert (record.problem.value, record.problem.seed, record.strategy) == ("error", 7, {"name": "ASHA"})
    assert record.settings == {"budget": {"cost": 60}}
    assert [trial.state for trial in history] == [State.DONE, State.FAILED, State.PENDING, State.PENDING]
    assert [round(trial.cost, 6) for trial in history] == [3.0, 0.0, 3.0, 0.0]
    first, second, third, fourth = history
    assert (first.value, first.checkpoint, first.tags, first.comment) == (0.5, "trial-0", ("good",), "the first")
    assert [(point.value, dict(point.fidelity)) for point in first.points] == [
        (1.0, {"epochs": 1}),
        (0.5, {"epochs": 2}),
    ]
    assert (first.suggestion.predicted_cost, first.note, first.overhead) == (Prediction(3.0, 0.5), {"rung": 0}, 0.25)
    assert second.failure == Failure("ValueError: no", "line 1")
    assert third.attempt == 2
    assert (fourth.resume_checkpoint, fourth.tags) == ("trial-0", ("mine",))
    assert [(event.kind, event.payload) for event in history.events] == [("evicted", {"stage": "denoise"})]
    assert isinstance(history.events[0], Event)
    assert storage.seconds_run("digits") == 63.0
    assert storage.check() == []
    storage.close()


def test_the_newest_migration_is_the_schema_of_this_version() -> None:
    assert ScriptDirectory(str(schema.MIGRATIONS)).get_current_head() == schema.HEAD


def test_migrating_an_empty_sqlite_file_gives_what_creating_does(tmp_path: Path) -> None:
    created, migrated = tmp_path / "created.db", tmp_path / "migrated.db"
    SqlStorage(created).close()
    engine = make_engine(database_url(migrated))
    with engine.begin() as connection:
        migrate(connection)
    engine.dispose()
    assert sqlite_schema(migrated) == sqlite_schema(created)


def test_migrating_an_empty_postgresql_database_gives_what_creating_does(postgres_url: str) -> None:
    engine = create_engine(database_url(postgres_url))
    with engine.begin() as connection:
        migrate(connection)
        context = MigrationContext.configure(connection, opts={"compare_type": True, "include_object": ours})
        assert compare_metadata(context, metadata) == []
        checked = inspect(connection)
        cascades = [key["options"] for name in ("trial", "measurement") for key in checked.get_foreign_keys(name)]
        assert cascades == [{"ondelete": "CASCADE"}] * 2
    engine.dispose()
    storage = SqlStorage(postgres_url)
    assert storage.list_studies() == []
    storage.close()


def test_opening_a_current_database_does_without_alembic(tmp_path: Path) -> None:
    program = (
        "import sys; from farthing.storage import open_storage; "
        f"open_storage({str(tmp_path / 'study.db')!r}); print('alembic' in sys.modules)"
    )
    for _ in range(2):
        finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert finished.stdout.strip() == "False"


@pytest.fixture(params=["sqlite", "postgresql"])
def first(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database of the first schema, with what the saved one has."""
    if request.param == "sqlite":
        return str(shutil.copy(FIRST, tmp_path / "study.db"))
    url: str = request.getfixturevalue("postgres_url")
    copy_to(url)
    return url


def test_the_second_schema_is_still_read(tmp_path: Path) -> None:
    path = str(shutil.copy(SAVED / "schema_0002.db", tmp_path / "study.db"))
    assert revision_of(path) == "0002"
    assert_as_saved(path)
    assert revision_of(path) == schema.HEAD
    storage = SqlStorage(path)
    trials = storage.history("digits").trials
    assert [trial.waited for trial in trials] == [0.0] * 4
    assert {point.rate for trial in trials for point in trial.measurements} == {None}
    assert storage.claim_suggesting("digits", owner="ada", lease=60.0) == "ada"
    storage.close()


def test_the_third_schema_is_still_read(tmp_path: Path) -> None:
    path = str(shutil.copy(SAVED / "schema_0003.db", tmp_path / "study.db"))
    assert revision_of(path) == "0003"
    assert_as_saved(path)
    storage = SqlStorage(path)
    trials = storage.history("digits").trials
    assert [trial.started_at == trial.opened_at for trial in trials] == [True, True, False, False]
    assert [trial.started_at for trial in trials[2:]] == [None, None]
    storage.close()


def test_the_fourth_schema_is_still_read(tmp_path: Path) -> None:
    path = str(shutil.copy(SAVED / "schema_0004.db", tmp_path / "study.db"))
    assert revision_of(path) == "0004"
    assert_as_saved(path)
    storage = SqlStorage(path)
    assert [trial.labels for trial in storage.history("digits").trials] == [()] * 4
    claimed = storage.claim_trial("digits", owner="ada", lease=60.0, label="spot")
    assert claimed is not None
    assert storage.history("digits").trials[claimed.number].labels[-1] == "spot"
    storage.close()


def test_an_older_database_is_migrated_when_it_is_opened(first: str) -> None:
    assert_as_saved(first)
    assert revision_of(first) == schema.HEAD
    assert_as_saved(first)


OPENING = """
import sys
import alembic.command
from farthing.storage.sql import SqlStorage
print(flush=True)
sys.stdin.readline()
print(len(SqlStorage(sys.argv[1]).history("digits").trials))
"""


def test_several_programs_may_open_an_older_database_at_once(first: str) -> None:
    opening = [sys.executable, "-c", OPENING, first]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    programs = [subprocess.Popen(opening, text=True, **pipes) for _ in range(4)]
    for program in programs:
        program.stdout.readline()  # it has imported what it needs
    for program in programs:
        program.stdin.write("go\n")
        program.stdin.flush()
    assert [program.communicate() for program in programs] == [("4\n", "")] * 4
    assert revision_of(first) == schema.HEAD
    assert_as_saved(first)


@pytest.mark.parametrize("statement", [1, 4, 9, 99])
def test_a_migration_that_is_killed_begins_again(first: str, statement: int) -> None:
    """The program that migrates kills itself before that statement, or before it commits."""
    finished = subprocess.run([sys.executable, KILLED, first, str(statement)], capture_output=True, text=True)
    assert finished.returncode == -9, finished.stderr
    assert revision_of(first) == "0001"
    assert_as_saved(first)


def test_a_run_in_an_older_database_keeps_its_seconds(tmp_path: Path) -> None:
    """Overlapping runs, as the first schema had them: by when they began and were last touched."""
    path = shutil.copy(FIRST, tmp_path / "study.db")
    with sqlite3.connect(path) as connection:
        runs = [(1, 2, 10.0, 20.0), (1, 3, 15.0, 30.0), (1, 4, 16.0, 17.0), (1, 5, 100.0, 101.0)]
        connection.executemany("INSERT INTO run VALUES (?, ?, ?, ?)", runs)
    connection.close()
    storage = SqlStorage(path)
    assert storage.seconds_run("digits") == 63.0 + 20.0 + 1.0
    storage.close()


def assert_as_saved(address: str) -> None:
    storage = SqlStorage(address, clock=FakeClock(1_700_000_100.0))
    trials = storage.history("digits").trials
    assert [trial.state for trial in trials] == [State.DONE, State.FAILED, State.PENDING, State.PENDING]
    assert [round(trial.cost, 6) for trial in trials] == [3.0, 0.0, 3.0, 0.0]
    assert storage.seconds_run("digits") == 63.0
    assert storage.check() == []
    storage.close()


def revision_of(address: str) -> str:
    engine = make_engine(database_url(address))
    with engine.connect() as connection:
        revision = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one()
    engine.dispose()
    return str(revision)


def copy_to(url: str) -> None:
    """Creates the first schema on a server and copies the saved rows there."""
    engine = create_engine(database_url(url))
    saved = sqlite3.connect(FIRST)
    with engine.begin() as connection:
        migrate(connection, to="0001")
        stored = MetaData()
        stored.reflect(connection)
        for table in stored.sorted_tables:
            if table.name != "alembic_version":
                found = saved.execute(f"SELECT {', '.join(table.c.keys())} FROM {table.name}")
                rows = [dict(zip(table.c.keys(), row, strict=True)) for row in found]
                connection.execute(insert(table), [as_booleans(row) for row in rows])
    saved.close()
    engine.dispose()


def as_booleans(row: dict[str, Any]) -> dict[str, Any]:
    """SQLite has none of its own."""
    return {name: bool(value) if name in ("measures_cost", "charged") else value for name, value in row.items()}


def migrate(connection: Connection, *, to: str = "head") -> None:
    config = Config()
    config.set_main_option("script_location", str(schema.MIGRATIONS))
    config.attributes["connection"] = connection
    command.upgrade(config, to)


def ours(thing: object, name: str | None, kind: str, reflected: bool, compared: Any) -> bool:
    return name != "alembic_version"


def sqlite_schema(path: Path) -> set[str]:
    """The statements that would create the tables and indexes, without regard to space and quotes."""
    connection = sqlite3.connect(path)
    found = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name <> 'alembic_version'")
    statements = {"".join(sql.split()).replace('"', "") for (sql,) in found}
    connection.close()
    return statements
