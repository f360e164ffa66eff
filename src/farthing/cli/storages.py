"""Finds the storage and the study of a command."""

import os
import re
import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import click

from farthing.cli.run_plan import import_strategy, stored_cost
from farthing.errors import FarthingError, InvalidArgument, StorageError, StudyNotFound
from farthing.storage import Storage, open_storage
from farthing.storage.storage import ReadsOutlines
from farthing.study import Study
from farthing.trials import DeclaredCost
from farthing.validation import did_you_mean, listed

VARIABLE = "FARTHING_STORAGE"
DEFAULT = "sqlite:///farthing.db"
OUR_TABLES = {"study", "trial", "measurement"}
SQLITE_URL = re.compile(r"sqlite(?:\+\w+)?:///(?P<path>[^?]*)(?P<options>\?.*)?")
PASSWORD = re.compile(r"(://[^/@:]*):[^/@]*@")


@dataclass(frozen=True)
class StorageAddress:
    """The address of a storage: a path or a URL. The path of a file is absolute."""

    place: Path | str

    @property
    def file(self) -> Path | None:
        if isinstance(self.place, Path):
            return self.place
        match = SQLITE_URL.fullmatch(self.place)
        return Path(match["path"]) if match else None

    @property
    def option(self) -> str:
        """The option that a later command in this folder needs to find the same storage; often none."""
        if [known.file or known.place for known in _usual_addresses()] == [self.file or self.place]:
            return ""
        return f" --storage {shlex.quote(str(self))}"

    def __str__(self) -> str:
        """Short, and without a password."""
        if self.file is None:
            return PASSWORD.sub(r"\1:***@", str(self.place))
        return os.path.relpath(self.file) if self.file.is_relative_to(Path.cwd()) else str(self.file)


def address_of(named: str | Path) -> StorageAddress:
    """The address of a storage that is named by a URL or a path; relative paths start at the current folder."""
    if isinstance(named, Path) or "://" not in named:
        return StorageAddress(Path(named).expanduser().absolute())
    match = SQLITE_URL.fullmatch(named)
    if match and match["path"] not in ("", ":memory:"):
        return StorageAddress(f"sqlite:///{Path(match['path']).expanduser().absolute()}{match['options'] or ''}")
    return StorageAddress(named)


def address_to_write(given: str | None, in_file: str | None) -> StorageAddress:
    """The storage of a new study: from the command, else the study file, else the environment, else `farthing.db`."""
    return address_of(given or in_file or os.environ.get(VARIABLE) or DEFAULT)


def address_to_read(given: str | None) -> StorageAddress:
    """The storage of existing studies: from the command, else the environment, else the only database of the folder."""
    candidates = [address_of(given)] if given else _usual_addresses()
    if len(candidates) != 1:
        raise StorageError(_none_or_several(candidates))
    file = candidates[0].file
    if file is not None and not file.is_file():
        raise StorageError(
            f"A storage to read must exist, got {str(candidates[0])!r}, which does not. "
            "Check the path, or fill it first: farthing run FILE.toml."
        )
    return candidates[0]


@contextmanager
def opened_storage(address: StorageAddress, *, patience: float = 60.0) -> Iterator[Storage]:
    """With an error that damage explains instead of one that it leads to."""
    with closing(open_storage(address.place, patience=patience)) as storage:
        try:
            yield storage
        except (FarthingError, click.ClickException, click.Abort, click.exceptions.Exit, OSError):
            raise
        except Exception as error:
            if faults := _faults(storage):
                raise StorageError(
                    f"A storage to read must be intact, got {len(faults)} faults, the first of them: {faults[0]} "
                    "`farthing check` lists them; restore the database from a copy."
                ) from error
            raise


def _faults(storage: Storage) -> list[str]:
    try:
        return storage.check()
    except Exception as error:
        return [f"{type(error).__name__}: {error}."]


@contextmanager
def opened_study(
    name: str | None, address: StorageAddress, *, imports: bool = False, cost: DeclaredCost | None = None
) -> Iterator[Study]:
    """The study of that name; without a name, the only one there is.

    With `imports`, a strategy and a declared cost that the database names may be imported, from beside the study file
    too, and are.
    """
    with opened_storage(address) as storage, closing(_load(storage, name, imports=imports, cost=cost)) as study:
        if imports:
            import_strategy(study)
        yield study


def not_followed(url: str) -> InvalidArgument:
    """For a command that only reads: whoever wrote the database may have named any address."""
    return InvalidArgument(
        f"A store that only a database names is asked if you say so, got {url!r}. "
        "Add --follow, if you trust the database."
    )


def _load(storage: Storage, name: str | None, *, imports: bool, cost: DeclaredCost | None) -> Study:
    found = _only_study(storage) if name is None else name
    try:
        record = storage.load_study(found)
    except StudyNotFound:
        raise _not_found(found, _names(storage)) from None
    named = stored_cost(record.settings) if imports and cost is None else cost
    return Study.load(found, storage, cost=named)


def _only_study(storage: Storage) -> str:
    names = _names(storage)
    if len(names) != 1:
        there = f"{len(names)}: {listed(names)}" if names else "none at all"
        raise InvalidArgument(f"A storage with one study needs no name, got {there}. Name a study, or run one first.")
    return names[0]


def _names(storage: Storage) -> list[str]:
    """Without adding up what is in the studies, where the storage can."""
    if isinstance(storage, ReadsOutlines):
        return sorted(storage.versions())
    return [summary.record.name for summary in storage.list_studies()]


def _not_found(name: str, names: list[str]) -> StudyNotFound:
    rule = f"A study must be among {listed(names)}" if names else "A study must be in the storage"
    remedy = did_you_mean(name, names, otherwise="`farthing list` shows the studies.")
    return StudyNotFound(f"{rule}, got {name!r}. {remedy}")


def databases_in(folder: Path) -> list[Path]:
    """The Farthing databases among the .db files of a folder."""
    return [path for path in sorted(folder.glob("*.db")) if _is_ours(path)]


def _usual_addresses() -> list[StorageAddress]:
    """The storage of a command without `--storage`."""
    named = os.environ.get(VARIABLE)
    return [address_of(named)] if named else [address_of(path) for path in databases_in(Path.cwd())]


def _is_ours(path: Path) -> bool:
    """Whether our tables are in the file; asked read-only, because it may belong to anybody."""
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True)) as connection:
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.Error:
        return False
    return tables >= OUR_TABLES


def _none_or_several(candidates: list[StorageAddress]) -> str:
    there = f"{len(candidates)}: {', '.join(map(str, candidates))}" if candidates else f"none in {str(Path.cwd())!r}"
    remedy = "Choose one" if candidates else "Say where it is"
    return f"A command needs one Farthing database, got {there}. {remedy} with --storage or ${VARIABLE}."
