"""What the tests of faults share."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


class StepClock:
    """The wall clock of the programs that are started with its `environment`; their monotonic clocks stay as they are.

    `set` moves it to an offset such as "+1000d", at once and for all of them.
    """

    def __init__(self, folder: Path, library: str) -> None:
        self._offset = folder / "offset"
        self.set("+0")
        self.environment = {
            "LD_PRELOAD": library,
            "FAKETIME_TIMESTAMP_FILE": str(self._offset),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def set(self, offset: str) -> None:
        changed = self._offset.with_suffix(".new")
        changed.write_text(offset)
        changed.rename(self._offset)


def _install_faketime() -> None:
    if shutil.which("faketime") is None and os.geteuid() == 0 and shutil.which("apt-get"):
        subprocess.run(["apt-get", "install", "--yes", "--quiet", "faketime"], capture_output=True)


@pytest.fixture
def step_clock() -> Iterator[StepClock]:
    """Where Debian's `faketime` is absent and cannot be installed, tests are skipped, except in CI, where they fail."""
    _install_faketime()
    if shutil.which("faketime") is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("faketime is absent: apt-get install faketime")
    asked = subprocess.run(["faketime", "-f", "+0", "printenv", "LD_PRELOAD"], capture_output=True, text=True)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # a server that runs as somebody else reads the offset too
        yield StepClock(Path(folder), asked.stdout.strip())
