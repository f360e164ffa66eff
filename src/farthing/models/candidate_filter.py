"""The exact posterior of a drifting function over finitely many candidates, seen in some rounds only.

f_t ~ GP with k = k_space(x, x') · (1 − ε)^{|t − t'|/2}. From one round to the next, without an observation,

    μ ← √(1−ε) μ   and   P ← (1−ε) P + ε K,

so with P = K − VᵀV a round multiplies μ and V by the same number, and an observation adds one row to V. A level that
drifts at a rate of its own is one more column.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Protocol

import numpy as np
from scipy.linalg import blas

from farthing.models.drifting_posterior import NO_LEVEL, FadingPosterior, Level
from farthing.models.gp import LEAST_VARIANCE
from farthing.models.kernels import Kernel
from farthing.models.linalg import Array, IntArray

LARGEST_MATRIX = 2048
"""Up to this many candidates the prior covariance is kept as a matrix; beyond, columns are computed when needed.

A limit on memory: 32 MB.
"""

PRUNED_BELOW = 1e-6
"""Rows of V that have shrunk below this, relative to the prior deviation, are dropped: V enters as its square."""

SMALLEST_SCALE = 1e-4
"""Below it the lazy scales are multiplied into what they stand for, at the next observation."""

FIRST_ROWS = 16


class Prior(Protocol):
    """k_space over the candidates."""

    @property
    def variance(self) -> Array:
        """k(x, x), of shape (m,)."""
        ...

    def column(self, i: int) -> Array:
        """k(·, x_i), of shape (m,)."""
        ...

    def block(self, i: IntArray, j: IntArray) -> Array:
        """Between the candidates i and j."""
        ...


@dataclass(frozen=True, eq=False)
class MatrixPrior:
    """A covariance that is given as a matrix, or small enough to be one."""

    K: Array

    @property
    def variance(self) -> Array:
        return np.diagonal(self.K)

    def column(self, i: int) -> Array:
        return np.asarray(self.K[i])

    def block(self, i: IntArray, j: IntArray) -> Array:
        return np.asarray(self.K[np.ix_(i, j)])


@dataclass(frozen=True, eq=False)
class KernelPrior:
    """A covariance of many candidates, of which only the columns in use are computed."""

    kernel: Kernel
    theta: Array
    X: Array
    variance: Array

    def column(self, i: int) -> Array:
        return self.block(np.arange(self.X.shape[0]), np.array([i]))[:, 0]

    def block(self, i: IntArray, j: IntArray) -> Array:
        K = self.kernel.evaluate(self.theta, self.X[i], self.X[j]).K
        return np.broadcast_to(K, (i.size, j.size))


def prior_over(kernel: Kernel, theta: Array, X: Array) -> Prior:
    """The prior of f at the candidates X."""
    m = X.shape[0]
    if m <= LARGEST_MATRIX:
        return MatrixPrior(np.array(np.broadcast_to(kernel.evaluate(theta, X).K, (m, m))))
    diagonal = np.broadcast_to(kernel.evaluate(theta, X[:, None, :]).K, (m, 1, 1))[:, 0, 0]
    return KernelPrior(kernel, theta, X, diagonal)


class CandidateFilter(FadingPosterior):
    """The posterior over m candidates, round by round, in square-root form.

    An observation costs O(r m) with r rows in V, where r is at most the number of observations that are not forgotten;
    beyond m rows the sum S = VᵀV takes over, at O(m²).
    """

    def __init__(self, prior: Prior, *, forgetting: float, noise: float, level: Level = NO_LEVEL) -> None:
        self.prior, self.noise = prior, noise
        self.round, self._since = 0, 0
        self._forgetting, self._level = forgetting, level
        self._prior = prior.variance
        m = self._prior.size
        self._mean, self._explained, self._shared = np.zeros(m), np.zeros(m), np.zeros(m)
        self._level_mean = self._level_explained = 0.0
        self._largest_deviation = sqrt(float(np.max(self._prior)) + level.variance)
        self._V = np.empty((min(FIRST_ROWS, m), m))
        self._v = np.empty(self._V.shape[0])
        self._r = 0
        self._S: Array | None = None

    @property
    def rows(self) -> int:
        """The number of rows of V; m once S has taken over."""
        return self.size if self._S is not None else self._r

    def covariance(self, i: IntArray, j: IntArray) -> Array:
        explained = self._S[np.ix_(i, j)] if self._S is not None else self._V[: self._r, i].T @ self._V[: self._r, j]
        return np.asarray(self.prior.block(i, j) - self.scale**2 * explained)

    def observe(self, i: int, y: float, *, noise: float | None = None) -> None:
        """Takes in y = f_t(x_i) + ℓ_t + N(0, σ²) of the current round.

        P ← P − p pᵀ/s,  μ ← μ + p (y − μ_i − μ_ℓ)/s,  with p = P (e_i + e_ℓ) and s = p_i + p_ℓ + σ².
        """
        if min(self.scale, self.level_scale) < SMALLEST_SCALE:
            self._apply_scales()
        c, d = self.scale, self.level_scale
        p = self.prior.column(i) - c * (c * self._explained_column(i) + d * self._shared)
        p_level = self._level.variance - d * (c * float(self._shared[i]) + d * self._level_explained)
        shown = max(float(p[i]) + p_level, LEAST_VARIANCE * float(self._prior[i]))
        s = shown + (self.noise if noise is None else noise)
        surprise = y - c * float(self._mean[i]) - d * self._level_mean
        self._mean += surprise / (s * c) * p
        self._level_mean += surprise / (s * d) * p_level
        self._add(p / (sqrt(s) * c), p_level / (sqrt(s) * d))

    def _explained_column(self, i: int) -> Array:
        if self._S is not None:
            return np.asarray(self._S[i])
        V = self._V[: self._r]
        return np.asarray(V[:, i] @ V)

    def _apply_scales(self) -> None:
        c, d = self.scale, self.level_scale
        self._mean *= c
        self._level_mean *= d
        self._V[: self._r] *= c
        self._v[: self._r] *= d
        self._explained *= c**2
        self._shared *= c * d
        self._level_explained *= d**2
        if self._S is not None:
            self._S *= c**2
        self._since = self.round

    def _add(self, row: Array, level: float) -> None:
        if self._S is None and self._r == self._V.shape[0]:
            self._make_room()
        if self._S is None:
            self._V[self._r], self._v[self._r] = row, level
            self._r += 1
        else:
            blas.dger(1.0, row, row, a=self._S.T, overwrite_a=1)
        self._explained += row * row
        self._shared += level * row
        self._level_explained += level * level

    def _make_room(self) -> None:
        """Drops what is forgotten; where that is little, V grows, or gives way to S once it has as many rows as S."""
        self._drop_forgotten()
        if self._r <= 0.75 * self._V.shape[0]:
            return
        V, v, m = self._V[: self._r], self._v[: self._r], self.size
        if self._r >= m:
            self._S = V.T @ V
            self._V, self._v, self._r = np.empty((0, m)), np.empty(0), 0
            return
        room = min(2 * self._V.shape[0], m)
        self._V, self._v = np.empty((room, m)), np.empty(room)
        self._V[: self._r], self._v[: self._r] = V, v

    def _drop_forgotten(self) -> None:
        V, v = self._V[: self._r], self._v[: self._r]
        height = np.maximum(self.scale * np.max(np.abs(V), axis=1), self.level_scale * np.abs(v))
        lasting = height >= PRUNED_BELOW * self._largest_deviation
        if lasting.all():
            return
        V, v = V[lasting], v[lasting]
        self._r = V.shape[0]
        self._V[: self._r], self._v[: self._r] = V, v
        self._explained = np.einsum("rm,rm->m", V, V)
        self._shared, self._level_explained = v @ V, float(v @ v)
