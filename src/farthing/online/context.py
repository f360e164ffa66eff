"""Local optima of a function that is known at some rows of the unit cube.

The paper finds clusters by mean-shift, whose centres are no optima and may swallow the choice itself; here the optima
are taken in order and each drops the lower ones in its neighbourhood (greedy suppression).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from farthing.models.drifting_posterior import DriftingPosterior
from farthing.models.linalg import Array, IntArray
from farthing.strategies.shared.strategy import Randomness

FAR = 1e3
"""The distance between two categories, or between an active value and an inactive one: never neighbours."""


class Neighbourhood:
    """Which rows lie next to each other, and how far apart rows are. Without a bandwidth each stands alone.

    Neighbours are the 2d nearest rows, so that on a grid in one dimension they are the next ones, and ends count.
    Where the optima are known otherwise, `peaks` are their rows.
    """

    def __init__(
        self,
        X: Array,
        *,
        categories: frozenset[int] = frozenset(),
        bandwidth: float | None,
        peaks: IntArray | None = None,
    ) -> None:
        self.bandwidth = bandwidth
        self._peaks = peaks
        self._Z = _spread_out(X, categories)
        self._neighbours: IntArray | None = None

    def optima(self, height: Array, *, first: int) -> IntArray:
        """The rows that stand out, highest first but `first` before all; it is always one of them."""
        if self.bandwidth is None:
            order = np.argsort(-height, kind="stable")
            return np.concatenate([[first], order[order != first]])
        peaks = self._peaks
        if peaks is None:
            peaks = np.flatnonzero(height >= np.max(height[self._nearest()], axis=1))
        order = peaks[np.argsort(-height[peaks], kind="stable")]
        return self._suppressed(np.concatenate([[first], order[order != first]]))

    def spaced(self, height: Array, *, first: int) -> IntArray:
        """Rows at least a bandwidth apart that are the highest around them, whether or not they are optima."""
        order = np.argsort(-height, kind="stable")
        order = np.concatenate([[first], order[order != first]])
        return order if self.bandwidth is None else self._suppressed(order)

    def _suppressed(self, order: IntArray) -> IntArray:
        kept: list[int] = []
        assert self.bandwidth is not None
        while order.size:
            best, others = int(order[0]), order[1:]
            kept.append(best)
            distance = np.sqrt(np.sum((self._Z[others] - self._Z[best]) ** 2, axis=1))
            order = others[distance >= self.bandwidth]
        return np.array(kept, dtype=np.int64)

    def _nearest(self) -> IntArray:
        if self._neighbours is None:
            from scipy.spatial import cKDTree

            m, d = self._Z.shape
            count = min(2 * d + 1, m)
            _, found = cKDTree(self._Z).query(self._Z, k=count)
            self._neighbours = np.asarray(found, dtype=np.int64).reshape(m, count)
        return self._neighbours


def _spread_out(X: Array, categories: frozenset[int]) -> Array:
    Z = np.where(np.isnan(X), -FAR, X)
    for column in categories:
        Z[:, column] *= FAR
    return Z


# ------------------------------------------------------------
# What a query rule sees: the posterior of one round, the choice that is due, and its rivals.


@dataclass(frozen=True, eq=False)
class RoundContext:
    """One round, before anything is decided. Values are scaled and to be maximised; rounds count from one.

    `choice` is where the strategy would measure, by default the argmax of μ + √β σ. `asked` counts the measurements so
    far.
    """

    round: int
    rounds: int
    asked: int
    posterior: DriftingPosterior
    choice: int
    height: Array
    """The choice is the argmax of this: the upper confidence bound μ + √β σ, or what a baseline has in its place."""
    beta: float
    noise: float
    deviation: float
    """How far values lie apart a priori: the unit of prices."""
    lasting: float
    """√(1 − ε): the part of what is known that lasts to the next round."""
    neighbourhood: Neighbourhood
    randomness: Randomness
    price: float | None = None
    """The gain that a measurement must bring in the rounds left, scaled as values are; None leaves it to the rule."""

    @cached_property
    def mean(self) -> Array:
        return self.posterior.mean()

    @cached_property
    def variance(self) -> Array:
        return self.posterior.variance()

    @cached_property
    def best_mean(self) -> int:
        return int(np.argmax(self.mean))

    @cached_property
    def optima(self) -> IntArray:
        """The local optima of the height, the choice first."""
        return self.neighbourhood.optima(self.height, first=self.choice)

    @property
    def rivals(self) -> IntArray:
        """The local optima that the choice competes with."""
        return self.optima[1:]

    @cached_property
    def alternatives(self) -> IntArray:
        """Places all over the space that are the highest around them, and the argmax of the mean; not the choice."""
        spaced = self.neighbourhood.spaced(self.height, first=self.choice)
        return np.setdiff1d(np.append(spaced, self.best_mean), [self.choice])

    def differences(self, places: Sequence[int] | IntArray) -> tuple[Array, Array]:
        """Mean and variance of f(x) − f(choice) for each place x, with the joint covariance."""
        x, c = np.asarray(places, dtype=np.int64), np.array([self.choice])
        shared = self.posterior.covariance(x, c)[:, 0]
        variance = self.variance[x] + self.variance[self.choice] - 2.0 * shared
        return self.mean[x] - self.mean[self.choice], np.maximum(variance, 0.0)

    def moves(self, places: IntArray) -> Array:
        """How far a measurement at place j moves the mean of f at place i, per deviation of what it shows.

        σ̃_j(x_i) = Cov(f_i, f_j + ℓ)/√(Var(f_j + ℓ) + σ²), with ℓ the level that all places share.
        """
        K = self.posterior.covariance(places, places) + self.posterior.level_covariance()[places, None]
        return np.asarray(K / np.sqrt(self.posterior.shown_variance()[places] + self.noise))

    @property
    def remaining(self) -> int:
        """Rounds that are left, this one included."""
        return self.rounds - self.round + 1

    def happens(self, what: str, probability: float) -> bool:
        """A coin of this round, from a stream of its own."""
        return bool(self.randomness.at(what, self.round).random() < probability)


@dataclass(frozen=True)
class Query:
    """A measurement that is worth its price: where, and why."""

    place: int
    reason: str


class QueryRule(Protocol):
    """Says whether to pay for a measurement in a round. A frozen dataclass whose fields are plain values or rules."""

    def ask(self, context: RoundContext) -> Query | None:
        """The place to measure, by default the choice; None for a silent round."""
        ...
