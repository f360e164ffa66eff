"""Drives DEHB by its ask and tell: differential evolution over the brackets of Hyperband."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.drivers import elsewhere
from benchmarks.method import Step
from benchmarks.problems import Problem
from farthing.costs import Budget

VERSION = "0.1.2"
"""No other one is run, because records do not name it among the settings."""


@dataclass(frozen=True)
class DEHB:
    """With its own defaults."""

    name: str
    packages: tuple[str, ...] = ()

    @property
    def settings(self) -> Mapping[str, Any]:
        return {}

    def missing(self) -> str | None:
        found = elsewhere.DEHB.version
        other = None if found == VERSION else f"DEHB {VERSION} is compared, got {found}; make bench-setup"
        return elsewhere.DEHB.missing() or other

    def run(self, problem: Problem, *, budget: Budget, seed: int) -> Iterator[Step]:
        return elsewhere.DEHB.run(problem, seed=seed)
