"""Confidence bounds of the baselines: BOCA's schedule, and LaMBO's GP-UCB as an acquisition function."""

from dataclasses import dataclass
from math import log

import numpy as np

from farthing.acquisition.confidence_bound import ConfidenceBound
from farthing.models.gp import GP
from farthing.models.linalg import Array


def boca_beta(t: int, D: int) -> float:
    """β_t = 0.5 D log(2t + 1) of BOCA, D the number of parameters."""
    return 0.5 * D * log(2 * t + 1)


@dataclass(frozen=True, eq=False)
class LogHopedGain:
    """log(best − (μ − √β σ)): by how much the loss might fall below `best`; −∞ where it could not."""

    gp: GP
    best: float
    beta: float

    def __call__(self, X: Array) -> Array:
        return _log_positive(self.best + ConfidenceBound(self.gp, self.beta)(X))

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        bound, slope = ConfidenceBound(self.gp, self.beta).value_and_gradient(X)
        gain = self.best + bound
        return _log_positive(gain), slope / np.where(gain > 0.0, gain, 1.0)[:, None]


def _log_positive(gain: Array) -> Array:
    return np.asarray(np.where(gain > 0.0, np.log(np.where(gain > 0.0, gain, 1.0)), -np.inf))
