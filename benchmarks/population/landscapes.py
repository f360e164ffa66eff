"""Peaks that wander through the unit cube: what an interval gains with some params."""

from dataclasses import dataclass
from functools import lru_cache
from zlib import crc32

import numpy as np

from farthing.models.linalg import Array


@dataclass(frozen=True, eq=False)
class Landscape:
    """Gains between 0 and 1: a function of the distance to the place of the peak, in widths."""

    shape: str
    centres: Array
    width: float

    def gain(self, x: Array, interval: int) -> float:
        q = float(np.sum((x - self.centres[interval - 1]) ** 2)) / self.width**2
        return float(np.exp(-0.5 * q)) if self.shape == "bell" else 1.0 / (1.0 + q)


@lru_cache(maxsize=64)
def landscape(
    shape: str, dimension: int, intervals: int, width: float, drift: float, key: tuple[str, int]
) -> Landscape:
    """The centre swings by `drift` about a place of its own, along each axis at its own pace, within [0.05, 0.95]."""
    rng = np.random.default_rng([crc32(key[0].encode()), key[1]])
    middle = rng.uniform(0.05 + drift, 0.95 - drift, dimension)
    turns, phase = rng.uniform(0.3, 1.0, dimension), rng.uniform(0.0, 2.0 * np.pi, dimension)
    t = np.arange(intervals)[:, None] / intervals
    return Landscape(shape, middle + drift * np.sin(2.0 * np.pi * turns * t + phase), width)
