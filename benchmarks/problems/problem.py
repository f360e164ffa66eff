"""What every benchmark problem is: something to tune whose answers are known."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from farthing.space import Space

Params: TypeAlias = Mapping[str, Any]
Direction: TypeAlias = Literal["minimize", "maximize"]


class Point(NamedTuple):
    """A point of a learning curve; `cost` is what a run from nothing to here costs. `metrics` as in `Evaluation`."""

    fidelity: Mapping[str, float]
    value: float
    cost: float
    metrics: Mapping[str, float] = {}


class Evaluation(NamedTuple):
    """What a tuner sees of one evaluation: its value, and what a run from nothing to that fidelity costs.

    `trace` is the curve on the way where the problem has one; its last point is the evaluation itself. `gradient` has
    derivatives of the value along params, in their own units, where they are known. `metrics` are the further values
    of a problem that has several (`problems.objectives`).
    """

    value: float
    cost: float
    trace: Sequence[Point] = ()
    gradient: Mapping[str, float] | None = None
    metrics: Mapping[str, float] = {}


class Problem(Protocol):
    """`best_value` is the best true value known, None where nobody knows; `full_cost` that of a usual full run."""

    @property
    def name(self) -> str: ...

    @property
    def direction(self) -> Direction: ...

    @property
    def best_value(self) -> float | None: ...

    @property
    def full_cost(self) -> float: ...

    def missing(self) -> str | None:
        """Why the problem cannot be used here, and what to do about it; None when it can."""

    def space(self) -> Space:
        """What may be tuned. A fidelity with `trace` says that evaluations have a trace."""

    def evaluate(self, params: Params, fidelity: Mapping[str, float], *, seed: int) -> Evaluation:
        """One evaluation as a tuner sees it, noise included. The same arguments give the same answer."""

    def full_value(self, params: Params) -> float:
        """The value by which a configuration is judged: at full fidelity, without noise. No tuner sees it."""


@runtime_checkable
class Judged(Problem, Protocol):
    """A problem that can judge many configurations at once, so that regret can be put on the scale of random search."""

    def __hash__(self) -> int: ...

    def full_values(self, many: Sequence[Params]) -> npt.NDArray[np.float64]: ...


@runtime_checkable
class PricedByMean(Problem, Protocol):
    """A problem that knows what a full run costs on average, over at least a thousand configurations where it can."""

    @property
    def mean_cost(self) -> float: ...


@runtime_checkable
class TellsRows(Problem, Protocol):
    """A problem of recorded runs that says which run a proposal would have, for a tuner that can take it instead."""

    def stand_in(self, params: Params) -> Params: ...


@runtime_checkable
class Differentiable(Problem, Protocol):
    """A problem whose evaluations can have gradients too, at a price."""

    def with_gradient(self) -> Problem: ...


class Span(NamedTuple):
    """Where losses at full fidelity lie: the best of many random configurations, and their median."""

    best: float
    median: float

    def normalised(self, loss: float) -> float:
        """0 is the best of many random configurations, 1 their median. It can be a little below 0."""
        return (loss - self.best) / (self.median - self.best)


RANDOM_CONFIGURATIONS = 20_000


@cache
def span_of(problem: Judged) -> Span:
    """From random configurations that are always the same."""
    values = problem.full_values(random_params(problem, RANDOM_CONFIGURATIONS))
    losses = values if problem.direction == "minimize" else -values
    return Span(float(np.min(losses)), float(np.median(losses)))


def for_one_run(problem: Problem) -> Problem:
    """The problem for one tuning: some answer by what was asked before, and begin anew with `for_run`."""
    begin = getattr(problem, "for_run", None)
    return problem if begin is None else begin()


def random_params(problem: Problem, count: int) -> list[dict[str, Any]]:
    """Random configurations, always the same."""
    encoder = problem.space().encoder
    return encoder.decode_unit(np.random.default_rng(0).random((count, encoder.dimension)))


def loss(problem: Problem, value: float) -> float:
    """A value as something to make small."""
    return value if problem.direction == "minimize" else -value


def regret(problem: Problem, value: float) -> float | None:
    """How much worse a value is than the best known, None where that is not known."""
    return None if problem.best_value is None else loss(problem, value) - loss(problem, problem.best_value)
