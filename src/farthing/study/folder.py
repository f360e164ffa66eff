"""Where a study keeps its files: checkpoints and logs."""

import weakref
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

from farthing.execution.scratch import remove_abandoned, scratch_folder


def study_folder(name: str, *, place: Path | None) -> Path:
    """A folder of the study's own: in that place, else under `.farthing`.

    Two studies in one folder would delete each other's checkpoints, and feed each other's stages.
    """
    slug = quote(name, safe=" ").replace(".", "%2E").replace(" ", "_")
    return (place or Path.cwd() / ".farthing") / slug


def temporary_folder(owner: object) -> Path:
    """For a study in memory: gone when its owner is, and after a kill when the next such study begins."""
    remove_abandoned()
    held = ExitStack()
    folder = held.enter_context(scratch_folder())
    weakref.finalize(owner, held.close)
    return folder
