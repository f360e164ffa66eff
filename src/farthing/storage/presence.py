"""Notices when a SQLite file is deleted, replaced or cut short under a program that uses it.

SQLite keeps writing to a file that has no name any more, and says that all is well.
"""

import os
import sqlite3
from contextlib import closing
from typing import NamedTuple

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
