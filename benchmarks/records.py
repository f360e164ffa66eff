"""Results as JSON lines, so that a run which was killed loses one of them at most and is continued where it stopped."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from benchmarks.problems.data import REPOSITORY

Record: TypeAlias = dict[str, Any]

RESULTS = REPOSITORY / "benchmarks" / "results"


def results_path(suite: str) -> Path:
    """Where the results of a suite are kept unless another file is named."""
    return RESULTS / f"{suite}.jsonl"


def read_records(path: Path) -> list[Record]:
    """The records of a file that may not exist; a last line that was cut off by a kill is none."""
    if not path.exists():
        return []
    whole, _, _ = path.read_text(encoding="utf-8").rpartition("\n")
    return [json.loads(line) for line in whole.splitlines()]


def append_record(path: Path, record: Mapping[str, Any]) -> None:
    """Adds a line, on the disk when this returns, in place of one that was cut off."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        _drop_cut_line(file)
        file.write(json.dumps(record, allow_nan=False).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def key_of(record: Mapping[str, Any]) -> str:
    """What makes a result the same result: problem, method, seed and settings."""
    return json.dumps([record[part] for part in ("problem", "method", "seed", "settings")], sort_keys=True)


def _drop_cut_line(file: BinaryIO) -> None:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 1))
    if file.read(1) not in (b"", b"\n"):
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
