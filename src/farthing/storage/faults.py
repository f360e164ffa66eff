"""Errors of a database in Farthing's words, and files that vanish under a program, of which SQLite says nothing."""

import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from farthing.errors import StorageError


class _Standing(NamedTuple):
    """A file as it was found: which one it is, and how long."""

    device: int
    inode: int
    size: int

    def is_same_file(self, other: "_Standing") -> bool:
        return self[:2] == other[:2]


class DatabaseFile:
    """The file of a database and its log, as they were when they were first used.

    Only their names are looked at: to open and close a file would take SQLite's locks on it away.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._log = os.path.realpath(path) + "-wal"  # once: a link that points elsewhere later is another file
        self._known: dict[str, _Standing] = {}

    def check(self, *, is_open: bool = False) -> None:
        """Raises unless the database and its log are the files they were, and no shorter. The first call takes note.

        Of the log only once the database `is_open`: what a power cut left of one is thrown away when it is opened.
        """
        for path in (self._path, self._log):
            found, known = _standing(path), self._known.get(path)
            if found == known:
                continue  # as nearly always, and this is done at every step
            if known is not None and found is None:
                raise _not_as_it_was(path, "which was deleted")
            if known is not None and found is not None:
                self._compare(path, known, found)
            if found is not None and (is_open or known is not None or path == self._path):
                self._known[path] = found

    def forget_log(self) -> None:
        """The last who closes a database deletes its log: when a connection ends, it is unknown."""
        self._known.pop(self._log, None)

    def _compare(self, path: str, known: _Standing, found: _Standing) -> None:
        if not found.is_same_file(known):
            raise _not_as_it_was(path, "which is another file now")
        if found.size < known.size and not self._is_intact():
            raise _not_as_it_was(path, f"which was cut from {known.size} to {found.size} bytes")

    def _is_intact(self) -> bool:
        """Other programs may shorten a database, by VACUUM for example; then it is intact when it is opened again."""
        try:
            with closing(sqlite3.connect(f"file:{self._path}?mode=rw", uri=True)) as connection:
                return bool(connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))
        except sqlite3.Error:
            return False


def _standing(path: str) -> _Standing | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return _Standing(status.st_dev, status.st_ino, status.st_size)


def _not_as_it_was(path: str, how: str) -> StorageError:
    return StorageError(
        f"A storage's file must stay as it is while it is used, got {path}, {how}. "
        "Put it back, or restore it from a copy, and run again: since then nothing was stored."
    )


# ------------------------------------------------------------
# What the errors of a database say.


@dataclass(frozen=True, slots=True)
class _Fault:
    rule: str
    remedy: str


_UNREACHABLE = _Fault(
    "A PostgreSQL storage must accept the connection",
    "Start the server, or correct address, database, user or password.",
)
_LOST = _Fault("A PostgreSQL storage must stay reachable", "Try again once the server is back: what was written stays.")
_CORRUPT = _Fault("A storage must be an intact SQLite file", "Restore it from a copy, or choose another file.")
_FULL = _Fault("A storage needs room to write", "Free some disk space and continue: nothing that was stored is lost.")
_READ_ONLY = _Fault("A storage must be writable", "Change its permissions, or copy it to a place that is.")
_DENIED = _Fault("The server must allow what is asked of it", "Use a user who may create and change tables.")
_OTHER = _Fault("The database must carry out what it is asked", "Its own words say why not; report it if they do not.")

_SQLITE = {
    "SQLITE_BUSY": _Fault(
        "A SQLite file takes one writer at a time", "Stop the program that holds it, or move to PostgreSQL."
    ),
    "SQLITE_CANTOPEN": _Fault(
        "A storage's file must be in a folder that exists and can be written",
        "Create the folder, or change its rights.",
    ),
    "SQLITE_CORRUPT": _CORRUPT,
    "SQLITE_NOTADB": _CORRUPT,
    "SQLITE_FULL": _FULL,
    "SQLITE_IOERR": _FULL,
    "SQLITE_READONLY": _READ_ONLY,
    "SQLITE_PERM": _READ_ONLY,
}
"""By the beginning of SQLite's name of the error."""

_POSTGRESQL = {
    "25006": _READ_ONLY,
    "42501": _DENIED,
    "53100": _FULL,
    "57": _LOST,
    "08": _LOST,
}
"""By the beginning of PostgreSQL's code of the error."""

_PASSING = ("08", "53300", "57P")
"""Codes of a lost connection, of too many of them, and of a server that ends or begins."""


def explained(error: SQLAlchemyError, *, location: str) -> StorageError:
    """The error in one line: the rule, what came, what to do."""
    fault = _fault(error)
    return StorageError(f"{fault.rule}, got {_complaint(error)!r} from {location}. {fault.remedy}")


def is_busy(error: SQLAlchemyError) -> bool:
    """Whether another writer held a SQLite file for too long."""
    return _code(error).startswith("SQLITE_BUSY")


def is_outage(error: SQLAlchemyError) -> bool:
    """Whether a server is away, or has just cut us off: something that passes."""
    code = _code(error)
    if not isinstance(error, DBAPIError) or _is_of_sqlite(error):
        return False
    return error.connection_invalidated or _is_about_connecting(error) or code.startswith(_PASSING)


def _fault(error: SQLAlchemyError) -> _Fault:
    code = _code(error)
    for known in (_SQLITE, _POSTGRESQL):
        for beginning, fault in known.items():
            if code.startswith(beginning):
                return fault
    if _is_of_sqlite(error):
        return _CORRUPT if _cannot_decode(error) else _OTHER
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return _LOST
    return _UNREACHABLE if _is_about_connecting(error) else _OTHER


def _is_of_sqlite(error: SQLAlchemyError) -> bool:
    """Some of its errors have no name, such as of a text that is no UTF-8."""
    return isinstance(getattr(error, "orig", None), sqlite3.Error)


def _cannot_decode(error: SQLAlchemyError) -> bool:
    return not _code(error) and "decode" in str(getattr(error, "orig", ""))


def _code(error: SQLAlchemyError) -> str:
    original = getattr(error, "orig", None)
    return getattr(original, "sqlite_errorname", None) or getattr(original, "sqlstate", None) or ""


def _is_about_connecting(error: SQLAlchemyError) -> bool:
    return isinstance(error, DBAPIError) and error.statement is None


def _complaint(error: SQLAlchemyError) -> str:
    """The database's message, on one line; the statement and its parameters are left out."""
    words = " ".join(str(getattr(error, "orig", None) or error).split())
    return words if len(words) <= 200 else words[:197] + "..."
