"""Files below a folder, reached by ways without links: nothing that somebody plants there leads out of it.

Each step of a way is opened from the step before, so that none can be exchanged for a link after it was looked at.
"""

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO

_STEP = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # a pipe makes nobody wait
_NO_STEP = ("", ".", "..")


def open_inside(root: Path, name: str) -> BinaryIO:
    """The file of that name, with `/` between its steps, to read. Raises `OSError` if a link is on the way."""
    *folders, last = _steps(name)
    with _folder(root, folders) as folder:
        descriptor = os.open(last, _STEP, dir_fd=folder)
    if not S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "no plain file", name)
    return open(descriptor, "rb")


def files_inside(root: Path, name: str) -> Iterator[str]:
    """The names of all plain files below the folder of that name, sorted in each folder; none if a link leads to it."""
    try:
        with _folder(root, _steps(name)) as folder:
            for place, folders, names, here in os.fwalk(".", dir_fd=folder):
                folders.sort()
                plain = (one for one in sorted(names) if _is_plain(one, here))
                yield from (os.path.normpath(os.path.join(place, one)) for one in plain)
    except OSError:
        return


def _steps(name: str) -> list[str]:
    steps = name.split("/")
    if any(step in _NO_STEP for step in steps):
        raise OSError(errno.ENOENT, "no name of a file below a folder", name)
    return steps


@contextmanager
def _folder(root: Path, steps: Sequence[str]) -> Iterator[int]:
    at = os.open(root, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
    try:
        for step in steps:
            below = os.open(step, _STEP | os.O_DIRECTORY, dir_fd=at)
            os.close(at)
            at = below
        yield at
    finally:
        os.close(at)


def _is_plain(name: str, folder: int) -> bool:
    try:
        return S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False
