"""Confidence bounds μ ± √β σ, and the schedules β_t by which the papers differ. Rounds t count from one."""

from dataclasses import dataclass
from math import log

import numpy as np

from farthing.models.gp import GP
from farthing.models.linalg import Array


def upper_confidence_bound(mean: Array, variance: Array, beta: float) -> Array:
    """μ + √β σ."""
    return np.asarray(mean + np.sqrt(beta * variance))


def lower_confidence_bound(mean: Array, variance: Array, beta: float) -> Array:
    """μ − √β σ."""
    return np.asarray(mean - np.sqrt(beta * variance))


def ce_gp_ucb_beta(t: int) -> float:
    """β_t = 0.8 log 4t of CE-GP-UCB, which reproduces the paper's table; theory's β is far larger."""
    return 0.8 * log(4.0 * t)


def pb2_beta(t: int) -> float:
    """β_t = 0.2 + log 0.4t of PB2, which is negative for t ≤ 2: floored at 0.2."""
    return max(0.2, 0.2 + log(0.4 * t))


def lambo_beta(t: int, D: int) -> float:
    """β_t = 0.2 D log 2t of LaMBO, D the number of parameters."""
    return 0.2 * D * log(2.0 * t)


@dataclass(frozen=True, eq=False)
class ConfidenceBound:
    """sign · μ + √β σ: how low a loss might be, or how high a value with `sign` = 1. β = 0 is the mean alone."""

    gp: GP
    beta: float
    sign: float = -1.0

    def __call__(self, X: Array) -> Array:
        mean, variance = self.gp.predict(X)
        return upper_confidence_bound(self.sign * mean, variance, self.beta)

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        mean, variance, mean_gradient, variance_gradient = self.gp.predict_with_gradient(X)
        by_variance = 0.5 * np.sqrt(self.beta / variance)[:, None]
        gradient = self.sign * mean_gradient + by_variance * variance_gradient
        return upper_confidence_bound(self.sign * mean, variance, self.beta), gradient
