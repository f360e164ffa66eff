"""A covariance between finitely many things that are told apart by their number alone."""

from dataclasses import dataclass

import numpy as np

from farthing.models.kernels import Covariance, Jet, Kernel, zero_jet
from farthing.models.linalg import Array
from farthing.models.parameters import Parameter


@dataclass(frozen=True, eq=False)
class Lookup(Kernel):
    """k(i, j) = M_ij, where i and j stand in a column as numbers. It has no θ."""

    M: Array
    column: int = 0

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return ()

    @property
    def rough_columns(self) -> frozenset[int]:
        return frozenset({self.column})

    def evaluate(self, theta: Array, X: Array, Z: Array | None = None) -> Covariance:
        return LookupCovariance(self, theta, X, X if Z is None else Z)


class LookupCovariance(Covariance):
    has_slope = False

    def __init__(self, kernel: Lookup, theta: Array, X: Array, Z: Array) -> None:
        self._theta, self._X = theta, X
        i, j = (rows[..., kernel.column].astype(np.int64) for rows in (X, Z))
        self.K = np.asarray(kernel.M[i[..., :, None], j[..., None, :]])

    def theta_gradient(self, W: Array) -> Array:
        return np.zeros((*W.shape[:-2], 0))

    def input_gradient(self, W: Array) -> Array:
        return np.zeros_like(self._X)

    def jet(self) -> Jet:
        return zero_jet(self.K.shape, self._X.shape[-1])
