"""Brings a database to the schema this version of Farthing knows."""

from pathlib import Path

from sqlalchemy import Column, Connection, MetaData, String, Table, insert, select

from farthing.errors import StorageError
from farthing.storage.engines import lock_creation, table_names
from farthing.storage.tables import metadata
from farthing.storage.transactions import Transactions

HEAD = "0005"
"""The newest revision in `migrations/versions`."""

MIGRATIONS = Path(__file__).parent / "migrations"

_revision = Table("alembic_version", MetaData(), Column("version_num", String(32), primary_key=True))


def prepare(database: Transactions) -> None:
    """Creates the tables, or migrates those of an older version; refuses what is not Farthing's."""
    revision = database.read(_stored_revision)
    if revision is None:
        database.write(_create)
        revision = database.read(_stored_revision)
    if revision is None:
        raise StorageError(
            f"A storage's database must be empty or Farthing's, got other tables in {database.location}. "
            "Choose another file, database or schema."
        )
    if revision != HEAD:
        _check_known(revision, location=database.location)
        database.migrate(_migrate)


def _stored_revision(connection: Connection) -> str | None:
    if not {"study", "trial", _revision.name} <= table_names(connection):
        return None
    return connection.scalar(select(_revision.c.version_num))


def revisions(connection: Connection) -> list[str]:
    """All that the database says of its version; it should be one."""
    return list(connection.scalars(select(_revision.c.version_num)))


def _create(connection: Connection) -> None:
    lock_creation(connection)
    if table_names(connection):
        return
    metadata.create_all(connection)
    _revision.create(connection)
    connection.execute(insert(_revision), {"version_num": HEAD})


def _check_known(revision: str, *, location: str) -> None:
    from alembic.script import ScriptDirectory  # takes 0.6 s to import, and is needed once in the life of a database

    known = {script.revision for script in ScriptDirectory(str(MIGRATIONS)).walk_revisions()}
    if revision not in known:
        raise StorageError(
            f"A storage must be of a version up to {HEAD}, got {revision!r} in {location}. "
            "Install the newer Farthing that wrote it."
        )


def _migrate(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config

    lock_creation(connection)
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
