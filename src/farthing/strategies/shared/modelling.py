"""The one translator between histories and arrays: strategies see trials, numerics see rows."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import mul

import numpy as np

from farthing.acquisition.maximize import Domain
from farthing.models.gp import GP
from farthing.models.kernels import CategoryOverlap, Constant, Kernel, Matern52
from farthing.models.linalg import Array
from farthing.space.encoding import Encoder
from farthing.trials import History, State, Trial

FINEST_GRID = 1024
"""Grids with more values than this are searched as if they were continuous; decoding rounds. A limit on time."""


@dataclass(frozen=True, eq=False)
class Observations:
    """The data of a model of the full-fidelity loss: a row for each trial that has ended.

    Failed trials count with the worst loss seen, so that they are not proposed again; they have no cost
    to learn from, nor do trials without one. `pending` are the rows of trials in flight.
    """

    X: Array
    loss: Array
    cost: Array
    pending: Array

    @property
    def count(self) -> int:
        return int(self.loss.size)


def observe(history: History) -> Observations:
    """The observations in a history, of trials at full fidelity."""
    encoder, ended = history.problem.space.encoder, ended_at_full(history)
    measured = np.array([_loss(history, trial) for trial in ended], dtype=float)
    is_known = np.isfinite(measured)
    worst = float(np.max(measured[is_known])) if is_known.any() else 0.0
    return Observations(
        X=encoder.encode([trial.params for trial in ended]) if is_known.any() else np.zeros((0, encoder.dimension)),
        loss=np.where(is_known, measured, worst) if is_known.any() else np.zeros(0),
        cost=costs_of(ended) if is_known.any() else np.zeros(0),
        pending=pending_rows(history),
    )


def ended_at_full(history: History) -> list[Trial]:
    """The trials at full fidelity that have ended, by number."""
    in_flight = {trial.number for trial in history.in_flight}
    return [trial for trial in history.full if trial.number not in in_flight]


def pending_rows(history: History) -> Array:
    """The rows of the trials at full fidelity that are in flight."""
    return history.problem.space.encoder.encode([trial.params for trial in history.in_flight if history.is_full(trial)])


def kernel_over(
    encoder: Encoder, *, columns: Iterable[int] | None = None, radial: Callable[[tuple[int, ...]], Kernel] = Matern52
) -> Kernel:
    """A radial kernel with a lengthscale for each number, times an overlap kernel for the categories, times a scale.

    Of all columns, unless some are named.
    """
    chosen = range(encoder.dimension) if columns is None else [int(j) for j in columns]
    numbers = tuple(j for j in chosen if j not in encoder.categories)
    categories = tuple(j for j in chosen if j in encoder.categories)
    parts: list[Kernel] = [Constant()]
    if numbers:
        parts.append(radial(numbers))
    if categories:
        parts.append(CategoryOverlap(categories))
    return reduce(mul, parts)


def domain_of(encoder: Encoder) -> Domain:
    """The domain in which an acquisition function over the space is maximised."""
    counts = encoder.categories | encoder.discrete
    return Domain(
        grids=tuple(
            encoder.grid(j) if counts.get(j, np.inf) <= FINEST_GRID else None for j in range(encoder.dimension)
        ),
        categories=frozenset(encoder.categories),
        snap=encoder.without_inactive,
    )


def known_rows(gp: GP, encoder: Encoder) -> Array:
    """The configurations seen; where a parameter was retired, with its kept value."""
    return encoder.snap(gp.X) if encoder.has_retired else gp.X


def incumbent(gp: GP, encoder: Encoder) -> float:
    """The lowest posterior mean among the configurations seen."""
    return float(gp.mean(known_rows(gp, encoder)).min())


def _loss(history: History, trial: Trial) -> float:
    has_value = trial.value is not None and trial.state in (State.DONE, State.PRUNED)
    return history.loss(trial.value) if has_value and trial.value is not None else np.nan


def costs_of(trials: Sequence[Trial]) -> Array:
    """The cost of each trial; NaN if it says nothing about the params."""
    return np.array([trial.cost if trial.state is State.DONE and trial.cost > 0 else np.nan for trial in trials])
