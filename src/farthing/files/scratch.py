"""Temporary folders that go with their process, or soon after it where it was killed."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import gettempdir
from uuid import uuid4

from farthing.files.durable import names_in, remove
from farthing.files.file_lock import exclusive, exclusive_if_free

PREFIX = "farthing-scratch-"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for as long as the block lasts; it is missing where none can be made, say on a full disk."""
    folder = Path(gettempdir(), f"{PREFIX}{uuid4().hex}")
    with ExitStack() as held:
        with suppress(OSError):
            held.enter_context(exclusive(_lock(folder)))
            folder.mkdir(mode=0o700)
        held.callback(remove, folder)
        yield folder


def remove_abandoned() -> None:
    """Removes what processes that were killed left, of any study on this machine."""
    places = {Path(gettempdir(), name).with_suffix("") for name in names_in(Path(gettempdir())) if _is_ours(name)}
    for folder in places:
        with suppress(OSError), exclusive_if_free(_lock(folder)) as is_free:
            if is_free:
                remove(folder)


def is_scratch(folder: Path) -> bool:
    """Whether the folder goes with its process, so that nothing in it need outlast a power cut."""
    return _is_ours(folder.name)


def _is_ours(name: str) -> bool:
    return name.startswith(PREFIX)


def _lock(folder: Path) -> Path:
    return folder.with_suffix(".lock")
