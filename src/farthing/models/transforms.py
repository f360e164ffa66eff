"""Transforms of observed values, so that the priors of the GP, which expect unit scale, fit any objective."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from farthing.models.linalg import Array


@dataclass(frozen=True)
class Standardise:
    """z = (y − offset)/scale."""

    offset: float = 0.0
    scale: float = 1.0

    @classmethod
    def of(cls, y: Array) -> "Standardise":
        """Zero mean and unit deviation of y; constant, single or absent values keep a scale of one.

        The deviation is taken of y/max|y|, so that values near the limits of a float do not overflow.
        """
        if y.size == 0:
            return cls()
        largest = float(np.max(np.abs(y))) or 1.0
        offset = float(np.mean(y / largest)) * largest
        deviation = float(np.std(y / largest))
        return cls(offset, deviation * largest if deviation > 1e-12 else 1.0)

    def apply(self, y: Array) -> Array:
        return y / self.scale - self.offset / self.scale

    def undo(self, z: Array) -> Array:
        return z * self.scale + self.offset

    def undo_variance(self, variance: Array) -> Array:
        return variance * self.scale**2


@dataclass(frozen=True, eq=False)
class Rank:
    """Normal scores: z = Φ⁻¹((rank − ½)/n), equal values sharing their mean rank. Only the order of y matters."""

    values: Array
    scores: Array

    @classmethod
    def of(cls, y: Array) -> "Rank":
        values, counts = np.unique(y, return_counts=True)
        mean_rank = np.cumsum(counts) - 0.5 * (counts - 1)
        return cls(values, np.asarray(ndtri((mean_rank - 0.5) / max(y.size, 1))))

    def apply(self, y: Array) -> Array:
        """Scores of seen values; between two of them linear, beyond the extremes flat."""
        return np.zeros_like(y) if self.values.size == 0 else np.interp(y, self.values, self.scores)

    def undo(self, z: Array) -> Array:
        return np.zeros_like(z) if self.values.size == 0 else np.interp(z, self.scores, self.values)
