"""Acquisition functions of params alone: what a process over params and fidelities says at full fidelity."""

from dataclasses import dataclass

import numpy as np

from farthing.acquisition.acquisition import Acquisition
from farthing.models.linalg import Array


@dataclass(frozen=True, eq=False)
class AtFullFidelity:
    """An acquisition function of rows (x, s) as one of x, with all fidelities at s = 1."""

    acquisition: Acquisition
    fidelities: int

    def __call__(self, X: Array) -> Array:
        return self.acquisition(self._rows(X))

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        value, gradient = self.acquisition.value_and_gradient(self._rows(X))
        return value, gradient[:, : X.shape[1]]

    def _rows(self, X: Array) -> Array:
        return np.hstack([X, np.ones((X.shape[0], self.fidelities))])
