"""An acquisition function that is not interested in rows seen before."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from farthing.acquisition.acquisition import Acquisition
from farthing.models.linalg import Array, BoolArray


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
