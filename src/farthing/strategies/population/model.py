"""The model of a population: a time-varying process of the change of the loss over an interval with some params."""

from dataclasses import dataclass
from functools import reduce
from operator import mul

import numpy as np

from farthing.acquisition.acquisition import with_columns
from farthing.models.fidelity_kernels import TimeDecay
from farthing.models.fitting import Standardise, fit, hyperparameter_posterior
from farthing.models.gp import GP
from farthing.models.kernels import SE, CategoryOverlap, Constant, Kernel, Parameter
from farthing.models.linalg import Array
from farthing.space.encoding import Encoder
from farthing.strategies.population.members import Members, interval_of, is_success
from farthing.strategies.shared.surrogate import last_fit
from farthing.trials import Params, Prediction, Trial

MOST_ROWS = 150
"""Number of the latest changes in the model: older ones are forgotten anyway. A limit on time, not tuned."""

NOISE = Parameter("noise", median=3e-2, spread=2.0, lower=1e-3, upper=1.0)
"""Scores of training are noisy; without the floor the model would explain noise by ever shorter lengthscales.

The numbers are a guess; no others are on record.
"""

FORGETTING = Parameter("forgetting", median=0.15, spread=1.0, lower=1e-4, upper=0.9, scale="logit")
"""The gain from some params changes within a few intervals. Chosen on `TUNING` in `benchmarks/population/tasks.py`."""


@dataclass(frozen=True, eq=False)
class RewardChanges:
    """Rows X (n, D + 1), the last column the interval, and by how much the loss changed during it (n,)."""

    X: Array
    change: Array

    @property
    def count(self) -> int:
        return int(self.change.size)


def observed_changes(members: Members, *, before: int | None) -> RewardChanges:
    """The change over each finished interval, with the params in force during it, against the trial it resumed.

    After cloning that is the donor's. First intervals have nothing to compare with. With `before`, only intervals
    before that one count; of all rows the last `MOST_ROWS` do.
    """
    finished = [
        (interval, member, trial)
        for interval, own in members.successes.items()
        if interval > 1 and (before is None or interval < before)
        for member, trial in own.items()
    ]
    latest = [trial for _, _, trial in sorted(finished, key=lambda each: each[:2])[-MOST_ROWS:]]
    known = [(trial, source) for trial in latest if (source := _source(members, trial)) is not None]
    encoder = members.history.problem.space.encoder
    X = encoder.encode([trial.params for trial, _ in known])
    t = np.array([interval_of(trial) for trial, _ in known], dtype=float)
    change = np.array([members.loss(trial) - members.loss(source) for trial, source in known])
    return RewardChanges(np.column_stack([X, t]), change)


def _source(members: Members, trial: Trial) -> Trial | None:
    source = None if trial.resume_from is None else members.history[trial.resume_from]
    return source if source is not None and is_success(source) else None


def kernel_over(encoder: Encoder) -> Kernel:
    """c · SE over the numbers, one lengthscale for all · overlap of the categories · (1 − ω)^{|t − t'|/2}."""
    numbers = tuple(j for j in range(encoder.dimension) if j not in encoder.categories)
    parts: list[Kernel] = [Constant()]
    if numbers:
        parts.append(SE(numbers, ard=False))
    if encoder.categories:
        parts.append(CategoryOverlap(tuple(encoder.categories)))
    return reduce(mul, [*parts, TimeDecay(encoder.dimension, FORGETTING)])


@dataclass(frozen=True, eq=False)
class ChangeModel:
    """The fitted process of standardised changes, and what to remember of the fit."""

    gp: GP
    scale: Standardise
    theta: Array
    encoder: Encoder

    def rows(self, params: list[Params], intervals: list[int]) -> Array:
        """Encoded params with the intervals they are in force in (n, D + 1)."""
        return np.column_stack([self.encoder.encode(params), np.array(intervals, dtype=float)])

    def predicted(self, x: Array, interval: int, *, loss_before: float, sign: float) -> Prediction:
        """The value at the end of an interval with these coordinates: the value before it, and its change."""
        mean, variance = self.gp.predict(with_columns(x[None, :], float(interval)))
        change, deviation = self.scale.undo(mean), np.sqrt(self.scale.undo_variance(variance))
        return Prediction(sign * (loss_before + float(change[0])), float(deviation[0]))

    def note(self) -> dict[str, object]:
        return {"theta": [float(value) for value in self.theta]}


def fit_changes(changes: RewardChanges, members: Members) -> ChangeModel:
    """One fit, from the last one that a note remembers; hyperparameters at the maximum of their posterior."""
    encoder, scale = members.history.problem.space.encoder, Standardise.of(changes.change)
    y = scale.apply(changes.change)
    posterior = hyperparameter_posterior(kernel_over(encoder), changes.X, y, noise_prior=NOISE)
    noted, _ = last_fit(members.history, "theta", size=len(posterior.parameters))
    theta = fit(posterior, warm_start=noted)
    return ChangeModel(posterior.process(theta), scale, theta, encoder)
