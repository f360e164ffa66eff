"""Expected improvement of a loss over the best one seen, and its logarithm.

    EI(x) = E max(y* − f(x), 0) = σ h(z),   h(z) = φ(z) + z Φ(z),   z = (y* − μ)/σ

Far from the optimum EI underflows to zero and its gradient with it; log EI does not (Ament et al., 2023).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log, pi, sqrt

import numpy as np
from scipy.special import erfcx, ndtr

from farthing.models.gp import GP
from farthing.models.linalg import Array, cholesky

LOG_SQRT_2PI = 0.5 * log(2.0 * pi)
LEFT = -1.0
FAR_LEFT = -50.0
"""Below, 1 + z R(z) loses digits to cancellation faster than five terms of its series lose them to truncation."""


def h(z: Array) -> Array:
    """φ(z) + z Φ(z)."""
    return np.asarray(np.exp(-0.5 * z * z - LOG_SQRT_2PI) + z * ndtr(z))


def log_h(z: Array) -> Array:
    """log h(z), exact to rounding for every z."""
    return log_h_and_slope(z)[0]


def log_h_and_slope(z: Array) -> tuple[Array, Array]:
    """log h(z) and its derivative Φ(z)/h(z).

    To the left, with Mills' ratio R = Φ/φ, which `erfcx` gives without underflow:

        h = φ (1 + z R),   Φ/h = R/(1 + z R);   far left, 1 + z R = z⁻² − 3z⁻⁴ + 15z⁻⁶ − 105z⁻⁸ + 945z⁻¹⁰
    """
    right, left = np.maximum(z, LEFT), np.minimum(z, LEFT)
    h_right = h(right)
    R = sqrt(pi / 2.0) * erfcx(-left / sqrt(2.0))
    rest = np.where(left < FAR_LEFT, _far_rest(left), 1.0 + left * R)
    log_left = -0.5 * left * left - LOG_SQRT_2PI + np.log(rest)
    is_left = z < LEFT
    return np.where(is_left, log_left, np.log(h_right)), np.where(is_left, R / rest, ndtr(right) / h_right)


def _far_rest(z: Array) -> Array:
    v = 1.0 / (z * z)
    return np.asarray(v * (1.0 - v * (3.0 - v * (15.0 - v * (105.0 - v * 945.0)))))


def expected_excess(mean: Array, variance: Array) -> Array:
    """E max(D, 0) = σ h(μ/σ) for D ~ N(mean, variance); with D = y* − f this is EI. A variance of zero is allowed."""
    sigma = np.sqrt(np.maximum(variance, np.finfo(float).tiny))
    with np.errstate(over="ignore"):  # of z², where φ(z) is zero
        return np.asarray(sigma * h(mean / sigma))


def log_expected_improvement(mean: Array, variance: Array, best: float | Array) -> Array:
    """log E max(best − f, 0) for f ~ N(mean, variance)."""
    sigma = np.sqrt(variance)
    return np.asarray(np.log(sigma) + log_h((best - mean) / sigma))


@dataclass(frozen=True, eq=False)
class LogExpectedImprovement:
    """log EI of the loss `gp` models over `best`."""

    gp: GP
    best: float

    def __call__(self, X: Array) -> Array:
        return log_expected_improvement(*self.gp.predict(X), self.best)

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        mean, variance, mean_gradient, variance_gradient = self.gp.predict_with_gradient(X)
        value, by_mean, by_variance = log_expected_improvement_and_slopes(mean, variance, self.best)
        return value, by_mean[:, None] * mean_gradient + by_variance[:, None] * variance_gradient


@dataclass(frozen=True, eq=False)
class LogOwnImprovement:
    """log EI of every row over the best of its branch, the `known` rows with the same inactive columns (NaN).

    A branch without known rows has the median of all for its best.
    """

    gp: GP
    known: Array

    def __call__(self, X: Array) -> Array:
        return log_expected_improvement(*self.gp.predict(X), self._best(X))

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        mean, variance, mean_gradient, variance_gradient = self.gp.predict_with_gradient(X)
        value, by_mean, by_variance = log_expected_improvement_and_slopes(mean, variance, self._best(X))
        return value, by_mean[:, None] * mean_gradient + by_variance[:, None] * variance_gradient

    @cached_property
    def _branches(self) -> dict[bytes, float]:
        """The least mean of each branch, by its inactive columns."""
        means = self.gp.mean(self.known)
        found: dict[bytes, float] = {}
        for flags, mean in zip(np.isnan(self.known), means.tolist(), strict=True):
            found[flags.tobytes()] = min(mean, found.get(flags.tobytes(), np.inf))
        return found

    @cached_property
    def _median(self) -> float:
        return float(np.median(self.gp.mean(self.known)))

    def _best(self, X: Array) -> Array:
        return np.array([self._branches.get(flags.tobytes(), self._median) for flags in np.isnan(X)])


@dataclass(frozen=True, eq=False)
class LogAugmentedImprovement:
    """log EI + log(1 − σ_n/√(σ² + σ_n²)): what a measurement with noise σ_n² gains (Huang et al., 2006).

    EI of the latent function falls only like σ_n/√n where one place is measured again and again, so that it would be
    measured for ever. The factor is the share of a deviation that one more measurement removes: nearly one where little
    is known, nearly zero where noise is all that is left. Without noise this is log EI.
    """

    gp: GP
    best: float

    def __call__(self, X: Array) -> Array:
        mean, variance = self.gp.predict(X)
        return log_augmented_improvement(mean, variance, self.best, noise=self.gp.noise)

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        mean, variance, mean_gradient, variance_gradient = self.gp.predict_with_gradient(X)
        value, by_mean, by_variance = log_expected_improvement_and_slopes(mean, variance, self.best)
        log_share, slope = log_share_learnt(variance, self.gp.noise)
        gradient = by_mean[:, None] * mean_gradient + (by_variance + slope)[:, None] * variance_gradient
        return value + log_share, gradient


def log_expected_improvement_and_slopes(
    mean: Array, variance: Array, best: float | Array
) -> tuple[Array, Array, Array]:
    """With r = Φ(z)/h(z):  ∂ log EI/∂μ = −r/σ,  ∂ log EI/∂σ² = φ/(2σ²h) = (1 − z r)/2σ²."""
    sigma = np.sqrt(variance)
    z = (best - mean) / sigma
    log_value, r = log_h_and_slope(z)
    return np.log(sigma) + log_value, -r / sigma, 0.5 * np.maximum(1.0 - z * r, 0.0) / variance


def log_augmented_improvement(mean: Array, variance: Array, best: float, *, noise: float) -> Array:
    """log of EI times the share of a deviation that a measurement removes; `noise` is σ_n²."""
    return log_expected_improvement(mean, variance, best) + log_share_learnt(variance, noise)[0]


def log_share_learnt(variance: Array, noise: float) -> tuple[Array, Array]:
    """log(1 − σ_n/s) with s = √(σ² + σ_n²), and its derivative by σ².

    Written as log σ² − log s − log(s + σ_n), which does not cancel where σ² is far below σ_n².
    """
    deviation = np.sqrt(noise)
    s = np.sqrt(variance + noise)
    log_share = np.log(variance) - np.log(s) - np.log(s + deviation)
    return log_share, 1.0 / variance - 0.5 / (s * s) - 0.5 / (s * (s + deviation))


# ------------------------------------------------------------
# The joint gain of several evaluations: qEI of the best k out of a pool, chosen one after the other.


DRAWS = 128
"""Pairs of a normal and its negative. A limit on time, not tuned."""
RARE = 1.5
"""Deviations below the mean of the most promising row: improvements beyond are too rare to be sampled. A guess."""


def log_joint_improvements(
    gp: GP, pool: Array, best: float, sizes: Sequence[int], *, rng: np.random.Generator
) -> Array:
    """log qEI_k = log E max(best − min_{i ≤ k} f(x_i), 0) for each k of `sizes`, for k = 1 augmented for noise.

    x_1 is the first row of the pool.

    The others are added greedily. qEI_k/EI is estimated from joint draws and multiplied with the exact EI of the
    first row. If improvement is too rare for that, the quotient is estimated for a worse `best`, on which it depends
    little, unlike EI. It is at most k, as no row of the pool is expected to gain more than the first, which is the
    best of its class.
    """
    mean, covariance = gp.joint(pool)
    variance = np.maximum(np.diagonal(covariance), 1e-12)
    L = cholesky(covariance, against=variance)
    normals = rng.standard_normal((DRAWS, pool.shape[0]))
    draws = mean + np.concatenate([normals, -normals]) @ L.T
    reachable = max(best, float(np.min(mean - RARE * np.sqrt(variance))))
    gains = greedy_gains(np.maximum(reachable - draws, 0.0), max(sizes))
    log_first = float(log_augmented_improvement(mean[:1], variance[:1], best, noise=gp.noise)[0])
    at_first = max(float(gains[0]), np.finfo(float).tiny)
    quotients = [np.clip(gains[min(k, gains.size) - 1] / at_first, 1.0, k) for k in sizes]
    return np.asarray(log_first + np.log(quotients))


def greedy_gains(improvement: Array, count: int) -> Array:
    """The mean over draws (S, P) of the best improvement among 1, 2, … columns, each added where it helps most.

    The first column is always the first.
    """
    reached = improvement[:, 0]
    gains = [float(np.mean(reached))]
    for _ in range(min(count, improvement.shape[1]) - 1):
        joint = np.maximum(reached[:, None], improvement)
        totals = np.mean(joint, axis=0)
        chosen = int(np.argmax(totals))
        reached = joint[:, chosen]
        gains.append(float(totals[chosen]))
    return np.array(gains)
