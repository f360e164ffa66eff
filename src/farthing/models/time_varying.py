"""Processes that drift: f_t ~ GP with k = k_space(x, x') · (1 − ε)^{|t − t'|/2}, seen in some rounds only.

From one round to the next, without an observation,

    μ ← √(1−ε) μ   and   P ← (1−ε) P + ε K,

so with P = K − VᵀV a round multiplies μ and V by the same number, and an observation adds one row to V. That number is
kept apart (a lazy scale c): a round in which nothing is seen costs nothing until the mean or the variance is read.

`CandidateFilter` does this over finitely many candidates; `WindowProcess` over a whole space, for the observations that
are not forgotten yet. What both give is a `Belief`.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Protocol

import numpy as np
from scipy.linalg import blas
from scipy.special import logit

from farthing.models.fidelity_kernels import TimeDecay
from farthing.models.gp import GP, LEAST_VARIANCE, condition
from farthing.models.kernels import Kernel
from farthing.models.linalg import Array, IntArray, solve_lower

LARGEST_MATRIX = 2048
"""Up to so many candidates the prior covariance is kept as a matrix; beyond, a column is computed when it is needed."""

PRUNED_BELOW = 1e-6
"""Rows of V that have shrunk below this, relative to the prior deviation, are dropped: V enters as its square."""

SMALLEST_SCALE = 1e-4
"""Below it the lazy scale is multiplied into what it stands for, at the next observation."""

FIRST_ROWS = 16


class Belief(Protocol):
    """What is known of f at some rows, in the current round: μ, σ² and covariances of the latent values."""

    @property
    def size(self) -> int: ...

    def advance_to(self, round: int) -> None:
        """Lets time go on to that round."""

    def mean(self) -> Array:
        """μ, of shape (m,)."""

    def variance(self) -> Array:
        """σ², of shape (m,)."""

    def covariance(self, i: IntArray, j: IntArray) -> Array:
        """Between the rows i and j, of shape (|i|, |j|)."""


@dataclass(frozen=True, eq=False)
class Shifted:
    """A belief about what differs from a known mean: the mean itself is added."""

    belief: Belief
    shift: Array

    @property
    def size(self) -> int:
        return self.belief.size

    def advance_to(self, round: int) -> None:
        self.belief.advance_to(round)

    def mean(self) -> Array:
        return self.belief.mean() + self.shift

    def variance(self) -> Array:
        return self.belief.variance()

    def covariance(self, i: IntArray, j: IntArray) -> Array:
        return self.belief.covariance(i, j)


@dataclass(frozen=True, eq=False)
class Selected:
    """A belief at some of its rows."""

    belief: Belief
    rows: IntArray

    @property
    def size(self) -> int:
        return int(self.rows.size)

    def advance_to(self, round: int) -> None:
        self.belief.advance_to(round)

    def mean(self) -> Array:
        return np.asarray(self.belief.mean()[self.rows])

    def variance(self) -> Array:
        return np.asarray(self.belief.variance()[self.rows])

    def covariance(self, i: IntArray, j: IntArray) -> Array:
        return self.belief.covariance(self.rows[i], self.rows[j])


# ---------------------------------------------------------------------------------------------------------- the prior


class Prior(Protocol):
    """k_space over the candidates."""

    @property
    def variance(self) -> Array:
        """k(x, x), of shape (m,)."""

    def column(self, i: int) -> Array:
        """k(·, x_i), of shape (m,)."""

    def block(self, i: IntArray, j: IntArray) -> Array:
        """Between the candidates i and j."""


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
    """A covariance of so many candidates that only the columns in use are computed."""

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


# --------------------------------------------------------------------------------------------------------- the filter


class CandidateFilter:
    """The exact posterior over m candidates, round by round, in square-root form.

    An observation costs O(r m) with r rows in V, where r is at most the number of observations that are not forgotten;
    beyond m rows the sum S = VᵀV takes over, at O(m²).
    """

    def __init__(self, prior: Prior, *, forgetting: float, noise: float) -> None:
        self.prior = prior
        self.forgetting = forgetting
        self.noise = noise
        self.round = 0
        self._m = prior.variance.size
        self._largest_deviation = sqrt(float(np.max(prior.variance)))
        self._scaled_at = 0
        self._mean = np.zeros(self._m)
        self._explained = np.zeros(self._m)
        self._V = np.empty((min(FIRST_ROWS, self._m), self._m))
        self._r = 0
        self._S: Array | None = None

    @property
    def size(self) -> int:
        return self._m

    @property
    def rows(self) -> int:
        """How many rows V has; m once S has taken over."""
        return self._m if self._S is not None else self._r

    @property
    def scale(self) -> float:
        """c = (1 − ε)^{(t − t₀)/2}, t₀ being when μ, V and S were last brought up to date."""
        return float((1.0 - self.forgetting) ** (0.5 * (self.round - self._scaled_at)))

    def advance_to(self, round: int) -> None:
        """Lets time go on to that round."""
        assert round >= self.round, "time does not go back"
        self.round = round

    def mean(self) -> Array:
        return np.asarray(self.scale * self._mean)

    def variance(self) -> Array:
        prior = self.prior.variance
        return np.maximum(prior - self.scale**2 * self._explained, LEAST_VARIANCE * prior)

    def covariance(self, i: IntArray, j: IntArray) -> Array:
        explained = self._S[np.ix_(i, j)] if self._S is not None else self._V[: self._r, i].T @ self._V[: self._r, j]
        return np.asarray(self.prior.block(i, j) - self.scale**2 * explained)

    def observe(self, i: int, y: float, *, noise: float | None = None) -> None:
        """Takes in y = f_t(x_i) + N(0, σ²) of the current round.

        P ← P − p pᵀ/s,  μ ← μ + p (y − μ_i)/s,  with p = P e_i and s = p_i + σ².
        """
        if self.scale < SMALLEST_SCALE:
            self._apply_scale()
        c = self.scale
        p = self.prior.column(i) - c**2 * self._explained_column(i)
        s = max(float(p[i]), LEAST_VARIANCE * float(self.prior.variance[i])) + (self.noise if noise is None else noise)
        self._mean += (y - c * float(self._mean[i])) / (s * c) * p
        self._add(p / (sqrt(s) * c))

    def _explained_column(self, i: int) -> Array:
        if self._S is not None:
            return np.asarray(self._S[i])
        V = self._V[: self._r]
        return np.asarray(V[:, i] @ V)

    def _apply_scale(self) -> None:
        c = self.scale
        self._mean *= c
        self._explained *= c**2
        self._V[: self._r] *= c
        if self._S is not None:
            self._S *= c**2
        self._scaled_at = self.round

    def _add(self, row: Array) -> None:
        if self._S is None and self._r == self._V.shape[0]:
            self._make_room()
        if self._S is None:
            self._V[self._r] = row
            self._r += 1
        else:
            blas.dger(1.0, row, row, a=self._S.T, overwrite_a=1)
        self._explained += row * row

    def _make_room(self) -> None:
        """Drops what is forgotten; where that is little, V grows, or gives way to S once it has as many rows as S."""
        V = self._V[: self._r]
        lasting = self.scale * np.max(np.abs(V), axis=1) >= PRUNED_BELOW * self._largest_deviation
        if not lasting.all():
            V = V[lasting]
            self._V[: V.shape[0]] = V
            self._r = V.shape[0]
            self._explained = np.einsum("rm,rm->m", V, V)
        if self._r <= 0.75 * self._V.shape[0]:
            return
        if self._r >= self._m:
            self._S = V.T @ V
            self._V, self._r = np.empty((0, self._m)), 0
            return
        grown = np.empty((min(2 * self._V.shape[0], self._m), self._m))
        grown[: self._r] = V
        self._V = grown


# --------------------------------------------------------------------------------------------------------- the window


class WindowProcess:
    """The posterior over a whole space from the observations that are not forgotten yet.

    An observation leaves the window when its weight (1 − ε)^{age/2} has fallen below `tolerance`, or when `most` later
    ones are there; the factor is extended for each new one and made anew when a quarter of its rows has left. Rows have
    the round as one more column, the last.
    """

    def __init__(
        self,
        kernel: Kernel,
        theta: Array,
        *,
        dimension: int,
        forgetting: float,
        noise: float,
        tolerance: float = 1e-3,
        most: int = 400,
    ) -> None:
        self.forgetting = forgetting
        self.noise = noise
        self._dimension = dimension
        self._tolerance = tolerance
        self._most = most
        kernel = kernel * TimeDecay(dimension)
        theta = np.append(theta, logit(forgetting))
        self.gp: GP = condition(kernel, theta, np.zeros((0, dimension + 1)), np.zeros(0), noise=noise)

    @property
    def rows(self) -> int:
        return self.gp.n

    def observe(self, x: Array, y: float, *, round: int, noise: float | None = None) -> None:
        row = np.append(x, float(round))[None, :]
        self.gp = self.gp.condition_on(row, np.array([y]), noise=self.noise if noise is None else noise)
        kept = self._kept(round)
        if kept.size <= 0.75 * self.gp.n:
            self.gp = self._from_rows(kept)

    def _kept(self, round: int) -> IntArray:
        ages = round - self.gp.X[:, -1]
        kept = np.flatnonzero((1.0 - self.forgetting) ** (0.5 * ages) >= self._tolerance)
        return kept[-self._most :]

    def _from_rows(self, kept: IntArray) -> GP:
        gp = self.gp
        return condition(gp.kernel, gp.theta, gp.X[kept], gp.y[kept], noise=self.noise)

    def at(self, X: Array, *, round: int) -> "PoolBelief":
        """What is known at the rows X, from that round on."""
        return PoolBelief(self, X, round=round)


class PoolBelief:
    """A `Belief` at rows of a space. Rounds that pass only change its scale, as they do for a filter."""

    def __init__(self, process: WindowProcess, X: Array, *, round: int) -> None:
        self.round = round
        self._forgetting = process.forgetting
        self._made_at = round
        gp = process.gp
        rows = np.column_stack([X, np.full(X.shape[0], float(round))])
        C = gp.kernel.evaluate(gp.theta, rows, gp.X).K if gp.n else np.zeros((X.shape[0], 0))
        self._gp, self._rows = gp, rows
        self._mean = C @ gp.alpha
        self._V = solve_lower(gp.L, C.T)
        self._explained = np.sum(self._V * self._V, axis=0)
        diagonal = gp.kernel.evaluate(gp.theta, rows[:, None, :]).K
        self._prior = np.broadcast_to(diagonal, (X.shape[0], 1, 1))[:, 0, 0]

    @property
    def size(self) -> int:
        return int(self._mean.size)

    @property
    def scale(self) -> float:
        return float((1.0 - self._forgetting) ** (0.5 * (self.round - self._made_at)))

    def advance_to(self, round: int) -> None:
        assert round >= self.round, "time does not go back"
        self.round = round

    def mean(self) -> Array:
        return np.asarray(self.scale * self._mean)

    def variance(self) -> Array:
        return np.asarray(np.maximum(self._prior - self.scale**2 * self._explained, LEAST_VARIANCE * self._prior))

    def covariance(self, i: IntArray, j: IntArray) -> Array:
        K = self._gp.kernel.evaluate(self._gp.theta, self._rows[i], self._rows[j]).K
        return np.asarray(K - self.scale**2 * (self._V[:, i].T @ self._V[:, j]))
