"""A user's belief about the optimum, as a factor of an acquisition function (πBO, Hvarfner et al., 2022).

    log α(x) + w log π(x),    w = β/n

π is not normalised: it is 1 where the optimum is believed to be, and never below ρ, so that a wrong belief can be
overruled at a price that is known.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from farthing.acquisition.acquisition import Acquisition
from farthing.models.linalg import Array

SPREAD = 0.1
"""Deviation of π beside the guess, in the unit cube. A guess, not tuned."""
FLOOR = 0.05
"""ρ, of each column. A guess, not tuned."""
LIKELY = 0.8
"""Share of draws near a guess that have one of its options. A guess, not tuned."""


@dataclass(frozen=True, eq=False)
class Belief:
    """For each guessed column its range (low, high) in the unit cube, or the indices of its likely options.

    `counts` has the number of options of each of those columns.
    """

    ranges: Mapping[int, tuple[float, float]]
    options: Mapping[int, tuple[int, ...]]
    counts: Mapping[int, int]

    def __call__(self, X: Array) -> Array:
        """log π (N,)."""
        return self.value_and_gradient(X)[0]

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        value, gradient = np.zeros(X.shape[0]), np.zeros_like(X)
        for j, (low, high) in self.ranges.items():
            outside = np.where(X[:, j] < low, X[:, j] - low, np.where(X[:, j] > high, X[:, j] - high, 0.0))
            outside = np.where(np.isnan(X[:, j]), 0.0, outside)  # an inactive column says nothing
            bell = (1.0 - FLOOR) * np.exp(-0.5 * (outside / SPREAD) ** 2)
            value += np.log(FLOOR + bell)
            gradient[:, j] = -bell / (FLOOR + bell) * outside / SPREAD**2
        for j, likely in self.options.items():
            value += np.where(np.isnan(X[:, j]) | np.isin(X[:, j], likely), 0.0, np.log(FLOOR))
        return value, gradient

    def centre(self, u: Array) -> Array:
        """A point of the unit cube (d,) with the middle of every guess in place of its own coordinate."""
        found = u.copy()
        for j, (low, high) in self.ranges.items():
            found[j] = 0.5 * (low + high)
        for j, likely in self.options.items():
            found[j] = (likely[int(u[j] * len(likely))] + 0.5) / self.counts[j]
        return found

    def near(self, u: Array) -> Array:
        """A point of the unit cube (d,) as one of a normal distribution around every guess, cut off at the bounds."""
        found = u.copy()
        for j, (low, high) in self.ranges.items():
            middle, deviation = 0.5 * (low + high), SPREAD + 0.5 * (high - low)
            ends = ndtr((np.array([0.0, 1.0]) - middle) / deviation)
            found[j] = np.clip(middle + deviation * ndtri(ends[0] + u[j] * (ends[1] - ends[0])), 0.0, 1.0)
        for j, likely in self.options.items():
            found[j] = _likely_option(u[j], likely, self.counts[j])
        return found


def _likely_option(u: float, likely: tuple[int, ...], count: int) -> float:
    others = [index for index in range(count) if index not in likely]
    share = LIKELY if others else 1.0
    among, v = (likely, u / share) if u < share else (others, (u - share) / (1.0 - share))
    return (among[min(int(v * len(among)), len(among) - 1)] + 0.5) / count


@dataclass(frozen=True, eq=False)
class Believed:
    """log α + w log π."""

    other: Acquisition
    belief: Belief
    weight: float

    def __call__(self, X: Array) -> Array:
        return self.other(X) + self.weight * self.belief(X)

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        value, gradient = self.other.value_and_gradient(X)
        log_belief, slope = self.belief.value_and_gradient(X)
        return value + self.weight * log_belief, gradient + self.weight * slope
