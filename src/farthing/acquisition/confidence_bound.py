"""Confidence bounds μ ± √β σ, and the schedules of β by which they are told apart in the literature.

Rounds t count from one.
"""

from dataclasses import dataclass
from math import log, pi

import numpy as np

from farthing.models.gp import GP
from farthing.models.linalg import Array


def upper_confidence_bound(mean: Array, variance: Array, beta: float) -> Array:
    """μ + √β σ."""
    return np.asarray(mean + np.sqrt(beta * variance))


def lower_confidence_bound(mean: Array, variance: Array, beta: float) -> Array:
    """μ − √β σ."""
    return np.asarray(mean - np.sqrt(beta * variance))


def tabulated_beta(t: int) -> float:
    """β_t = 0.8 log 4t: what reproduces the table of CE-GP-UCB."""
    return 0.8 * log(4.0 * t)


def pb2_beta(t: int) -> float:
    """β_t = 0.2 + log 0.4t of PB2, which is negative for t ≤ 2: floored at 0.2."""
    return max(0.2, 0.2 + log(0.4 * t))


def lambo_beta(t: int, D: int) -> float:
    """β_t = 0.2 D log 2t of LaMBO, D the number of parameters."""
    return 0.2 * D * log(2.0 * t)


def theoretical_beta(t: int, size: int, delta: float = 0.1) -> float:
    """β_t = 2 log(|𝒟| t² π²/6δ): the regret bound's, for a domain of `size` points; far too large in practice."""
    return 2.0 * log(size * t * t * pi * pi / (6.0 * delta))


@dataclass(frozen=True, eq=False)
class LogHopedGain:
    """log(best − (μ − √β σ)): by how much the loss might fall below `best`; −∞ where it could not."""

    gp: GP
    best: float
    beta: float

    def __call__(self, X: Array) -> Array:
        return _log_positive(self.best - lower_confidence_bound(*self.gp.predict(X), self.beta))

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        bound, slope = ConfidenceBound(self.gp, self.beta).value_and_gradient(X)
        gain = self.best + bound
        return _log_positive(gain), slope / np.where(gain > 0.0, gain, 1.0)[:, None]


def _log_positive(gain: Array) -> Array:
    return np.asarray(np.where(gain > 0.0, np.log(np.where(gain > 0.0, gain, 1.0)), -np.inf))


@dataclass(frozen=True, eq=False)
class ConfidenceBound:
    """−(μ − √β σ): how low the loss might be. A constant β is simply a number; the schedules above give the others."""

    gp: GP
    beta: float

    def __call__(self, X: Array) -> Array:
        return -lower_confidence_bound(*self.gp.predict(X), self.beta)

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        mean, variance, mean_gradient, variance_gradient = self.gp.predict_with_gradient(X)
        by_variance = 0.5 * np.sqrt(self.beta / variance)[:, None]
        return -lower_confidence_bound(mean, variance, self.beta), by_variance * variance_gradient - mean_gradient
