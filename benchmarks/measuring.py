"""CPU time, of this process and of others: the only time that figures are made of."""

import resource
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass


class CpuMeter:
    """Adds up the CPU seconds of this process, all threads, over the blocks it runs in."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        began = time.process_time()
        try:
            yield
        finally:
            self.seconds += time.process_time() - began


@dataclass(frozen=True)
class Finished:
    """A program that ended: its exit code, the CPU seconds (user and system) of it and its children, what it wrote."""

    code: int
    cpu_seconds: float
    output: str
    errors: str

    @property
    def last_words(self) -> str:
        """The line that says what went wrong."""
        lines = [line for line in self.errors.splitlines() if line.strip()]
        return lines[-1] if lines else f"exit code {self.code}"


def run_program(command: Sequence[str]) -> Finished:
    """Runs a program to its end."""
    before = _children_cpu()
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return Finished(ended.returncode, _children_cpu() - before, ended.stdout, ended.stderr)


def _children_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
