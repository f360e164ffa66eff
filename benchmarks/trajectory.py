"""How a method's recommendation improves with what it spends: the same arithmetic for every method."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from math import isfinite
from typing import Any

from benchmarks.method import Method
from benchmarks.problems import Params, Problem, loss, regret
from benchmarks.problems.objectives import Found, WithObjectives
from benchmarks.problems.problem import for_one_run
from benchmarks.suites import Allowance


@dataclass(frozen=True)
class Standing:
    """The state of a method after some evaluations and their cost, and the CPU seconds it took to suggest them.

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
    tallies: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Without what no report reads: there are thousands of them in a repository."""
        form = asdict(self)
        return {
            name: float(f"{value:.6g}") if isinstance(value, float) else value
            for name, value in form.items()
            if name not in ("params", "tallies", "suggest_seconds")
        }


def trajectory(method: Method, problem: Problem, *, allowance: Allowance, seed: int) -> Iterator[Standing]:
    """The standing after every evaluation, to the first one that brings what is spent to the allowance or beyond.

    Of several objectives all evaluations count, not a recommendation.
    """
    problem = for_one_run(problem)
    found = Found(problem) if isinstance(problem, WithObjectives) else None
    evaluations, cost, suggest_seconds = 0, 0.0, 0.0
    tallies: dict[str, float] = {}
    for step in method.run(problem, budget=allowance.budget(problem), seed=seed):
        evaluations, cost = evaluations + step.evaluations, cost + step.cost
        suggest_seconds += step.suggest_seconds
        spent = allowance.spent(problem, evaluations=evaluations, cost=cost, suggesting=suggest_seconds)
        value = problem.full_value(step.recommended) if found is None else found.after(step.recommended)
        params = step.recommended if found is None else found.params
        tallies = {name: tallies.get(name, 0.0) + amount for name, amount in step.tallies.items()}
        if found is not None and found.limited:
            tallies = {"infeasible": float(found.infeasible)}
        yield Standing(
            evaluations,
            cost,
            spent,
            suggest_seconds,
            params,
            value=value,
            loss=loss(problem, value),
            regret=regret(problem, value),
            tallies=tallies,
        )
        if spent >= allowance.amount:
            return


def tallies_at(standings: Sequence[Standing], judged_at: Sequence[float]) -> dict[str, dict[str, float]]:
    """The tallies at each amount spent; empty if the driver keeps none."""
    found = {}
    for amount in judged_at:
        reached = [standing for standing in standings if standing.spent <= amount * (1 + 1e-9) and standing.tallies]
        if reached:
            found[f"{amount:g}"] = dict(reached[-1].tallies) | {"evaluations": reached[-1].evaluations}
    return found


def changes(standings: Sequence[Standing]) -> list[Standing]:
    """Those at which something else is recommended than before, the first included; none without anything feasible."""
    later = [after for before, after in pairwise(standings) if after.params != before.params]
    return [one for one in (*standings[:1], *later) if isfinite(one.loss)]
