"""An acquisition function of some columns while the others are held, as the time is when a decision is made."""

from dataclasses import dataclass

import numpy as np

from farthing.acquisition.acquisition import Acquisition
from farthing.models.linalg import Array


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
