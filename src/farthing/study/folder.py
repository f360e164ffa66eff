"""Where a study keeps its files: checkpoints and logs."""

import tempfile
import weakref
from pathlib import Path
from shutil import rmtree
from urllib.parse import quote

from farthing.storage import Storage


def study_folder(storage: Storage, name: str) -> Path:
    """Beside the database where it is a file, otherwise under `.farthing` in the current folder."""
    slug = quote(name, safe=" ").replace(".", "%2E").replace(" ", "_")
    place = storage.folder
    return (place if place is not None else Path.cwd() / ".farthing") / slug


def temporary_folder(owner: object) -> Path:
    """For a study in memory: gone when its owner is."""
    folder = Path(tempfile.mkdtemp(prefix="farthing-"))
    weakref.finalize(owner, rmtree, folder, ignore_errors=True)
    return folder
