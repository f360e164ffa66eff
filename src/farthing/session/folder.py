"""The folder of a study's files: checkpoints and logs."""

import hashlib
import os
import re
import weakref
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

from farthing.errors import InvalidArgument
from farthing.execution import Checkpoints
from farthing.execution.folder_mark import Mark, carries, is_free, mark_of
from farthing.execution.stored_checkpoints import StoredCheckpoints
from farthing.files.file_lock import remove_abandoned, scratch_folder
from farthing.files.object_store import is_url
from farthing.session.records import Records
from farthing.storage import MemoryStorage, Storage, StudyRecord
from farthing.trials import Json
from farthing.validation import shown

IDENTITY, FOLDER = "identity", "folder"
"""Settings that are stored with a study: what its folder is marked with, and where that is."""

LONGEST_READABLE = 60


class StudyFiles:
    """A study's checkpoints and logs. Nothing is written before a trial runs."""

    def __init__(self, records: Records, mark: Mark, *, place: Path | str | None) -> None:
        self._records = records
        self._mark = mark
        self._place = place
        self._found: Checkpoints | None = None

    @property
    def identity(self) -> str:
        """A mark that tells the study from all others, even if its name or database change."""
        return self._mark.identity

    @property
    def url(self) -> str | None:
        """The address in an object store, from the database or the user; asking does not open it."""
        if self._are_temporary:
            return None
        return stored_at(self._mark, settings=self._records.settings, place=self._place)

    @property
    def checkpoints(self) -> Checkpoints:
        if self._found is None:
            self._found = self._find()
        return self._found

    def to_write(self) -> Checkpoints:
        """For a trial that is about to run: from then on the study remembers where its files are."""
        place = self.checkpoints.place
        if self._records.settings.get(FOLDER) != place and not self._are_temporary:
            self._records.remember({FOLDER: place})
        return self.checkpoints

    def _find(self) -> Checkpoints:
        if self._are_temporary:
            return Checkpoints(temporary_folder(self))
        if url := self.url:
            return StoredCheckpoints(url, mark=self._mark)
        assert not isinstance(self._place, str)
        folder = find_folder(
            self._mark,
            settings=self._records.settings,
            place=self._place,
            beside=self._records.folder,
            is_in_memory=self._records.is_in_memory,
        )
        return Checkpoints(folder, mark=self._mark)

    @property
    def _are_temporary(self) -> bool:
        """Whether the files cannot be found again, so that they are deleted with this object."""
        return self._place is None and self._records.is_in_memory and FOLDER not in self._records.settings


def folder_path(given: str | Path | None) -> Path | str | None:
    """The folder that a user chose, if any: a path, or the URL of a place in an object store."""
    if given is None or is_url(given):
        return given
    if not isinstance(given, (str, Path)):
        raise InvalidArgument(f"A folder must be a text or a path, got {shown(given)}. Write folder='runs'.")
    try:
        os.fsencode(given)
    except UnicodeEncodeError:
        raise InvalidArgument(
            f"A folder must be a path that a disk can hold, got {shown(given)}. Use whole characters: folder='runs'."
        ) from None
    return Path(given).absolute()


def stored_at(mark: Mark, *, settings: Mapping[str, Json], place: Path | str | None) -> str | None:
    """The URL of the study's files, where they are in an object store: the one it has, else one under that place."""
    had = settings.get(FOLDER)
    chosen = _url_of(place, mark.study) if isinstance(place, str) else None
    return chosen or (str(had) if place is None and is_url(had) else None)


def chosen_folder(place: Path | str | None, name: str, *, storage: Storage) -> dict[str, Json]:
    """The setting of a new study whose folder the user chose, so that whoever opens it by name finds the same.

    A folder with other files is not remembered: the first trial says that it is refused. A study in memory cannot be
    opened again.
    """
    if place is None or isinstance(storage, MemoryStorage):
        return {}
    if isinstance(place, str):
        return {FOLDER: _url_of(place, name)}
    folder = place / folder_name(name)
    return {FOLDER: str(folder)} if is_free(folder) else {}


def new_identity() -> dict[str, Json]:
    """The setting by which a new study differs from all others, even if its name or database change."""
    return {IDENTITY: uuid4().hex}


def mark_for(record: StudyRecord) -> Mark:
    """A study that an older version began has no identity of its own: its name and its first moment are its."""
    stored = record.settings.get(IDENTITY)
    return Mark(str(stored) if stored else _digest(f"{record.name}\n{record.created_at!r}"), record.name)


def folder_name(name: str) -> str:
    """A name for the folder of a study that every disk can hold; different studies have different ones."""
    readable = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:LONGEST_READABLE]
    is_whole = readable == name and name[0] != "-" and not _HASHED.fullmatch(name)
    return name if is_whole else f"{readable.lstrip('-')}-{_digest(name)[:12]}".lstrip("-")


def find_folder(
    mark: Mark, *, settings: Mapping[str, Json], place: Path | None, beside: Path | None, is_in_memory: bool
) -> Path:
    """The study's folder: the one it has, else a new one in that place, beside the database or under `.farthing`.

    `beside` is the database's own place for it. Folders that others use are refused in a given place. If no place
    was given, and for a study in memory, which cannot be continued, the name is lengthened instead; under `.farthing`
    always, as studies of several databases may begin there at the same moment.
    """
    had = _had(mark, settings=settings, beside=beside)
    if had is not None and place in (None, had.parent):
        return had
    parent = place or beside
    if parent is None:
        return _lengthened(Path.cwd() / ".farthing" / folder_name(mark.study), mark)
    folder = parent / folder_name(mark.study)
    if carries(folder, mark) or is_free(folder):
        return folder
    if place is not None and not is_in_memory:
        raise _not_free(folder)
    return _lengthened(folder, mark)


def temporary_folder(owner: object) -> Path:
    """For a study in memory: gone when its owner is, and after a kill when the next such study begins."""
    remove_abandoned()
    held = ExitStack()
    folder = held.enter_context(scratch_folder())
    weakref.finalize(owner, held.close)
    return folder


def _url_of(place: str, name: str) -> str:
    return f"{place.rstrip('/')}/{folder_name(name)}"


_HASHED = re.compile(r".*-[0-9a-f]{12}")


def _had(mark: Mark, *, settings: Mapping[str, Json], beside: Path | None) -> Path | None:
    """The folder that the study remembers, or the one beside the database where both were moved or copied together."""
    if not settings.get(FOLDER):
        return None
    if is_url(settings[FOLDER]):
        return None
    stored = Path(str(settings[FOLDER]))
    if beside is not None and stored.parent.suffix == beside.suffix:
        moved = beside / stored.name
        return moved if carries(moved, mark) else stored
    return stored


def _lengthened(folder: Path, mark: Mark) -> Path:
    return folder.with_name(f"{folder.name}-{mark.identity[:8]}")


def _not_free(folder: Path) -> InvalidArgument:
    found = mark_of(folder)
    whose = f"which belongs to the study {found.study!r} of another database" if found else "which holds other files"
    return InvalidArgument(
        f"A study's folder must be its own or empty, got {str(folder)!r}, {whose}. Give another place: folder=…; or, "
        "if its files are not needed, delete it."
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
