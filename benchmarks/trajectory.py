"""How a method's recommendation improves with what it spends: the same arithmetic for every method."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from benchmarks.method import Method
from benchmarks.problems import Params, Problem, loss, regret
from benchmarks.suites import Allowance


@dataclass(frozen=True)
class Standing:
    """Where a method stands after so many evaluations and so much cost, and the CPU seconds it took to suggest them.

    `value` is the true one of what is recommended, which the method itself never sees; `spent` is in the unit of the
    allowance.
    """

    evaluations: int
    cost: float
    spent: float
    suggest_seconds: float
    params: Params
    value: float
    loss: float
    regret: float | None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def trajectory(method: Method, problem: Problem, *, allowance: Allowance, seed: int) -> Iterator[Standing]:
    """The standing after every evaluation, to the first one that brings what is spent to the allowance or beyond."""
    evaluations, cost, suggest_seconds = 0, 0.0, 0.0
    for step in method.run(problem, budget=allowance.budget(problem), seed=seed):
        evaluations, cost = evaluations + step.evaluations, cost + step.cost
        suggest_seconds += step.suggest_seconds
        spent = allowance.spent(problem, evaluations=evaluations, cost=cost)
        value = problem.full_value(step.recommended)
        yield Standing(
            evaluations,
            cost,
            spent,
            suggest_seconds,
            step.recommended,
            value=value,
            loss=loss(problem, value),
            regret=regret(problem, value),
        )
        if spent >= allowance.amount:
            return


def changes(standings: Sequence[Standing]) -> list[Standing]:
    """Those at which something else is recommended than before, the first included."""
    later = [after for before, after in pairwise(standings) if after.params != before.params]
    return [*standings[:1], *later]
