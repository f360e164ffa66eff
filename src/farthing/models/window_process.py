"""The posterior of a drifting function over a whole space, from the observations that are not forgotten yet."""

from dataclasses import replace

import numpy as np
from scipy.special import logit

from farthing.models.drifting_posterior import NO_LEVEL, FadingPosterior, Level
from farthing.models.fidelity_kernels import TimeDecay
from farthing.models.gp import GP, condition
from farthing.models.kernels import Constant, Kernel
from farthing.models.linalg import Array, IntArray, solve_lower


class WindowProcess:
    """A GP over a window of observations; rows have the round as one more column, the last.

    An observation leaves the window when its weight (1 − ε)^{age/2} has fallen below `tolerance`, or when `most` later
    ones are there; the factor is extended for each new one and computed again when a quarter of its rows has left.
    """

    def __init__(
        self,
        kernel: Kernel,
        theta: Array,
        *,
        dimension: int,
        forgetting: float,
        noise: float,
        level: Level = NO_LEVEL,
        tolerance: float = 1e-3,
        most: int = 400,
    ) -> None:
        self.forgetting, self.noise, self.level = forgetting, noise, level
        self._tolerance, self._most = tolerance, most
        self._kernel: Kernel = kernel * TimeDecay(dimension)
        self._theta = np.append(theta, logit(forgetting))
        whole: Kernel = self._kernel
        whole_theta = self._theta
        if level.variance > 0.0:
            whole = whole + Constant() * TimeDecay(dimension)
            whole_theta = np.concatenate([self._theta, [np.log(level.variance), logit(level.forgetting)]])
        self._gp: GP = condition(whole, whole_theta, np.zeros((0, dimension + 1)), np.zeros(0), noise=noise)

    @property
    def rows(self) -> int:
        return self._gp.n

    @property
    def gp(self) -> GP:
        """Of f alone: observations show f + ℓ, predictions are without the level."""
        return replace(self._gp, kernel=self._kernel, theta=self._theta)

    def observe(self, x: Array, y: float, *, round: int, noise: float | None = None) -> None:
        row = np.append(x, float(round))[None, :]
        self._gp = self._gp.condition_on(row, np.array([y]), noise=self.noise if noise is None else noise)
        kept = self._kept(round)
        if kept.size <= 0.75 * self._gp.n:
            self._gp = self._from_rows(kept)

    def _kept(self, round: int) -> IntArray:
        ages = round - self._gp.X[:, -1]
        kept = np.flatnonzero((1.0 - self.forgetting) ** (0.5 * ages) >= self._tolerance)
        return kept[-self._most :]

    def _from_rows(self, kept: IntArray) -> GP:
        gp = self._gp
        return condition(gp.kernel, gp.theta, gp.X[kept], gp.y[kept], noise=self.noise)

    def level_covariance(self, round: int) -> Array:
        """Between ℓ in that round and what was observed."""
        ages = round - self._gp.X[:, -1]
        return np.asarray(self.level.variance * (1.0 - self.level.forgetting) ** (0.5 * ages))

    def at(self, X: Array, *, round: int) -> "PoolPosterior":
        """The posterior at the rows X, from that round on."""
        return PoolPosterior(self, X, round=round)


class PoolPosterior(FadingPosterior):
    """A posterior at rows of a space."""

    def __init__(self, process: WindowProcess, X: Array, *, round: int) -> None:
        self.round, self._since = round, round
        self._forgetting, self._level = process.forgetting, process.level
        gp = process.gp
        rows = np.column_stack([X, np.full(X.shape[0], float(round))])
        C = gp.kernel.evaluate(gp.theta, rows, gp.X).K if gp.n else np.zeros((X.shape[0], 0))
        C_level = process.level_covariance(round)
        self._gp, self._rows = gp, rows
        self._V = solve_lower(gp.L, C.T)
        v = solve_lower(gp.L, C_level)
        self._mean, self._level_mean = C @ gp.alpha, float(C_level @ gp.alpha)
        self._explained, self._level_explained = np.sum(self._V * self._V, axis=0), float(v @ v)
        self._shared = v @ self._V
        diagonal = gp.kernel.evaluate(gp.theta, rows[:, None, :]).K
        self._prior = np.broadcast_to(diagonal, (X.shape[0], 1, 1))[:, 0, 0]

    def covariance(self, i: IntArray, j: IntArray) -> Array:
        K = self._gp.kernel.evaluate(self._gp.theta, self._rows[i], self._rows[j]).K
        return np.asarray(K - self.scale**2 * (self._V[:, i].T @ self._V[:, j]))
