"""Learned cost: a fixed part, and a Gaussian process on the logarithm of the rest.

    t(x, e) = A + exp(g(x)) · e,    g ~ GP

e is the share of the full work that was done, and A the cost of starting, which is the same for every configuration:
a program loads its libraries and its data before it knows what it trains.
The cost grows with e by construction, for any g, so that continuing a run never has a negative cost.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from farthing.models.fitting import fit, hyperparameter_posterior
from farthing.models.gp import GP
from farthing.models.kernels import Kernel
from farthing.models.linalg import Array
from farthing.models.transforms import Standardise

FIXED_SHARES: Sequence[float] = tuple(part / 50 for part in range(50))
"""Values of A that are tried, as shares of the least cost that was paid; the likeliest is taken."""
LEAST_SPREAD = 0.01
"""Of log costs, where values of A are compared: costs that are known within a hundredth need no better explanation.
Else the best A on the grid, which leaves next to nothing, would be refused for what it leaves. A guess, not tuned."""


@dataclass(frozen=True, eq=False)
class LearnedCost:
    """Predicts the cost of a run, in the unit of the costs it was learnt from.

    `fixed` is A. What the full work costs beyond it is never predicted to be less than `least`, the least seen, scaled
    to the full work.
    """

    gp: GP
    scale: Standardise
    fixed: float
    least: float
    theta: Array
    """The fitted hyperparameters, to start the next fit from."""

    def log_cost(self, X: Array, done: float | Array = 1.0) -> Array:
        """log t at each row of X for a run from nothing to the share `done` of the full work."""
        return np.asarray(np.logaddexp(_log(self.fixed), self._log_rate(X) + _log(done)))

    def cost(self, X: Array, done: float | Array = 1.0) -> Array:
        return np.asarray(np.exp(self.log_cost(X, done)))

    def rate(self, X: Array) -> Array:
        """exp(g): what the full work costs beyond the fixed part."""
        return np.asarray(np.exp(self._log_rate(X)))

    def __call__(self, X: Array) -> Array:
        return self.log_cost(X)

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        """log t of the full work, as an acquisition function sees it."""
        log_rate, slope = self.log_rate_and_gradient(X)
        log_cost = np.logaddexp(_log(self.fixed), log_rate)
        return log_cost, np.exp(log_rate - log_cost)[:, None] * slope

    def log_rate_and_gradient(self, X: Array) -> tuple[Array, Array]:
        """g and its gradient."""
        mean, slope = self.gp.mean_with_gradient(X)
        log_rate = self.scale.undo(mean)
        is_free = (log_rate > np.log(self.least))[:, None]
        return np.maximum(log_rate, np.log(self.least)), np.where(is_free, self.scale.scale * slope, 0.0)

    def _log_rate(self, X: Array) -> Array:
        return np.maximum(self.scale.undo(self.gp.mean(X)), np.log(self.least))


def _log(share: float | Array) -> Array:
    """The logarithm, −∞ of nothing."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(share))


def learn_cost(
    X: Array,
    cost: Array,
    kernel: Kernel,
    *,
    done: Array | None = None,
    warm_start: Array | None = None,
    keeps_theta: bool = False,
) -> LearnedCost:
    """The cost model of runs at X that paid `cost` > 0 for the share `done` of the full work (all of it by default).

    Hyperparameters are fitted from `warm_start` and the usual starts, or taken from it as they are with `keeps_theta`.
    """
    shares = np.ones(cost.size) if done is None else done
    fixed = _likeliest_part(X, cost, kernel, shares, warm_start) if np.ptp(shares) > 0.0 else 0.0
    # which part it is hardly depends on the rest: one fit will do
    g = np.log(cost - fixed) - np.log(shares)
    scale = _standardised(g, LEAST_SPREAD if np.ptp(shares) > 0.0 else 0.0)
    posterior = hyperparameter_posterior(kernel, X, scale.apply(g))
    theta = warm_start if keeps_theta and warm_start is not None else fit(posterior, warm_start=warm_start)
    least = float(np.exp(np.min(g))) if g.size else np.finfo(float).tiny
    return LearnedCost(posterior.process(theta), scale, fixed, least, theta)


def _likeliest_part(X: Array, cost: Array, kernel: Kernel, done: Array, warm_start: Array | None) -> float:
    """The fixed part of highest density, at the better of an earlier fit and the prior's mode.

    The earlier fit may have been one of another part. Parts differ in what was observed, not in where, so that each of
    the two needs one factor for all of them. The process sees g, standardised; as densities of log t all parts can be
    compared: ∂g/∂ log t = t/(t − A).
    """
    fixed = float(np.min(cost)) * np.array(FIXED_SHARES)
    G = np.log(cost[:, None] - fixed) - np.log(done)[:, None]
    scales = [_standardised(g, LEAST_SPREAD) for g in G.T]
    Y = np.stack([scale.apply(g) for scale, g in zip(scales, G.T, strict=True)], axis=1)
    stretch = np.sum(np.log(cost)[:, None] - np.log(cost[:, None] - fixed), axis=0)
    posterior = hyperparameter_posterior(kernel, X, Y[:, 0])
    places = [posterior.priors.mean, *([] if warm_start is None else [warm_start])]
    density = np.max([posterior.values_of(theta, Y) for theta in places], axis=0)
    on_log_scale = density + stretch - cost.size * np.log([scale.scale for scale in scales])
    return float(fixed[int(np.argmax(on_log_scale))])


def _standardised(g: Array, least_spread: float) -> Standardise:
    standard = Standardise.of(g)
    return Standardise(standard.offset, max(standard.scale, least_spread))
