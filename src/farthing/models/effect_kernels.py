"""Kernels of the effects in a mixed model: what rows have in common that is not about their params.

A row that is to be predicted carries no effect (group `NO_GROUP`, covariate 0), so that the prediction is of the part
that params explain, and the effects have been taken out of the evidence for it.
"""

from dataclasses import dataclass

import numpy as np

from farthing.models.fidelity_kernels import ColumnCovariance
from farthing.models.kernels import Covariance, Kernel
from farthing.models.linalg import Array
from farthing.models.parameters import Parameter

NO_GROUP = 0.0
"""The group of rows without an effect of a group."""


@dataclass(frozen=True)
class GroupEffect(Kernel):
    """k(g, g') = c if both rows are of the same group, else 0: a random level for each group.  θ = log c."""

    column: int
    scale: Parameter

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return (self.scale,)

    @property
    def rough_columns(self) -> frozenset[int]:
        return frozenset({self.column})

    def evaluate(self, theta: Array, X: Array, Z: Array | None = None) -> Covariance:
        return GroupCovariance(self.column, theta, X, Z)


class ScaledCovariance(ColumnCovariance):
    """c times a matrix that has no parameter."""

    def __init__(self, column: int, theta: Array, X: Array, Z: Array | None) -> None:
        self._scale = np.exp(theta)[..., None]
        super().__init__(column, X, Z)

    def _theta_derivatives(self) -> tuple[Array, ...]:
        return (self.K,)


class GroupCovariance(ScaledCovariance):
    """Groups are names: nothing changes along the column."""

    has_slope = False

    def _value(self) -> Array:
        return np.asarray(self._scale * ((self._s == self._z) & (self._s != NO_GROUP)))

    def _ds(self) -> Array:
        return np.zeros_like(self.K)

    def _dz(self) -> Array:
        return np.zeros_like(self.K)

    def _dsdz(self) -> Array:
        return np.zeros_like(self.K)


@dataclass(frozen=True)
class Slope(Kernel):
    """k(s, s') = c s s': a straight line through the origin with a random slope.  θ = log c."""

    column: int
    scale: Parameter

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return (self.scale,)

    def evaluate(self, theta: Array, X: Array, Z: Array | None = None) -> Covariance:
        return SlopeCovariance(self.column, theta, X, Z)


class SlopeCovariance(ScaledCovariance):
    def _value(self) -> Array:
        return np.asarray(self._scale * self._s * self._z)

    def _ds(self) -> Array:
        return np.asarray(self._scale * np.broadcast_to(self._z, self.K.shape))

    def _dz(self) -> Array:
        return np.asarray(self._scale * np.broadcast_to(self._s, self.K.shape))

    def _dsdz(self) -> Array:
        return np.asarray(np.broadcast_to(self._scale, self.K.shape))
