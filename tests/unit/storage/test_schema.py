"""Databases of every version can be opened."""

import runpy
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
from sqlalchemy import Connection, create_engine, inspect

from farthing.costs import FakeClock
from farthing.storage import schema
from farthing.storage.engines import database_url, make_engine
from farthing.storage.sql import SqlStorage
from farthing.storage.tables import metadata
from farthing.trials import Event, Failure, History, Prediction, State

SAVED = Path(__file__).parents[2] / "data"
make_schema_0001 = runpy.run_path(str(SAVED / "make_schema_0001.py"))["make"]


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


LATER = """
import sqlalchemy as sa
from alembic import op

revision, down_revision = "0002", "0001"

def upgrade():
    with op.batch_alter_table("trial") as table:
        table.add_column(sa.Column("colour", sa.Text))
        table.alter_column("owner", type_=sa.String(500))
"""


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_an_older_database_is_migrated_when_it_is_opened(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """There is no older version yet: a later one is made up, for which SQLite must copy and drop a table."""
    address = str(tmp_path / "study.db") if kind == "sqlite" else request.getfixturevalue("postgres_url")
    make_schema_0001(address)
    before = contents(address)
    later = tmp_path / "migrations"
    shutil.copytree(schema.MIGRATIONS, later, ignore=shutil.ignore_patterns("__pycache__"))
    (later / "versions" / "0002_later.py").write_text(LATER)
    monkeypatch.setattr(schema, "MIGRATIONS", later)
    monkeypatch.setattr(schema, "HEAD", "0002")
    assert contents(address) == before
    engine = make_engine(database_url(address))
    with engine.connect() as connection:
        assert "colour" in {column["name"] for column in inspect(connection).get_columns("trial")}
        assert connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one() == "0002"
    engine.dispose()


def contents(address: str) -> object:
    storage = SqlStorage(address, clock=FakeClock(1_700_000_100.0))
    changes = storage.history("digits")
    assert storage.check() == []
    storage.close()
    return changes


def migrate(connection: Connection) -> None:
    config = Config()
    config.set_main_option("script_location", str(schema.MIGRATIONS))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def ours(thing: object, name: str | None, kind: str, reflected: bool, compared: Any) -> bool:
    return name != "alembic_version"


def sqlite_schema(path: Path) -> set[str]:
    """The statements that would create the tables and indexes, without regard to space and quotes."""
    connection = sqlite3.connect(path)
    found = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name <> 'alembic_version'")
    statements = {"".join(sql.split()).replace('"', "") for (sql,) in found}
    connection.close()
    return statements
