"""Drives the searchers of FLAML, which begin at a cheap configuration that the user names."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from benchmarks.drivers import elsewhere
from benchmarks.drivers.cheap import cheap_space
from benchmarks.method import Step
from benchmarks.problems import Problem
from farthing.costs import Budget
from farthing.space import Choice

VERSION = "2.7.0"
"""No other one is run, because records do not name it among the settings."""


@dataclass(frozen=True)
class FLAML:
    """With its own defaults, told the costs, the budget and the same cheap ends that our strategies are told."""

    name: str
    searcher: Literal["CFO", "BlendSearch"]
    packages: tuple[str, ...] = ()

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"searcher": self.searcher, "cheap": True}

    def missing(self) -> str | None:
        found = elsewhere.FLAML.version
        other = None if found == VERSION else f"FLAML {VERSION} is compared, got {found}; make bench-setup"
        return elsewhere.FLAML.missing() or other

    def run(self, problem: Problem, *, budget: Budget, seed: int) -> Iterator[Step]:
        return elsewhere.FLAML.run(
            problem, seed=seed, searcher=self.searcher, cost_budget=budget.cost, cheap=cheapest(problem)
        )


def cheapest(problem: Problem) -> dict[str, Any]:
    """The cheap values as the peer knows them: of an ordered choice the index."""
    declared = {name: one for name, one in cheap_space(problem).parameters.items() if one.cheap_values}
    return {
        name: one.index_of(one.cheap_values[0]) if isinstance(one, Choice) and one.ordered else one.cheap_values[0]
        for name, one in declared.items()
    }
