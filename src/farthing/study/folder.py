"""Where a study keeps its files: checkpoints and logs."""

import weakref
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

from farthing.execution.scratch import remove_abandoned, scratch_folder
from farthing.storage import Storage


def study_folder(storage: Storage, name: str) -> Path:
    """Beside the database where it is a file, otherwise under `.farthing` in the current folder."""
    slug = quote(name, safe=" ").replace(".", "%2E").replace(" ", "_")
    place = storage.folder
    return (place if place is not None else Path.cwd() / ".farthing") / slug


def temporary_folder(owner: object) -> Path:
    """For a study in memory: gone when its owner is, and after a kill when the next such study begins."""
    remove_abandoned()
    held = ExitStack()
    folder = held.enter_context(scratch_folder())
    weakref.finalize(owner, held.close)
    return folder
