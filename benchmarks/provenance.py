"""What a result is a result of: versions, commit and the number of CPUs."""

import os
import platform
import subprocess
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from benchmarks.problems.data import REPOSITORY
from farthing import __version__


def versions(packages: Iterable[str] = ()) -> dict[str, str | None]:
    """Of Farthing, Python and the packages named; None for one that is not installed."""
    return {
        "farthing": __version__,
        "python": platform.python_version(),
        **{package: _version(package) for package in packages},
    }


@cache
def commit() -> dict[str, Any]:
    """The commit of the working tree, and whether the tree differs from it.

    Results that were added do not count, nor does an environment that is a link, which no rule for folders ignores.
    """
    head = _git("rev-parse", "HEAD")
    changes = _git("status", "--porcelain", "--", ".", ":!benchmarks/results", ":!.venv")
    return {"commit": head, "dirty": None if changes is None else bool(changes)}


def cpu_count() -> int:
    """How many CPUs this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _git(*arguments: str) -> str | None:
    try:
        answer = subprocess.run(
            ["git", "-C", str(REPOSITORY), *arguments], capture_output=True, text=True, check=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()
