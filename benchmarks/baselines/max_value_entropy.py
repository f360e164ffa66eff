"""Max-value entropy search (Wang and Jegelka, 2017), for a loss: what a measurement tells about the least value f*.

    α(x) = 1/K Σ_k g(γ_k),   g(γ) = γ φ(γ)/2Φ(γ) − log Φ(γ),   γ_k = (μ(x) − f*_k)/σ(x)   (Eq. 6)

The f*_k are drawn from a Gumbel distribution that has the quartiles of the least value over some rows (Section 3.1).
"""

from dataclasses import dataclass
from math import log, pi, sqrt

import numpy as np
from scipy.special import erfcx, log_ndtr, logsumexp

from farthing.acquisition.expected_improvement import LOG_SQRT_2PI, log_share_learnt
from farthing.models.gp import GP
from farthing.models.linalg import Array

DRAWS = 10
"""Least values that are drawn. The paper shows that 1, 10 and 100 differ little."""
RIGHT = 5.0
"""Beyond, g = φ (γ/2 + R) with R = (1 − Φ)/φ, exact to 1e-7; as written above it would underflow."""
BISECTIONS = 50
"""Enough for every digit of a quartile."""


@dataclass(frozen=True, eq=False)
class LogMaxValueEntropy:
    """log α of the loss `gp` models, for the drawn `least` values (K,).

    Under noise it has the same factor as augmented expected improvement, without which it would measure one place
    again and again, too.
    """

    gp: GP
    least: Array

    def __call__(self, X: Array) -> Array:
        mean, variance = self.gp.predict(X)
        return log_max_value_entropy(mean, variance, self.least)[0] + log_share_learnt(variance, self.gp.noise)[0]

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        mean, variance, mean_gradient, variance_gradient = self.gp.predict_with_gradient(X)
        value, by_mean, by_variance = log_max_value_entropy(mean, variance, self.least)
        log_share, slope = log_share_learnt(variance, self.gp.noise)
        gradient = by_mean[:, None] * mean_gradient + (by_variance + slope)[:, None] * variance_gradient
        return value + log_share, gradient


def log_max_value_entropy(mean: Array, variance: Array, least: Array) -> tuple[Array, Array, Array]:
    """log α, and its slopes by μ and by σ²: ∂γ/∂μ = 1/σ, ∂γ/∂σ² = −γ/2σ²."""
    sigma = np.sqrt(variance)
    gamma = (mean[:, None] - least) / sigma[:, None]
    log_g, slope = log_entropy_and_slope(gamma)
    value = logsumexp(log_g, axis=1)
    weighted = np.exp(log_g - value[:, None]) * slope
    by_variance = -0.5 * np.sum(weighted * gamma, axis=1) / variance
    return value - log(least.size), np.sum(weighted, axis=1) / sigma, by_variance


def log_entropy_and_slope(gamma: Array) -> tuple[Array, Array]:
    """log g(γ) and its derivative. With r = φ/Φ: g' = −(r/2)(1 + γ(γ + r))."""
    left, right = np.minimum(gamma, RIGHT), np.maximum(gamma, RIGHT)
    log_Phi = log_ndtr(left)
    r = np.exp(-0.5 * left * left - LOG_SQRT_2PI - log_Phi)
    g = 0.5 * left * r - log_Phi
    R = sqrt(pi / 2.0) * erfcx(right / sqrt(2.0))
    rest = 0.5 * right + R
    is_left = gamma < RIGHT
    log_right = -0.5 * right * right - LOG_SQRT_2PI + np.log(rest)
    slope_right = -right + (right * R - 0.5) / rest
    slope_left = -0.5 * r * (1.0 + left * (left + r)) / g
    return np.where(is_left, np.log(g), log_right), np.where(is_left, slope_left, slope_right)


def draw_least_values(gp: GP, X: Array, best: float, *, rng: np.random.Generator) -> Array:
    """f* of `DRAWS` functions, none above `best`: the value of a row that is known is at least as low as the least."""
    mean, variance = gp.predict(X)
    first, middle, third = (_quantile(share, mean, np.sqrt(variance)) for share in (0.25, 0.5, 0.75))
    scale = (third - first) / (log(-log(0.25)) - log(-log(0.75)))
    level = middle - scale * log(log(2.0))
    drawn = level + scale * np.log(-np.log(rng.random(DRAWS)))
    return np.minimum(drawn, best)


def _quantile(share: float, mean: Array, sigma: Array) -> float:
    """t with P(f* ≤ t) = 1 − Π_x Φ((μ − t)/σ) = share, as if rows were independent."""
    low, high = float(np.min(mean - 10.0 * sigma)), float(np.min(mean + 10.0 * sigma))
    for _ in range(BISECTIONS):
        t = 0.5 * (low + high)
        is_below = -np.expm1(np.sum(log_ndtr((mean - t) / sigma))) < share
        low, high = (t, high) if is_below else (low, t)
    return 0.5 * (low + high)
