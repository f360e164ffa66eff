"""Kernels over time and fidelity: each acts on one column that is always active."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import expit, xlogy

from farthing.models.kernels import Correlation, Covariance, Jet, Kernel, Parameter, zero_jet
from farthing.models.linalg import Array, IntArray

FORGETTING = Parameter("forgetting", median=0.05, spread=1.5, lower=1e-4, upper=0.9, scale="logit")
W = Parameter("w", median=0.5, spread=1.0, lower=1e-2, upper=1e2)
ALPHA = Parameter("alpha", median=0.8, spread=0.5, lower=5e-2, upper=1e1)
BETA = Parameter("beta", median=0.3, spread=0.7, lower=1e-2, upper=1e1)
C = Parameter("c", median=0.5, spread=1.0, lower=1e-2, upper=1e2)
DELTA = Parameter("delta", median=1.0, spread=0.7, lower=1e-2, upper=1e1)
"""The kernels are those of Wu et al. (2020) and, with forgetting, of Bogunovic et al. (2016). Priors are guesses."""


FEW, FEWER = 4096, 4
"""Pairs of values below which repetitions are not looked for, and the least factor that they must save. Limits time."""


class ColumnCovariance(Covariance):
    """A covariance of one column: K, ∂K/∂θ_k, ∂K/∂s, ∂K/∂s' and ∂²K/∂s∂s' as plain matrices."""

    def __init__(self, column: int, X: Array, Z: Array | None) -> None:
        Z = X if Z is None else Z
        self._column, self._X = column, X
        self._s, self._z = X[..., :, None, column], Z[..., None, :, column]
        self.K = self._value()

    @abstractmethod
    def _value(self) -> Array: ...

    @abstractmethod
    def _theta_derivatives(self) -> tuple[Array, ...]: ...

    @abstractmethod
    def _ds(self) -> Array: ...

    @abstractmethod
    def _dz(self) -> Array: ...

    @abstractmethod
    def _dsdz(self) -> Array: ...

    def theta_gradient(self, W: Array) -> Array:
        return np.stack([np.sum(W * dK, axis=(-2, -1)) for dK in self._theta_derivatives()], axis=-1)

    def input_gradient(self, W: Array) -> Array:
        pulled = np.sum(W * self._ds(), axis=-1)
        gradient = np.zeros((*pulled.shape, self._X.shape[-1]))
        gradient[..., self._column] = pulled
        return gradient

    def jet(self) -> Jet:
        jet, j = zero_jet(self.K.shape, self._X.shape[-1]), self._column
        jet.dx[..., j], jet.dz[..., j], jet.dxdz[..., j, j] = self._ds(), self._dz(), self._dsdz()
        return jet


# -------------------------------------------------------------------------------------------------- time decay


@dataclass(frozen=True)
class TimeDecay(Correlation):
    """k(t, t') = (1 − ω)^{|t − t'|/2}: the process forgets a share ω of its variance per unit of time.  θ = logit ω.

    Times are whole rounds or intervals, never scaled. The process has no derivative in t.
    """

    column: int
    forgetting: Parameter = FORGETTING

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return (self.forgetting,)

    @property
    def rough_columns(self) -> frozenset[int]:
        return frozenset({self.column})

    def evaluate(self, theta: Array, X: Array, Z: Array | None = None) -> Covariance:
        return TimeDecayCovariance(self.column, theta, X, Z)


class TimeDecayCovariance(ColumnCovariance):
    def __init__(self, column: int, theta: Array, X: Array, Z: Array | None) -> None:
        self._omega = expit(theta)[..., None]
        self._rate = -0.5 * np.log1p(-self._omega)
        super().__init__(column, X, Z)

    def _value(self) -> Array:
        self._gap = np.abs(self._s - self._z)
        return np.asarray(np.exp(-self._rate * self._gap))

    def _theta_derivatives(self) -> tuple[Array, ...]:
        """d log(1 − ω)/dθ = −ω."""
        return (-0.5 * self._omega * self._gap * self.K,)

    def _ds(self) -> Array:
        return np.asarray(-self._rate * np.sign(self._s - self._z) * self.K)

    def _dz(self) -> Array:
        return -self._ds()

    def _dsdz(self) -> Array:
        """Valid for t ≠ t' only; `rough_columns` keeps derivative observations away from the kink."""
        return np.asarray(-(self._rate**2) * self.K)


# ---------------------------------------------------------------------------------------------- learning curve


