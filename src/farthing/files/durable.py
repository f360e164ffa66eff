"""Folders on the disk: put there for good, measured and removed."""

import os
from pathlib import Path
from shutil import rmtree
from stat import S_ISREG


def flush(path: Path) -> None:
    """Puts a file, or the names in a folder, on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def flush_tree(folder: Path) -> None:
    """Puts all files and then the folders that name them on the disk; links are not followed."""
    for parent, _, files in os.walk(folder, topdown=False):
        for file in files:
            path = Path(parent, file)
            if path.is_file() and not path.is_symlink():
                flush(path)
        flush(Path(parent))


def remove(folder: Path) -> int:
    """Removes a folder, if it is there; returns the bytes freed. Of a link only the link goes."""
    if folder.is_symlink():
        folder.unlink(missing_ok=True)
        return 0
    freed = size_of(folder)
    rmtree(folder, ignore_errors=True)
    return freed


def size_of(folder: Path) -> int:
    """Bytes in all files of a folder; links in it are not followed. Files deleted meanwhile do not count."""
    sizes = (_size(Path(parent, name)) for parent, _, names in os.walk(folder) for name in names)
    return sum(sizes)


def _size(path: Path) -> int:
    try:
        found = path.lstat()
    except OSError:
        return 0
    return found.st_size if S_ISREG(found.st_mode) else 0


def names_in(folder: Path) -> list[str]:
    """The names in a folder, sorted; none where there is no folder."""
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []


def short_bytes(count: int) -> str:
    """12.3 MB"""
    number, unit = float(count), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if number < 1000:
            break
        number, unit = number / 1000, larger
    return f"{number:.3g} {unit}"
