"""What a problem with several objectives or with constraints is, and how the evaluations of one tuning are judged."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from benchmarks.hypervolume import Array, front_of, hypervolume
from benchmarks.problems.problem import Direction, Evaluation, Params, Point, Problem
from farthing.space import Space
from farthing.trials.objectives import AtLeast, AtMost, Bound, Objective

MARGIN = 0.1
"""A table's reference lies beyond the worst values on its front by this part of the front's range."""


class Scale(NamedTuple):
    """A loss for each objective, beyond which nothing counts, and the hypervolume of the best front known below it.

    With one objective there is no reference, and `whole` is the best value.
    """

    reference: tuple[float, ...]
    whole: float


class WithObjectives(ABC):
    """An evaluation has the first objective as its value; its metrics are the others and the quantities under a limit.

    Several objectives are judged by their hypervolume below a reference, as a share of that of the best front known, so
    that 1 is all there is. One objective is judged by the best value that keeps the constraints.
    """

    name: str
    objectives: tuple[Objective, ...]
    constraints: Mapping[str, Bound]

    @property
    @abstractmethod
    def scale(self) -> Scale: ...

    @property
    @abstractmethod
    def full_cost(self) -> float: ...

    @abstractmethod
    def missing(self) -> str | None: ...

    @abstractmethod
    def space(self) -> Space: ...

    @abstractmethod
    def evaluate(self, params: Params, fidelity: Mapping[str, float], *, seed: int) -> Evaluation: ...

    @abstractmethod
    def true_values(self, params: Params) -> dict[str, float]:
        """Every objective and quantity under a limit, at full fidelity and without noise. No tuner sees it."""

    @property
    def direction(self) -> Direction:
        """The hypervolume should be large."""
        return "maximize" if len(self.objectives) > 1 or not self.objectives[0].minimize else "minimize"

    @property
    def best_value(self) -> float:
        return 1.0 if len(self.objectives) > 1 else self.scale.whole

    def full_value(self, params: Params) -> float:
        """Of this configuration alone."""
        found = Found(self)
        return found.after(params)

    def is_feasible(self, values: Mapping[str, float]) -> bool:
        return all(limit.excess(values[name]) <= 0.0 for name, limit in self.constraints.items())

    @property
    def reference_as_limits(self) -> dict[str, Bound]:
        """For each objective the value beyond which nothing counts."""
        return {
            one.name: AtMost(worst) if one.minimize else AtLeast(-worst)
            for one, worst in zip(self.objectives, self.scale.reference, strict=True)
        }

    def losses(self, values: Mapping[str, float]) -> Array:
        return np.array([objective.sign * values[objective.name] for objective in self.objectives])


class Found:
    """What the evaluations of one tuning come to, by true values; it goes through them one by one.

    `params` are those that changed it last, and `infeasible` counts the evaluations beyond a limit.
    """

    def __init__(self, problem: WithObjectives) -> None:
        self.params: Params = {}
        self.infeasible = 0
        self._problem = problem
        self._front = np.zeros((0, len(problem.objectives)))
        self._best = self._score()
        self.limited = bool(problem.constraints)

    def after(self, params: Params) -> float:
        """The hypervolume as a share of the whole, or the best feasible value; the worst there is without one.

        A run that was not trained in full brings nothing: its params are empty.
        """
        problem = self._problem
        values = problem.true_values(params) if params else None
        if values is not None and not problem.is_feasible(values):
            self.infeasible += 1
        elif values is not None:
            self._front = front_of(np.vstack([self._front, problem.losses(values)]))
            if (score := self._score()) != self._best or not self.params:
                self.params, self._best = params, score
        return self._best

    def _score(self) -> float:
        problem = self._problem
        if len(problem.objectives) > 1:
            return hypervolume(self._front, problem.scale.reference) / problem.scale.whole
        return problem.objectives[0].sign * float(self._front.min(initial=np.inf))


def scale_of_front(front: Array) -> Scale:
    """The reference lies beyond the worst values on the front by a tenth of its range."""
    low, high = front.min(axis=0), front.max(axis=0)
    reference = tuple((high + MARGIN * (high - low)).tolist())
    return Scale(reference, hypervolume(front, reference))


def told(problem: Problem, found: Evaluation | Point) -> float | dict[str, float]:
    """What a study is told of an evaluation: its value, or all values by name."""
    if isinstance(problem, WithObjectives):
        return values_by_name(problem, found)
    return found.value


def values_by_name(problem: WithObjectives, found: Evaluation | Point) -> dict[str, float]:
    return {problem.objectives[0].name: found.value, **found.metrics}


def aims_of(problem: Problem) -> dict[str, Any]:
    """What a study is to optimise, as its arguments."""
    if not isinstance(problem, WithObjectives):
        return {problem.direction: "value"}
    named = {
        direction: [one.name for one in problem.objectives if one.direction == direction]
        for direction in ("minimize", "maximize")
    }
    return {direction: names for direction, names in named.items() if names} | {"constraints": problem.constraints}


def recommended_of_full(problem: Problem, params: Params, reached: Mapping[str, float]) -> Params:
    """The params of a run that was trained in full, nothing of any other."""
    full = problem.space().full_fidelity
    return params if all(reached.get(name, 0.0) >= amount for name, amount in full.items()) else {}
