"""Drives NePS by its ask and tell. It has no conditions: it draws inactive parameters too, and they are dropped.

Its ifBO cannot be compared where its weights cannot be downloaded.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.drivers.elsewhere import NEPS
from benchmarks.method import Step
from benchmarks.problems import Problem
from farthing.costs import Budget


@dataclass(frozen=True)
class NePS:
    """An optimizer by its name there; "auto" is what NePS takes for the space by itself."""

    name: str
    optimizer: str = "auto"
    packages: tuple[str, ...] = ()

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"optimizer": self.optimizer, "version": NEPS.version}

    def missing(self) -> str | None:
        return NEPS.missing()

    def run(self, problem: Problem, *, budget: Budget, seed: int) -> Iterator[Step]:
        return NEPS.run(problem, seed=seed, optimizer=self.optimizer)
