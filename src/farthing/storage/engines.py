"""How the two databases differ: connecting, beginning a transaction, telling the time."""

import atexit
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Connection, Double, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from farthing.errors import InvalidArgument, MissingExtra

BUSY_TIMEOUT = 60.0
"""Seconds for which SQLite waits for another writer before it gives up."""

CONNECT_TIMEOUT = 10
"""Seconds for which PostgreSQL may take to answer, unless the URL has a `connect_timeout` of its own."""

IDLE_TIMEOUT = 60.0
"""Seconds for which a PostgreSQL transaction may stand still: a coordinator that was suspended in the middle of one
would hold the study's lock, and with it all others, for as long as it is."""

_SYNCHRONOUS = ("full", "normal", "off")
_CREATION_LOCK = 0x66617274
"""Any number will do as long as all processes that create the tables use the same."""


class database_now(FunctionElement[float]):  # noqa: N801 (SQL functions are written in lower case)
    """The database's own clock, in seconds since 1970, at the moment the statement runs."""

    type = Double()
    inherit_cache = True


@compiles(database_now, "sqlite")
def _sqlite_now(element: database_now, compiler: SQLCompiler, **options: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"  # unixepoch('subsec') came with SQLite 3.42


@compiles(database_now, "postgresql")
def _postgresql_now(element: database_now, compiler: SQLCompiler, **options: Any) -> str:
    return "extract(epoch from clock_timestamp())::double precision"


def database_url(address: str | Path) -> URL:
    """The URL of a SQLite file or a PostgreSQL database, with the driver we use."""
    if isinstance(address, Path) or "://" not in address:
        return URL.create("sqlite", database=os.path.abspath(address))
    try:
        url = make_url(address)
    except (ArgumentError, ValueError):
        raise InvalidArgument(
            "A storage's address must be a URL, got something else. "
            "Use sqlite:///study.db or postgresql://user@host/database."
        ) from None
    if url.get_backend_name() == "sqlite":
        is_file = url.database and not url.database.startswith((":memory:", "file:"))
        return url.set(drivername="sqlite", database=os.path.abspath(url.database or "") if is_file else url.database)
    return url.set(drivername="postgresql+psycopg")


def location(url: URL) -> str:
    """The address of a database for messages: without user, password and options."""
    if url.get_backend_name() == "sqlite":
        return str(url.database)
    return f"{url.host or 'localhost'}:{url.port or 5432}/{url.database or ''}"


def folder(url: URL) -> Path | None:
    """A place for files beside a SQLite database."""
    if url.get_backend_name() != "sqlite":
        return None
    return Path(f"{url.database}.files").absolute()


def make_engine(url: URL) -> Engine:
    """An engine whose connections are set up; it connects when it is first used."""
    engine = _sqlite_engine(url) if url.get_backend_name() == "sqlite" else _postgresql_engine(url)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        for statement in connection.get_execution_options().get("begin", ()):
            connection.exec_driver_sql(statement)

    return engine


def looking(engine: Engine) -> Engine:
    """The same engine for statements that stand alone."""
    return engine.execution_options(begin=[])


def reading(engine: Engine) -> Engine:
    """The same engine for transactions that only read, all from one moment."""
    begin = "BEGIN" if _is_sqlite(engine) else _begun("BEGIN ISOLATION LEVEL REPEATABLE READ")
    return engine.execution_options(begin=[begin])


def writing(engine: Engine) -> Engine:
    """The same engine for transactions that write.

    In SQLite a writer takes its turn at once: one that reads first may find that it cannot write any more.
    """
    return engine.execution_options(begin=["BEGIN IMMEDIATE" if _is_sqlite(engine) else _begun("BEGIN")])


def migrating(engine: Engine) -> Engine:
    """The same engine for a change of the tables themselves, after which its connections must not be used again.

    SQLite changes most tables by copying and dropping them, which must not take the rows that belong to theirs along.
    """
    if _is_sqlite(engine):
        return engine.execution_options(begin=["PRAGMA foreign_keys = OFF", "BEGIN IMMEDIATE"])
    return writing(engine)


def _begun(begin: str) -> str:
    """A transaction of PostgreSQL and how long it may stand still, in one message.

    It is set for the transaction and not for the connection, which a pooler gives to another client afterwards.
    """
    return f"{begin}; SET LOCAL idle_in_transaction_session_timeout = {1000 * IDLE_TIMEOUT:.0f}"


def has_locked_all(connection: Connection) -> bool:
    """Whether a transaction that writes has kept all others out since it began, so that no study need be locked."""
    return _is_sqlite(connection)


def _is_sqlite(database: Engine | Connection) -> bool:
    return database.dialect.name == "sqlite"


def table_names(connection: Connection) -> set[str]:
    queries = {
        "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
        "postgresql": "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()",
    }
    return set(connection.scalars(text(queries[connection.dialect.name])))


def lock_creation(connection: Connection) -> None:
    """Makes others wait who would create the tables, or a study in turn. SQLite has one writer at a time already."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _CREATION_LOCK})


def _sqlite_engine(url: URL) -> Engine:
    if url.database in (None, "", ":memory:"):
        raise InvalidArgument(
            "A SQLite storage must be a file, got none. Use sqlite:///study.db, or no storage at all for memory."
        )
    synchronous = _synchronous(url.query)
    engine = create_engine(
        _openable(url), max_overflow=-1, connect_args={"isolation_level": None, "timeout": BUSY_TIMEOUT}
    )

    @event.listens_for(engine, "connect")
    def set_up(connection: sqlite3.Connection, record: object) -> None:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        if engine.url.database != url.database:
            connection.execute("PRAGMA query_only = ON")
        if connection.execute("PRAGMA page_count").fetchone() == (0,):
            connection.execute("PRAGMA journal_mode = WAL")  # kept in the file

    return engine


def _openable(url: URL) -> URL:
    """The address by which SQLite can read the file: it must write beside it, unless told that it never changes."""
    path = str(url.database)
    log, index = f"{path}-wal", f"{path}-shm"
    if not os.path.isfile(path) or (os.access(path, os.W_OK) and os.access(os.path.dirname(path), os.W_OK)):
        return url.set(query={})
    read_only = {"mode": "ro", "uri": "true"}
    if not (os.path.isfile(log) and os.path.getsize(log)):
        return url.set(database=f"file:{quote(path)}", query={**read_only, "immutable": "1"})
    if os.path.isfile(index):
        return url.set(database=f"file:{quote(path)}", query=read_only)
    return url.set(database=_copied(path, log), query={})


def _copied(path: str, log: str) -> str:
    """A copy of a database that a killed program left on what is read-only now, with changes only in its log.

    It stays read-only: what would be written to a copy would be lost with it.
    """
    folder = tempfile.mkdtemp(prefix="farthing-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for file in (path, log):
        shutil.copyfile(file, os.path.join(folder, os.path.basename(file)))
    return os.path.join(folder, os.path.basename(path))


def _synchronous(query: Mapping[str, Any]) -> str:
    unknown = sorted(set(query) - {"synchronous"})
    if unknown:
        raise InvalidArgument(
            f"A SQLite storage has one option, synchronous, got {', '.join(unknown)}. "
            "Use for example sqlite:///study.db?synchronous=normal."
        )
    synchronous = str(query.get("synchronous", "full")).lower()
    if synchronous not in _SYNCHRONOUS:
        raise InvalidArgument(
            f"A SQLite storage's synchronous must be one of {', '.join(_SYNCHRONOUS)}, got {synchronous!r}. "
            "Leave it out to be safe from power cuts."
        )
    return synchronous


def _postgresql_engine(url: URL) -> Engine:
    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise MissingExtra(
            "A PostgreSQL storage needs psycopg, got a Python without it. Run: pip install 'farthing[postgres]'."
        ) from None
    patience = {} if "connect_timeout" in url.query else {"connect_timeout": CONNECT_TIMEOUT}
    engine = create_engine(url, max_overflow=-1, connect_args=patience, isolation_level="AUTOCOMMIT")

    @event.listens_for(engine, "connect")
    def set_up(connection: Any, record: object) -> None:
        """Prepared statements stay with the server's process, and a pooler gives every transaction another one."""
        [process] = connection.execute("SELECT pg_backend_pid()").fetchone()
        if process != connection.info.backend_pid:
            connection.prepare_threshold = None

    return engine
