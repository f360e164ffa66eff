"""What peers share that train a configuration again at a higher fidelity: who pays what, and what is recommended."""

import json
from collections.abc import Mapping

from benchmarks.drivers.paying import added_cost
from benchmarks.problems import Evaluation, Params, Point, Problem, loss
from farthing.space import Choice, Space


class Incumbent:
    """The best of the runs that went furthest."""

    def __init__(self, problem: Problem) -> None:
        self.params: Params = {}
        self._problem = problem
        self._furthest: tuple[float, float] | None = None

    def see(self, params: Params, reached: Point) -> None:
        rank = (-sum(reached.fidelity.values()), loss(self._problem, reached.value))
        if self._furthest is None or rank < self._furthest:
            self.params, self._furthest = params, rank


class PausedRuns:
    """Evaluates, and charges a configuration that was trained before for what is added only, as our own are."""

    def __init__(self, problem: Problem, *, seed: int) -> None:
        self._problem, self._seed = problem, seed
        self._reached: dict[str, Mapping[str, float]] = {}

    def evaluate(self, params: Params, fidelity: Mapping[str, float]) -> tuple[Evaluation, float]:
        """The evaluation and what it costs."""
        key = json.dumps(dict(params), sort_keys=True)
        evaluation = self._problem.evaluate(params, fidelity, seed=self._seed)
        before = self._reached.get(key)
        self._reached[key] = fidelity
        return evaluation, added_cost(self._problem, params, evaluation, fidelity, before, seed=self._seed)


def plain_value(space: Space, name: str, value: object) -> object:
    """What a peer's value stands for: of an ordered choice it gives the index."""
    parameter = space.parameters[name]
    if isinstance(parameter, Choice):
        return parameter.options[int(str(value))] if parameter.ordered else value
    return value


def the_fidelity(space: Space) -> str:
    """The name of the one fidelity that there is."""
    [name] = space.fidelities
    return name


def rounded(space: Space, amount: float) -> dict[str, float]:
    """The fidelity that an amount stands for; brackets give fractions of epochs too."""
    [(name, declared)] = space.fidelities.items()
    within = min(max(amount, declared.low), declared.high)
    return space.check_fidelity({name: round(within) if declared.integer else within})
