"""Remembering: what was acknowledged is still there after a crash."""

from pathlib import Path
from typing import TypeAlias

from farthing.errors import InvalidArgument
from farthing.storage.memory import MemoryStorage
from farthing.storage.storage import Changes, Storage, StudyRecord, StudySummary
from farthing.validation import shown

__all__ = ["Changes", "MemoryStorage", "Storage", "StorageLike", "StudyRecord", "StudySummary", "open_storage"]

StorageLike: TypeAlias = str | Path | Storage
"""`sqlite:///file.db`, the path of such a file, `postgresql://…`, or a storage."""

_SUFFIXES = (".db", ".sqlite", ".sqlite3")
_SCHEMES = ("sqlite", "postgresql", "postgres")


def open_storage(storage: StorageLike | None = None, *, patience: float = 60.0) -> Storage:
    """The storage at an address, created where there is none yet; nothing means one in memory.

    Addresses are `sqlite:///path.db`, the path of a `.db` or `.sqlite` file, and
    `postgresql://user:password@host/database`. A server that goes away is waited for, for up to `patience` seconds.
    """
    if storage is None:
        return MemoryStorage()
    if not isinstance(storage, (str, Path)):
        return _storage(storage)
    from farthing.storage.sql import SqlStorage  # SQLAlchemy takes a third of a second to import

    return SqlStorage(_address(storage), patience=patience)


def _storage(given: Storage) -> Storage:
    if not callable(getattr(given, "create_study", None)):
        raise InvalidArgument(
            f"A storage must be an address, a path or a Storage, got {shown(given)}. Use sqlite:///study.db."
        )
    return given


def _address(storage: str | Path) -> str | Path:
    if isinstance(storage, Path) or "://" not in storage:
        return _file(Path(storage))
    scheme = storage.partition("://")[0].partition("+")[0]
    if scheme not in _SCHEMES:
        raise InvalidArgument(
            f"A storage must be a SQLite file or a PostgreSQL database, got the scheme {scheme!r}. "
            "Use sqlite:///study.db or postgresql://user@host/database."
        )
    return storage


def _file(path: Path) -> Path:
    if path.suffix not in _SUFFIXES:
        raise InvalidArgument(
            f"A storage's file must end in {', '.join(_SUFFIXES[:-1])} or {_SUFFIXES[-1]}, got {str(path)!r}. "
            "Use for example study.db, or sqlite:///PATH for any other name."
        )
    return path.expanduser()
