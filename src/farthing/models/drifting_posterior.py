"""The posterior of a drifting function at some rows, in one round.

A measurement shows y = f_t(x) + ℓ_t + N(0, σ²). The level ℓ is the same everywhere, such as the accuracy that rises in
training for every choice: it drifts at a rate of its own, and a choice between rows depends on f alone.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from farthing.models.gp import LEAST_VARIANCE
from farthing.models.linalg import Array, IntArray


@dataclass(frozen=True)
class Level:
    """ℓ ~ GP(0, variance · (1 − ε)^{|t − t'|/2}); no level at all by default."""

    variance: float = 0.0
    forgetting: float = 0.0


NO_LEVEL = Level()


class DriftingPosterior(Protocol):
    """μ, σ² and covariances of the latent f; and of f + ℓ, which is f itself unless told otherwise."""

    @property
    def size(self) -> int: ...

    def advance_to(self, round: int) -> None:
        """Advances time to that round."""
        ...

    def mean(self) -> Array:
        """μ, of shape (m,)."""
        ...

    def variance(self) -> Array:
        """σ², of shape (m,)."""
        ...

    def covariance(self, i: IntArray, j: IntArray) -> Array:
        """Between the rows i and j, of shape (|i|, |j|)."""
        ...

    def level_covariance(self) -> Array:
        """Cov(f, ℓ), of shape (m,)."""
        return np.zeros(self.size)

    def shown_mean(self) -> Array:
        """Of f + ℓ."""
        return self.mean()

    def shown_variance(self) -> Array:
        """Of f + ℓ."""
        return self.variance()


class FadingPosterior(DriftingPosterior, Protocol):
    """A posterior in which a round that passes multiplies what is known, and no more.

    With P = K − VᵀV over the rows and the level together, a round multiplies the mean and V by √(1−ε) in the columns of
    the rows and by √(1−ε_ℓ) in the level's. Both numbers are kept apart (lazy scales c and d): a round in which nothing
    is seen costs nothing until something is read.
    """

    round: int
    _forgetting: float
    _level: Level
    _since: int
    """When the scales were 1."""
    _prior: Array
    _mean: Array
    _explained: Array
    """The diagonal of VᵀV."""
    _level_mean: float
    _level_explained: float
    _shared: Array
    """The column of VᵀV between the rows and the level."""

    @property
    def size(self) -> int:
        return int(self._mean.size)

    @property
    def scale(self) -> float:
        return float((1.0 - self._forgetting) ** (0.5 * (self.round - self._since)))

    @property
    def level_scale(self) -> float:
        return float((1.0 - self._level.forgetting) ** (0.5 * (self.round - self._since)))

    def advance_to(self, round: int) -> None:
        assert round >= self.round, "time does not go back"
        self.round = round

    def mean(self) -> Array:
        return np.asarray(self.scale * self._mean)

    def variance(self) -> Array:
        return np.maximum(self._prior - self.scale**2 * self._explained, LEAST_VARIANCE * self._prior)

    def level_covariance(self) -> Array:
        return np.asarray(-self.scale * self.level_scale * self._shared)

    def shown_mean(self) -> Array:
        return self.mean() + self.level_scale * self._level_mean

    def shown_variance(self) -> Array:
        level = self._level.variance - self.level_scale**2 * self._level_explained
        return np.maximum(self.variance() + 2.0 * self.level_covariance() + level, LEAST_VARIANCE * self._prior)


@dataclass(frozen=True, eq=False)
class Shifted(DriftingPosterior):
    """A posterior about what differs from a known mean: the mean itself is added."""

    posterior: DriftingPosterior
    shift: Array

    @property
    def size(self) -> int:
        return self.posterior.size

    def advance_to(self, round: int) -> None:
        self.posterior.advance_to(round)

    def mean(self) -> Array:
        return self.posterior.mean() + self.shift

    def variance(self) -> Array:
        return self.posterior.variance()

    def covariance(self, i: IntArray, j: IntArray) -> Array:
        return self.posterior.covariance(i, j)

    def level_covariance(self) -> Array:
        return self.posterior.level_covariance()

    def shown_mean(self) -> Array:
        return self.posterior.shown_mean() + self.shift

    def shown_variance(self) -> Array:
        return self.posterior.shown_variance()


@dataclass(frozen=True, eq=False)
class Selected(DriftingPosterior):
    """A posterior at some of its rows."""

    posterior: DriftingPosterior
    rows: IntArray

    @property
    def size(self) -> int:
        return int(self.rows.size)

    def advance_to(self, round: int) -> None:
        self.posterior.advance_to(round)

    def mean(self) -> Array:
        return np.asarray(self.posterior.mean()[self.rows])

    def variance(self) -> Array:
        return np.asarray(self.posterior.variance()[self.rows])

    def covariance(self, i: IntArray, j: IntArray) -> Array:
        return self.posterior.covariance(self.rows[i], self.rows[j])

    def level_covariance(self) -> Array:
        return np.asarray(self.posterior.level_covariance()[self.rows])

    def shown_mean(self) -> Array:
        return np.asarray(self.posterior.shown_mean()[self.rows])

    def shown_variance(self) -> Array:
        return np.asarray(self.posterior.shown_variance()[self.rows])
