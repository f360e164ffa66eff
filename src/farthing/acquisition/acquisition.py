"""The interface of every acquisition function, and the simplest one."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, Self, TypeVar

import numpy as np

from farthing.models.gp import GP
from farthing.models.linalg import Array, BoolArray


class Acquisition(Protocol):
    """The worth of evaluating each row of X (N, D); more is better."""

    def __call__(self, X: Array) -> Array:
        """Values (N,)."""
        ...

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        """Values (N,) and gradients in X (N, D), zero along inactive and categorical columns."""
        ...


@dataclass(frozen=True, eq=False)
class PosteriorMean:
    """sign · E f(x): −1 recommends where a loss is lowest; +1 of a log cost is what a point is expected to cost."""

    gp: GP
    sign: float = 1.0

    def __call__(self, X: Array) -> Array:
        return self.sign * self.gp.mean(X)

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        mean, gradient = self.gp.mean_with_gradient(X)
        return self.sign * mean, self.sign * gradient


# ------------------------------------------------------------
# An acquisition function of some columns while the others are held, as the time is when a decision is made.


@dataclass(frozen=True, eq=False)
class FixedFeatures:
    """The other function at rows that end with `values`."""

    other: Acquisition
    values: tuple[float, ...]

    def __call__(self, X: Array) -> Array:
        return self.other(with_columns(X, *self.values))

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        value, gradient = self.other.value_and_gradient(with_columns(X, *self.values))
        return value, gradient[:, : X.shape[1]]


def with_columns(X: Array, *values: float) -> Array:
    """The rows, each with these values at its end."""
    return np.concatenate([X, np.broadcast_to(np.array(values), (X.shape[0], len(values)))], axis=1)


# ------------------------------------------------------------
# Value per cost.


@dataclass(frozen=True, eq=False)
class LogValuePerCost:
    """log(value/cost^γ) of a positive acquisition function that is given by its logarithm."""

    log_value: Acquisition
    log_cost: Acquisition
    exponent: float = 1.0

    def __call__(self, X: Array) -> Array:
        return self.log_value(X) - self.exponent * self.log_cost(X)

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        value, gradient = self.log_value.value_and_gradient(X)
        log_cost, log_cost_gradient = self.log_cost.value_and_gradient(X)
        return value - self.exponent * log_cost, gradient - self.exponent * log_cost_gradient


@dataclass(frozen=True, eq=False)
class Affordable:
    """−∞ where the expected cost is above `limit`, the other function elsewhere."""

    other: Acquisition
    log_cost: Acquisition
    limit: float

    def __call__(self, X: Array) -> Array:
        return np.where(self.log_cost(X) > np.log(self.limit), -np.inf, self.other(X))

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        value, gradient = self.other.value_and_gradient(X)
        return np.where(self.log_cost(X) > np.log(self.limit), -np.inf, value), gradient


# ------------------------------------------------------------
# Choosing several points at once, or one while others are pending.


class Believer(Protocol):
    """A model of one thing or several that can be told to believe its own means."""

    @property
    def X(self) -> Array:  # noqa: N802
        ...

    def kriging_believer(self, X: Array) -> Self: ...


Model = TypeVar("Model", bound=Believer)


def select_batch(
    gp: Model,
    count: int,
    *,
    pending: Array,
    acquisition: Callable[[Model], Acquisition],
    maximizer: Callable[[Acquisition], Array],
) -> Array:
    """`count` rows (count, D), one after the other, each as if those before it and the pending ones had been observed.

    Their results are not known: their mean stands in (kriging believer). `acquisition` should measure improvement from
    the best of the process, these means included; over the best real value, a promising row is chosen again.
    """
    chosen = np.zeros((0, pending.shape[1]))
    for _ in range(count):
        waiting = np.concatenate([pending, chosen])
        best = maximizer(acquisition(gp.kriging_believer(waiting) if waiting.shape[0] else gp))
        chosen = np.concatenate([chosen, best[None, :]])
    return chosen


# ------------------------------------------------------------
# An acquisition function that is not interested in rows seen before.


@dataclass(frozen=True, eq=False)
class Unvisited:
    """−∞ at the rows of `visited`, the other function elsewhere: a second evaluation of the same would buy nothing."""

    other: Acquisition
    visited: Array

    def __call__(self, X: Array) -> Array:
        return np.where(self._is_visited(X), -np.inf, self.other(X))

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        value, gradient = self.other.value_and_gradient(X)
        return np.where(self._is_visited(X), -np.inf, value), gradient

    def has(self, x: Array) -> bool:
        """Whether a row (D,) was visited."""
        return bool(self._is_visited(x[None, :])[0])

    @cached_property
    def _keys(self) -> frozenset[bytes]:
        return frozenset(_keys_of(self.visited))

    def _is_visited(self, X: Array) -> BoolArray:
        return np.array([key in self._keys for key in _keys_of(X)], dtype=bool)


def _keys_of(X: Array) -> list[bytes]:
    """Equal keys for equal rows. Adding zero makes −0 the same as 0; inactive values are equal to each other."""
    return [row.tobytes() for row in np.nan_to_num(X, nan=-1.0) + 0.0]
