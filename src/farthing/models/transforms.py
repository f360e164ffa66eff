"""Transforms of observed values, so that the priors of the GP, which expect unit scale, fit any objective."""

from dataclasses import dataclass

import numpy as np

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
