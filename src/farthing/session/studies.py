"""The studies of a storage: lists them, and deletes one with its files."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from farthing.caching.stage_cache import FOLDER
from farthing.execution.folder_mark import MARK, carries
from farthing.execution.stored_checkpoints import StoredCheckpoints
from farthing.files.durable import names_in, remove, short_bytes, size_of
from farthing.session.folder import find_folder, mark_for, stored_at
from farthing.storage import MemoryStorage, Storage, StorageLike, StudySummary, open_storage


@dataclass(frozen=True)
class Deleted:
    """The fate of a deleted study's files: the bytes that were freed, or the folder that was left as it is.

    `str(deleted)` says it in a sentence.
    """

    freed: int = 0
    left: Path | str | None = None

    def __str__(self) -> str:
        if self.left is None:
            return f"{short_bytes(self.freed)} of files are freed."
        return f"{str(self.left)!r} does not carry its mark, so nothing in it was deleted. Look at it yourself."


def studies(storage: StorageLike) -> list[StudySummary]:
    """A line for each study of the storage, by name."""
    with _opened(storage) as place:
        return place.list_studies()


def delete_study(name: str, storage: StorageLike) -> Deleted:
    """Deletes a study for good, then its checkpoints and logs, where their folder carries its mark."""
    with _opened(storage) as place:
        record = place.load_study(name)
        mark, is_in_memory = mark_for(record), isinstance(place, MemoryStorage)
        if url := stored_at(mark, settings=record.settings, place=None):
            files = StoredCheckpoints(url, mark=mark)
            is_ours = files.is_ours
            place.delete_study(name)
            return (
                Deleted(freed=files.remove_all()) if is_ours else Deleted(left=url if files.store.names("") else None)
            )
        root = find_folder(mark, settings=record.settings, place=None, beside=place.folder, is_in_memory=is_in_memory)
        is_ours = carries(root, mark)
        place.delete_study(name)
    if is_ours:
        return Deleted(freed=_delete_files(root))
    return Deleted(left=root) if names_in(root) else Deleted()


@contextlib.contextmanager
def _opened(storage: StorageLike) -> Iterator[Storage]:
    """The storage, closed at the end unless it was given open."""
    place = open_storage(storage)
    try:
        yield place
    finally:
        if place is not storage:
            place.close()


def _delete_files(root: Path) -> int:
    """Deletes the folders of the trials and of the stages, and the one they are in if there is nothing else in it."""
    freed = size_of(root)
    for name in names_in(root):
        if name.isdecimal() or name == FOLDER:
            remove(root / name)
    (root / MARK).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        root.rmdir()
    return freed
