"""Drives Farthing's own strategies by ask and tell, on a study in memory."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from benchmarks.measuring import CpuMeter
from benchmarks.method import Step
from benchmarks.problems import Evaluation, Problem
from farthing.costs import Budget
from farthing.errors import NoSuggestion
from farthing.study import Study
from farthing.systems import Strategy
from farthing.trials import Trial


@dataclass(frozen=True)
class Ours:
    """One strategy. What a continued trial costs is the difference to the trial it continues."""

    name: str
    strategy: Strategy
    packages: tuple[str, ...] = ("numpy", "scipy")

    @property
    def settings(self) -> Mapping[str, Any]:
        return self.strategy.to_json()

    def missing(self) -> str | None:
        return None

    def run(self, problem: Problem, *, budget: Budget, seed: int) -> Iterator[Step]:
        aim: dict[str, Any] = {problem.direction: "value"}
        with closing(Study(problem.space(), **aim, strategy=self.strategy, seed=seed, cost_unit="cost")) as study:
            try:
                while True:
                    yield _one_evaluation(study, problem, budget, seed=seed)
            except NoSuggestion:
                return


def _one_evaluation(study: Study, problem: Problem, budget: Budget, *, seed: int) -> Step:
    meter = CpuMeter()
    with meter.running():
        asked = study.ask(budget=budget)
    before = _continued(study, asked.number)
    evaluation = problem.evaluate(asked.params, asked.fidelity, seed=seed)
    paid = problem.evaluate(asked.params, before.fidelity, seed=seed).cost if before else 0.0
    cost = max(0.0, evaluation.cost - paid)
    with meter.running():
        study.tell(asked, evaluation.value, cost=cost, trace=_new_points(evaluation, before))
    return Step(study.best.params, cost, meter.seconds)


def _continued(study: Study, number: int) -> Trial | None:
    history = study.history
    source = history[number].resume_from
    return None if source is None else history[source]


def _new_points(evaluation: Evaluation, before: Trial | None) -> list[tuple[Mapping[str, float], float]]:
    """The points of the curve that this trial adds, its last one apart, which is its value."""
    reached = before.fidelity if before else {}
    return [
        (point.fidelity, point.value)
        for point in evaluation.trace[:-1]
        if all(amount > reached.get(name, 0.0) for name, amount in point.fidelity.items())
    ]
