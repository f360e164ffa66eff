"""Names data by its content: equal names stand for equal data, in every process and on every machine."""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from farthing.caching.plain_data import Parts, take_apart

CHUNK = 1 << 20


def identity_of_data(thing: object) -> str:
    """For plain data its content, for a path that of the file or of all files in the folder; else NotPlain."""
    parts = Parts()
    form = json.dumps(take_apart(thing, parts), sort_keys=True)
    return digest(_content(form, parts))


def checksum(path: Path) -> str:
    """SHA-256 of a file's content."""
    return digest(_chunks(path))


def digest(pieces: Iterable[bytes]) -> str:
    """SHA-256 of some pieces, one after the other."""
    hashed = hashlib.sha256()
    for piece in pieces:
        hashed.update(piece)
    return hashed.hexdigest()


def _content(form: str, parts: Parts) -> Iterator[bytes]:
    """The data as bytes; each piece begins with its length or its shape, so that none can pass for another."""
    yield form.encode()
    for array in parts.arrays:
        yield f"\n{array.dtype.descr!r} {array.shape} ".encode()
        yield array.tobytes()
    for blob in parts.blobs:
        yield f"\n{len(blob)} ".encode()
        yield blob
    for path in parts.paths:
        for file in _files(path):
            yield f"\n{file.relative_to(path.parent).as_posix()!r} {file.stat().st_size} ".encode()
            yield from _chunks(file)


def _files(path: Path) -> list[Path]:
    """The file itself, or all files in the folder, also those behind links."""
    if not path.is_dir():
        return [path]
    found = (Path(parent, name) for parent, _, names in os.walk(path, followlinks=True) for name in names)
    return sorted(file for file in found if file.is_file())


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk
