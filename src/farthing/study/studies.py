"""The studies of a storage: lists them, and deletes one with its files."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree

from farthing.execution import Checkpoints
from farthing.execution.stage_cache import FOLDER
from farthing.storage import Storage, StudySummary, open_storage
from farthing.study.settings import StorageLike


def studies(storage: StorageLike) -> list[StudySummary]:
    """A line for each study of the storage, by name."""
    with _opened(storage) as place:
        return place.list_studies()


def delete_study(name: str, storage: StorageLike) -> int:
    """Deletes a study for good, then its checkpoints and logs; returns the bytes that are freed."""
    with _opened(storage) as place:
        folder = place.load_study(name).settings.get("folder")
        place.delete_study(name)
    return _delete_files(Path(folder)) if folder else 0


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
    freed = Checkpoints(root).disk_use()
    rmtree(root / FOLDER, ignore_errors=True)
    for folder in root.glob("[0-9]*"):
        if folder.name.isdecimal():
            rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):
        root.rmdir()
    return freed