@dataclass(frozen=True)
class LearningCurve(Kernel):
    """k(s, s') = w + β^α/(s + s' + β)^α: exponential decays of all rates, mixed, over a level w that stays.

    θ = (log w, log α, log β). The printed formula of taKG slips a bracket; this is the freeze–thaw kernel it means.
    """

    column: int
    w: Parameter = W
    alpha: Parameter = ALPHA
    beta: Parameter = BETA

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return (self.w, self.alpha, self.beta)

    def evaluate(self, theta: Array, X: Array, Z: Array | None = None) -> Covariance:
        return LearningCurveCovariance(self.column, theta, X, Z)


class LearningCurveCovariance(ColumnCovariance):
    def __init__(self, column: int, theta: Array, X: Array, Z: Array | None) -> None:
        self._w, self._alpha, self._beta = (np.exp(theta[..., k, None, None]) for k in range(3))
        super().__init__(column, X, Z)

    def _value(self) -> Array:
        s, z = self._distinct()
        self._small_u = (s + z) / self._beta
        self._small_log_base = np.log1p(self._small_u)
        self._small_decay = np.exp(-self._alpha * self._small_log_base)
        return self._spread(self._w + self._small_decay)

    def _distinct(self) -> tuple[Array, Array]:
        """s and s' without repetitions, where that is much less: curves are seen at the same few places.

        The logarithm and the power of every pair would be a good part of the time of a suggestion.
        """
        self._places: tuple[IntArray, IntArray] | None = None
        if self._s.ndim > 2 or self._s.size * self._z.size < FEW:
            return self._s, self._z
        (s, i), (z, j) = (np.unique(column, return_inverse=True) for column in (self._s, self._z))
        if s.size * z.size > self._s.size * self._z.size // FEWER:
            return self._s, self._z
        self._places = i.reshape(-1), j.reshape(-1)
        return s[:, None], z

    def _spread(self, small: Array) -> Array:
        """From distinct values back to all pairs."""
        if self._places is None:
            return np.asarray(small)
        i, j = self._places
        return np.asarray(small.take(i, axis=-2).take(j, axis=-1))

    @cached_property
    def _u(self) -> Array:
        return self._spread(self._small_u)

    @cached_property
    def _log_base(self) -> Array:
        return self._spread(self._small_log_base)

    @cached_property
    def _decay(self) -> Array:
        return self._spread(self._small_decay)

    def _theta_derivatives(self) -> tuple[Array, ...]:
        return (
            np.broadcast_to(self._w, self.K.shape),
            -self._alpha * self._log_base * self._decay,
            self._alpha * self._u / (1.0 + self._u) * self._decay,
        )

    def _ds(self) -> Array:
        return np.asarray(-self._alpha * self._decay / (self._beta * (1.0 + self._u)))

    def _dz(self) -> Array:
        return self._ds()

    def _dsdz(self) -> Array:
        return np.asarray(self._alpha * (self._alpha + 1.0) * self._decay / (self._beta * (1.0 + self._u)) ** 2)


# --------------------------------------------------------------------------------------------------- data size


@dataclass(frozen=True)
class DataSize(Kernel):
    """k(s, s') = c + (1 − s)^{1+δ} (1 − s')^{1+δ}: what a small sample adds fades as s → 1.  θ = (log c, log δ)."""

    column: int
    c: Parameter = C
    delta: Parameter = DELTA

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return (self.c, self.delta)

    def evaluate(self, theta: Array, X: Array, Z: Array | None = None) -> Covariance:
        return DataSizeCovariance(self.column, theta, X, Z)


class DataSizeCovariance(ColumnCovariance):
    def __init__(self, column: int, theta: Array, X: Array, Z: Array | None) -> None:
        self._c, self._delta = (np.exp(theta[..., k, None, None]) for k in range(2))
        super().__init__(column, X, Z)

    def _value(self) -> Array:
        self._rest = (1.0 - self._s) * (1.0 - self._z)
        self._fading = self._rest ** (1.0 + self._delta)
        return np.asarray(self._c + self._fading)

    def _theta_derivatives(self) -> tuple[Array, ...]:
        return np.broadcast_to(self._c, self.K.shape), self._delta * xlogy(self._fading, self._rest)

    def _ds(self) -> Array:
        return np.asarray(-(1.0 + self._delta) * self._rest**self._delta * (1.0 - self._z))

    def _dz(self) -> Array:
        return np.asarray(-(1.0 + self._delta) * self._rest**self._delta * (1.0 - self._s))

    def _dsdz(self) -> Array:
        return np.asarray((1.0 + self._delta) ** 2 * self._rest**self._delta)
