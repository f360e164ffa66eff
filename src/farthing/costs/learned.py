"""Learned cost: a Gaussian process on the logarithm of costs.

    log t(x, e) = g(x) + log((c₀ + e)/(c₀ + 1)),    g ~ GP

e is the share of the full work that was done, and c₀ the fixed cost of a run, relative to the rest.
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

FIXED_SHARES: Sequence[float] = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""Values of c₀ that are tried; the likeliest is taken. The grid is a guess, not tuned: about two to each decade."""


@dataclass(frozen=True, eq=False)
class LearnedCost:
    """Predicts the cost of a run, in the unit of the costs it was learnt from.

    The full work is never predicted to cost less than `least`, the smallest cost seen, scaled to the full work.
    """

    gp: GP
    scale: Standardise
    fixed_share: float
    least: float
    theta: Array
    """The fitted hyperparameters, to start the next fit from."""

    def log_cost(self, X: Array, done: float | Array = 1.0) -> Array:
        """log t at each row of X for a run from nothing to the share `done` of the full work."""
        return self._log_full(X) + self._log_share(done)

    def cost(self, X: Array, done: float | Array = 1.0) -> Array:
        return np.asarray(np.exp(self.log_cost(X, done)))

    def __call__(self, X: Array) -> Array:
        return self.log_cost(X)

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        """log t of the full work, as an acquisition function sees it."""
        mean, slope = self.gp.mean_with_gradient(X)
        log_cost = self.scale.undo(mean)
        is_free = (log_cost > np.log(self.least))[:, None]
        return np.maximum(log_cost, np.log(self.least)), np.where(is_free, self.scale.scale * slope, 0.0)

    def _log_full(self, X: Array) -> Array:
        return np.maximum(self.scale.undo(self.gp.mean(X)), np.log(self.least))

    def _log_share(self, done: float | Array) -> Array:
        return np.asarray(np.log((self.fixed_share + np.asarray(done)) / (self.fixed_share + 1.0)))


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
    tried = [_Shared(X, cost, kernel, shares, share) for share in FIXED_SHARES[: None if np.ptp(shares) > 0.0 else 1]]
    if warm_start is not None:  # which share is likeliest hardly depends on the rest: one fit will do
        tried = [_likeliest(tried, warm_start)]
        if keeps_theta:
            return tried[0].learned(warm_start)
    fitted = [(model, fit(model.posterior, warm_start=warm_start)) for model in tried]
    best, theta = fitted[0] if len(fitted) == 1 else max(fitted, key=lambda pair: pair[0].density(pair[1]))
    return best.learned(theta)


def _likeliest(models: Sequence["_Shared"], warm_start: Array) -> "_Shared":
    """The model of highest density, at the better of an earlier fit and the prior's mode.

    The earlier fit may have been one of another c₀. The models differ in what was observed, not in where, so that each
    of the two needs one factor for all of them; a single model needs none.
    """
    if len(models) == 1:
        return models[0]
    densities = [_densities(models, theta) for theta in (warm_start, models[0].posterior.priors.mean)]
    return models[int(np.argmax(np.maximum(*densities)))]


def _densities(models: Sequence["_Shared"], theta: Array) -> Array:
    values = models[0].posterior.values_of(theta, [model.posterior.y for model in models])
    return np.array([model.on_log_scale(value) for model, value in zip(models, values, strict=True)])


class _Shared:
    """The model with one c₀, at any hyperparameters."""

    def __init__(self, X: Array, cost: Array, kernel: Kernel, done: Array, fixed_share: float) -> None:
        self._fixed_share = fixed_share
        self._g = np.log(cost) - np.log((fixed_share + done) / (fixed_share + 1.0))
        self._scale = Standardise.of(self._g)
        self.posterior = hyperparameter_posterior(kernel, X, self._scale.apply(self._g))

    def density(self, theta: Array) -> float:
        """The log posterior density, on the scale of log t, so that all c₀ can be compared."""
        return self.on_log_scale(float(self.posterior.value_and_gradient(theta[None, :])[0][0]))

    def on_log_scale(self, log_density: float) -> float:
        return log_density - self._g.size * float(np.log(self._scale.scale))

    def learned(self, theta: Array) -> LearnedCost:
        least = float(np.exp(np.min(self._g))) if self._g.size else np.finfo(float).tiny
        return LearnedCost(self.posterior.process(theta), self._scale, self._fixed_share, least, theta)
