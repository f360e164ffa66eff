"""Answers that are not JSON."""

from dataclasses import dataclass
from typing import BinaryIO


@dataclass(frozen=True)
class Download:
    """A file: the browser keeps it, unless `is_shown`."""

    name: str
    media: str
    content: bytes | BinaryIO
    is_shown: bool = False
