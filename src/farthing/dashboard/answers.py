"""Answers that are not JSON."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Download:
    """A file: the browser keeps it, unless `is_shown`."""

    name: str
    media: str
    content: bytes | Path
    is_shown: bool = False
