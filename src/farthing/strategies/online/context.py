"""What a query rule sees: the posterior of one round, the choice that is due, and its rivals."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from farthing.models.drifting_posterior import DriftingPosterior
from farthing.models.linalg import Array, IntArray
from farthing.strategies.online.local_optima import Neighbourhood
from farthing.strategies.shared.randomness import Randomness


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
    """What a measurement must bring over the rounds that are left, scaled as values are; None leaves it to the rule."""

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
        """Where to measure, by default at the choice, or None for a silent round."""
        ...
