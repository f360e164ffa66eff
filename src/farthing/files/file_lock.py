"""Locks between processes that end with their holder, however it ends."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import gettempdir
from uuid import uuid4

from farthing.files.durable import names_in, remove


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Holds the lock alone; waits for any other holder."""
    descriptor = _locked(path, fcntl.LOCK_EX)
    assert descriptor is not None, "waiting ends with the lock"
    with _held(path, descriptor, is_ours_alone=True):
        yield


@contextmanager
def shared(path: Path) -> Iterator[None]:
    """Holds the lock together with others that share it; waits while another holds it alone."""
    descriptor = _locked(path, fcntl.LOCK_SH)
    assert descriptor is not None, "waiting ends with the lock"
    with _held(path, descriptor, is_ours_alone=False):
        yield


@contextmanager
def exclusive_if_free(path: Path) -> Iterator[bool]:
    """Holds the lock alone if no other holds it: True. Never waits."""
    descriptor = _locked(path, fcntl.LOCK_EX | fcntl.LOCK_NB)
    if descriptor is None:
        yield False
        return
    with _held(path, descriptor, is_ours_alone=True):
        yield True


@contextmanager
def shared_if_free(path: Path) -> Iterator[bool]:
    """Holds the lock together with others that share it: True, unless another holds it alone. Never waits."""
    descriptor = _locked(path, fcntl.LOCK_SH | fcntl.LOCK_NB)
    if descriptor is None:
        yield False
        return
    with _held(path, descriptor, is_ours_alone=False):
        yield True


def _locked(path: Path, mode: int) -> int | None:
    """A descriptor that holds the lock. The file may be removed by its last holder: then there is a new one.

    A link is refused with an `OSError`: its creator would choose which file is created, locked and removed.
    """
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        try:
            fcntl.flock(descriptor, mode)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        if _is_file_of(path, descriptor):
            return descriptor
        os.close(descriptor)


@contextmanager
def _held(path: Path, descriptor: int, *, is_ours_alone: bool) -> Iterator[None]:
    try:
        yield
    finally:
        if is_ours_alone:
            path.unlink(missing_ok=True)
        elif _is_last(path, descriptor):
            with suppress(OSError):  # where it cannot be removed it was there before, and stays
                path.unlink()
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # also for children that were forked meanwhile and have the descriptor
        os.close(descriptor)


def _is_last(path: Path, descriptor: int) -> bool:
    """Whether nobody else shares the lock, which is then held alone. In between another may have had and removed it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return _is_file_of(path, descriptor)


def _is_file_of(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


# ------------------------------------------------------------
# Temporary folders that go with their process, or soon after it where it was killed.


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
