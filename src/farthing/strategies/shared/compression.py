"""A scale on which losses far worse than the median are drawn together.

    z = g((y − m)/s),   g(t) = t for t ≤ 0 and log(1 + t) above,   m the median and s = m − min y

How bad a bad configuration is matters little, but a few very bad ones would stretch the scale until the good ones all
look alike. Half of the losses, the better ones, keep their proportions.
"""

from dataclasses import dataclass, replace

import numpy as np

from farthing.models.linalg import Array

MOST = 1e12
"""Of t: losses further from the median than this, in units of s, are equally bad. For arithmetic only."""


@dataclass(frozen=True)
class Compression:
    """m, ½s and the largest z seen. Half of s, because a difference of two finite losses may not be finite."""

    median: float = 0.0
    half_unit: float = 0.5
    largest: float = 0.0

    @classmethod
    def of(cls, loss: Array) -> "Compression":
        """If half of the losses are equally good, s is the distance to the worst; if all are equal it is one."""
        if loss.size == 0:
            return cls()
        half_median, half = float(np.median(loss / 2)), loss / 2
        half_unit = half_median - float(half.min()) or float(half.max()) - half_median or 0.5
        scale = cls(2.0 * half_median, half_unit)
        return replace(scale, largest=float(scale.apply(loss.max(keepdims=True))[0]))

    def apply(self, loss: Array) -> Array:
        with np.errstate(over="ignore"):
            return _compressed((loss / 2 - self.median / 2) / self.half_unit)

    def undo(self, z: Array) -> Array:
        """Losses; none is further from the median than the worst one seen."""
        within = np.minimum(z, self.largest)
        t = np.where(within > 0.0, np.expm1(np.maximum(within, 0.0)), within)
        return np.asarray(self.median + 2.0 * (t * self.half_unit))

    def slope(self, z: Array) -> Array:
        """dy/dz, by which deviations are carried back."""
        return np.asarray(2.0 * (self.half_unit * np.exp(np.clip(z, 0.0, self.largest))))


def _compressed(t: Array) -> Array:
    return np.asarray(np.where(t > 0.0, np.log1p(np.clip(t, 0.0, MOST)), t))
