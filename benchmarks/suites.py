"""The named benchmarks: which methods are compared on which problems, and where they are judged."""

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from benchmarks.problems import Problem
from benchmarks.problems.synthetic import FUNCTIONS
from benchmarks.problems.tables import TABLES
from farthing.costs import Budget

Unit: TypeAlias = Literal["evaluations", "full runs"]


@dataclass(frozen=True)
class Allowance:
    """What a method may spend: so many evaluations, or the cost of so many usual runs at full fidelity."""

    amount: float
    unit: Unit

    def spent(self, problem: Problem, *, evaluations: int, cost: float) -> float:
        """What was spent, in this unit."""
        return evaluations if self.unit == "evaluations" else cost / problem.full_cost

    def budget(self, problem: Problem) -> Budget:
        """The same for a study."""
        if self.unit == "evaluations":
            return Budget(trials=round(self.amount))
        return Budget(cost=self.amount * problem.full_cost)

    def to_json(self) -> dict[str, Any]:
        return {"amount": self.amount, "unit": self.unit}


@dataclass(frozen=True)
class Contest:
    """Methods that are comparable, on problems of one kind. `judged_at` are amounts spent, the last one the end."""

    name: str
    problems: tuple[str, ...]
    methods: tuple[str, ...]
    judged_at: tuple[float, ...]
    unit: Unit

    @property
    def allowance(self) -> Allowance:
        return Allowance(self.judged_at[-1], self.unit)


@dataclass(frozen=True)
class Suite:
    """Contests that are run and reported together; seeds are 0, 1, …, and the same for all methods."""

    name: str
    contests: tuple[Contest, ...]
    seeds: int = 10

    def quick(self) -> "Suite":
        """The same with two seeds, ended where it is judged first: to see that everything works."""
        shorter = tuple(replace(contest, judged_at=contest.judged_at[:1]) for contest in self.contests)
        return Suite(f"{self.name}-quick", shorter, seeds=2)


_ENTRIES = (
    Suite(
        "foundation",
        (
            Contest(
                "full fidelity",
                problems=tuple(problem.name for problem in (*FUNCTIONS, *TABLES)),
                methods=("random", "sobol", "optuna-random", "optuna-tpe"),
                judged_at=(30, 60),
                unit="evaluations",
            ),
            Contest(
                "learning curves",
                problems=("lcbench/3945", "lcbench/126025", "lcbench/167104"),
                methods=("random", "asha", "hyperband", "optuna-tpe-hyperband"),
                judged_at=(2, 5, 10),
                unit="full runs",
            ),
        ),
    ),
)

SUITES = {suite.name: suite for suite in _ENTRIES}
