"""Kernels: small frozen descriptions of a covariance, composed by `*` and `+`.

A kernel holds no hyperparameter values. It is evaluated at a vector θ (logarithms, or logits for fractions), or at a
batch of such vectors, and the `Covariance` that comes back carries the derivatives which share its intermediate
results. Derivatives come as pullbacks: given W = ∂F/∂K for some number F, they return ∂F/∂θ or ∂F/∂X in O(n m d)
without ever forming ∂K/∂θ.

Shapes: θ (…, p), X (…, n, D), Z (…, m, D), K (…, n, m). A kernel acts on its `columns` of the D.

Matrices are changed in place where that is easy: at these sizes fresh memory costs more than the arithmetic.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise
from math import sqrt
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import expit, logit

from farthing.errors import InvalidArgument
from farthing.models.linalg import Array, BoolArray

# ------------------------------------------------------------
# Hyperparameters: their names, weak priors, bounds, and the scale on which they are fitted.


@dataclass(frozen=True)
class Parameter:
    """One hyperparameter, fitted as θ = log(value) or θ = logit(value).

    The prior is normal in θ: θ ~ N(transform(median), spread²), that is log-normal in the value. A density in the
    value itself, as GPyTorch's `LogNormalPrior(μ, σ)`, has its mode in θ at μ − σ²: give `median=exp(μ − σ²)` for it.
    """

    name: str
    median: float
    spread: float
    lower: float
    upper: float
    scale: Literal["log", "logit"] = "log"

    def __post_init__(self) -> None:
        if not self.lower <= self.median <= self.upper or self.spread <= 0:
            raise InvalidArgument(
                f"A prior needs lower <= median <= upper and a positive spread, got {self.lower}, {self.median}, "
                f"{self.upper} and {self.spread} for {self.name}. Widen the bounds or move the median."
            )

    def to_theta(self, value: float) -> float:
        return float(np.log(value) if self.scale == "log" else logit(value))

    def to_value(self, theta: float) -> float:
        return float(np.exp(theta) if self.scale == "log" else expit(theta))

    def named(self, name: str) -> "Parameter":
        return replace(self, name=name)


@dataclass(frozen=True)
class Priors:
    """The priors and bounds of a vector θ, as arrays."""

    mean: Array
    spread: Array
    lower: Array
    upper: Array

    @classmethod
    def of(cls, parameters: Sequence[Parameter]) -> "Priors":
        return cls(
            mean=np.array([p.to_theta(p.median) for p in parameters]),
            spread=np.array([p.spread for p in parameters]),
            lower=np.array([p.to_theta(p.lower) for p in parameters]),
            upper=np.array([p.to_theta(p.upper) for p in parameters]),
        )

    def log_density(self, theta: Array) -> tuple[Array, Array]:
        """Σ log N(θ; mean, spread²) without its constant, and the gradient; θ has shape (…, p)."""
        z = (theta - self.mean) / self.spread
        return -0.5 * np.sum(z * z, axis=-1), -z / self.spread


# ------------------------------------------------------------
# Kernels.


SCALE = Parameter("scale", median=1.0, spread=1.0, lower=1e-3, upper=1e3)
"""Weak priors for standardised values; guesses, not tuned."""
LENGTHSCALE_SPREAD = 1.0
"""1.7 was tried, and a median of 0.5 d^½; neither is better (`docs/systems/bayesian.md`, variants)."""
LENGTHSCALE_BOUNDS = (5e-3, 1e2)
OVERLAP = Parameter("overlap", median=1.0, spread=1.0, lower=1e-2, upper=1e2)

INACTIVE_HEIGHT = 0.5
"""Distance of an inactive value from the line of active ones, in units of the column's range. A guess, not tuned."""


class Jet(NamedTuple):
    """Derivatives of every entry: dx and dz (…, n, m, D), dxdz (…, n, m, D, D) with x first."""

    dx: Array
    dz: Array
    dxdz: Array


class Covariance(ABC):
    """k(X, Z) at θ, with its derivatives."""

    K: Array
    has_slope: bool = True
    """False if the gradient in X is zero everywhere, so that it need not be computed."""

    @abstractmethod
    def theta_gradient(self, W: Array) -> Array:
        """Σ_ij W_ij ∂K_ij/∂θ, of shape (…, p)."""

    @abstractmethod
    def input_gradient(self, W: Array) -> Array:
        """∂/∂X_i Σ_j W_ij K_ij with Z held fixed, of shape (…, n, D); zero in inactive and categorical columns."""

    @abstractmethod
    def jet(self) -> Jet:
        """All first derivatives in x and in z, and the mixed second ones."""


class Kernel(ABC):
    """A positive semi-definite function of two rows."""

    @property
    @abstractmethod
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters in θ, in order."""

    @abstractmethod
    def evaluate(self, theta: Array, X: Array, Z: Array | None = None) -> Covariance:
        """k(X, Z) at θ, or k(X, X) when Z is not given."""

    def variance(self, theta: Array, X: Array) -> tuple[Array, Array]:
        """k(x, x) of each row (n,) and its gradient (n, D): twice that in the first argument, as k is symmetric."""
        covariance = self.evaluate(theta, X[:, None, :])
        gradient = 2.0 * covariance.input_gradient(np.ones((X.shape[0], 1, 1)))
        return covariance.K[:, 0, 0], gradient[:, 0, :]

    @property
    def rough_columns(self) -> frozenset[int]:
        """Columns along which no derivative of the process exists."""
        return frozenset()

    def __mul__(self, other: "Kernel") -> "Product":
        return Product((*_factors(self, Product), *_factors(other, Product)))

    def __add__(self, other: "Kernel") -> "Sum":
        return Sum((*_factors(self, Sum), *_factors(other, Sum)))


class Correlation(Kernel):
    """A kernel with k(x, x) = 1 everywhere."""

    def variance(self, theta: Array, X: Array) -> tuple[Array, Array]:
        return np.ones(X.shape[0]), np.zeros(X.shape)


# ------------------------------------------------------------------------------------------------ composition


def _factors(kernel: Kernel, kind: type["Composite"]) -> tuple[Kernel, ...]:
    return kernel.kernels if isinstance(kernel, kind) else (kernel,)


@dataclass(frozen=True)
class Composite(Kernel):
    """Several kernels whose vectors θ stand one after the other."""

    kernels: tuple[Kernel, ...]

    @cached_property  # computed once for a frozen value: as good as the property
    def parameters(self) -> tuple[Parameter, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return tuple(parameter for kernel in self.kernels for parameter in kernel.parameters)

    @property
    def rough_columns(self) -> frozenset[int]:
        return frozenset().union(*(kernel.rough_columns for kernel in self.kernels))

    @cached_property
    def _places(self) -> list[slice]:
        """The positions in θ of the parameters of each kernel."""
        ends = list(accumulate((len(kernel.parameters) for kernel in self.kernels), initial=0))
        return [slice(first, last) for first, last in pairwise(ends)]

    def _split(self, theta: Array) -> list[Array]:
        return [theta[..., place] for place in self._places]

    def _variances(self, theta: Array, X: Array) -> list[tuple[Array, Array]]:
        return [kernel.variance(part, X) for kernel, part in zip(self.kernels, self._split(theta), strict=True)]

    def _evaluate_parts(self, theta: Array, X: Array, Z: Array | None) -> list[Covariance]:
        return [kernel.evaluate(part, X, Z) for kernel, part in zip(self.kernels, self._split(theta), strict=True)]


class Product(Composite):
    """k = Π_i k_i."""

    def evaluate(self, theta: Array, X: Array, Z: Array | None = None) -> Covariance:
        return ProductCovariance(self._evaluate_parts(theta, X, Z))

    def variance(self, theta: Array, X: Array) -> tuple[Array, Array]:
        value, gradient = np.ones(X.shape[0]), np.zeros(X.shape)
        for v, g in self._variances(theta, X):
            value, gradient = value * v, gradient * v[:, None] + value[:, None] * g
        return value, gradient


class Sum(Composite):
    """k = Σ_i k_i."""

    def evaluate(self, theta: Array, X: Array, Z: Array | None = None) -> Covariance:
        return SumCovariance(self._evaluate_parts(theta, X, Z))

    def variance(self, theta: Array, X: Array) -> tuple[Array, Array]:
        values, gradients = zip(*self._variances(theta, X), strict=True)
        return np.asarray(sum(values)), np.asarray(sum(gradients))


class CompositeCovariance(Covariance):
    """Gradients in X are those of the parts that have any; where none has, the first stands for all."""

    def __init__(self, parts: Sequence[Covariance]) -> None:
        self._parts = parts
        self._sloped = [i for i, part in enumerate(parts) if part.has_slope] or [0]
        self.has_slope = any(part.has_slope for part in parts)


class ProductCovariance(CompositeCovariance):
    def __init__(self, parts: Sequence[Covariance]) -> None:
        super().__init__(parts)
        self.K = _multiply([part.K for part in parts])

    def _weight(self, W: Array, i: int) -> Array:
        """∂F/∂K_i = W ∘ Π_{j≠i} K_j."""
        return _multiply([W, *(part.K for j, part in enumerate(self._parts) if j != i)])

    def theta_gradient(self, W: Array) -> Array:
        gradients = [part.theta_gradient(self._weight(W, i)) for i, part in enumerate(self._parts)]
        return np.concatenate(gradients, axis=-1)

    def input_gradient(self, W: Array) -> Array:
        return np.asarray(sum(self._parts[i].input_gradient(self._weight(W, i)) for i in self._sloped))

    def jet(self) -> Jet:
        K, (dx, dz, dxdz) = self._parts[0].K, self._parts[0].jet()
        for part in self._parts[1:]:
            (ex, ez, exz), E = part.jet(), part.K
            K1, E1, K2, E2 = K[..., None], E[..., None], K[..., None, None], E[..., None, None]
            crossed = dx[..., :, None] * ez[..., None, :] + ex[..., :, None] * dz[..., None, :]
            dx, dz, dxdz = dx * E1 + K1 * ex, dz * E1 + K1 * ez, dxdz * E2 + crossed + K2 * exz
            K = K * E
        return Jet(dx, dz, dxdz)


class SumCovariance(CompositeCovariance):
    def __init__(self, parts: Sequence[Covariance]) -> None:
        super().__init__(parts)
        self.K = np.asarray(sum(part.K for part in parts))

    def theta_gradient(self, W: Array) -> Array:
        return np.concatenate([part.theta_gradient(W) for part in self._parts], axis=-1)

    def input_gradient(self, W: Array) -> Array:
        return np.asarray(sum(self._parts[i].input_gradient(W) for i in self._sloped))

    def jet(self) -> Jet:
        jets = [part.jet() for part in self._parts]
        return Jet(*(np.asarray(sum(derivatives)) for derivatives in zip(*jets, strict=True)))


def _multiply(factors: Sequence[Array]) -> Array:
    product = factors[0]
    for factor in factors[1:]:
        product = product * factor
    return product


def zero_jet(shape: tuple[int, ...], D: int) -> Jet:
    """The jet of what does not vary, to be filled in where it does."""
    return Jet(np.zeros((*shape, D)), np.zeros((*shape, D)), np.zeros((*shape, D, D)))


# ---------------------------------------------------------------------------------------------------- constant


@dataclass(frozen=True)
class Constant(Kernel):
    """k(x, x') = c: the output scale of a product, or the shared level of a sum.  θ = log c."""

    scale: Parameter = SCALE

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return (self.scale,)

    def evaluate(self, theta: Array, X: Array, Z: Array | None = None) -> Covariance:
        return ConstantCovariance(theta, X, X if Z is None else Z)

    def variance(self, theta: Array, X: Array) -> tuple[Array, Array]:
        return np.full(X.shape[0], np.exp(theta[0])), np.zeros(X.shape)


class ConstantCovariance(Covariance):
    """K keeps the shape (…, 1, 1): multiplying by it broadcasts instead of filling a matrix."""

    has_slope = False

    def __init__(self, theta: Array, X: Array, Z: Array) -> None:
        self.K = np.exp(theta)[..., None]
        self._X, self._Z = X, Z

    def theta_gradient(self, W: Array) -> Array:
        return np.asarray(self.K[..., 0] * np.sum(W, axis=(-2, -1))[..., None])

    def input_gradient(self, W: Array) -> Array:
        return np.zeros_like(self._X)

    def jet(self) -> Jet:
        return zero_jet((self._X.shape[-2], self._Z.shape[-2]), self._X.shape[-1])


# ------------------------------------------------------------------------------------------------------ radial


@dataclass(frozen=True)
class Radial(Correlation):
    """k = g(q) of the scaled squared distance q = Σ_j (x_j − x'_j)²/ℓ_j².  θ = log ℓ, one per column or one for all.

    *Inactive values.* A column of the unit cube may be inactive, which arrives as NaN. Each column is embedded in the
    plane: an active value x at (x, 0), an inactive one at (½, h), h = `INACTIVE_HEIGHT`. Its squared distance is then
    (x − x')² between two active values, 0 between two inactive ones, and h² + (x − ½)² between one of each. The
    kernel is a radial one on ℝ^{2d}, which is positive semi-definite in every dimension, so it stays so here.
    (No embedding makes the last distance the same for all x: points of a line have no common distance to a point.)
    """

    columns: tuple[int, ...]
    ard: bool = True
    lengthscale: Parameter | None = None

    def __post_init__(self) -> None:
        require_columns(self.columns)

    @cached_property  # computed once for a frozen value: as good as the property
    def parameters(self) -> tuple[Parameter, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        prior = self.lengthscale or default_lengthscale(len(self.columns))
        names = [f"lengthscale[{j}]" for j in self.columns] if self.ard else ["lengthscale"]
        return tuple(prior.named(name) for name in names)

    def evaluate(self, theta: Array, X: Array, Z: Array | None = None) -> Covariance:
        return RadialCovariance(self, theta, X, Z)

    @staticmethod
    @abstractmethod
    def decay(q: Array) -> tuple[Array, Array]:
        """(a, E): the scaled distance and the exponential that value, slope and curvature share."""

    @staticmethod
    @abstractmethod
    def value(a: Array, E: Array) -> Array:
        """g."""

    @staticmethod
    @abstractmethod
    def slope(a: Array, E: Array) -> Array:
        """dg/dq."""

    @staticmethod
    @abstractmethod
    def curvature(a: Array, E: Array) -> Array:
        """d²g/dq²."""


class SE(Radial):
    """Squared exponential: g = exp(−q/2)."""

    @staticmethod
    def decay(q: Array) -> tuple[Array, Array]:
        E = -0.5 * q
        return q, np.exp(E, out=E)

    @staticmethod
    def value(a: Array, E: Array) -> Array:
        return E

    @staticmethod
    def slope(a: Array, E: Array) -> Array:
        return -0.5 * E

    @staticmethod
    def curvature(a: Array, E: Array) -> Array:
        return 0.25 * E


class Matern32(Radial):
    """Matérn, ν = 3/2: g = (1 + a) e^{−a}, a = √(3q). Derivatives of the process exist, but not their derivatives."""

    @staticmethod
    def decay(q: Array) -> tuple[Array, Array]:
        return _root_and_decay(q, 3.0)

    @staticmethod
    def value(a: Array, E: Array) -> Array:
        g = 1.0 + a
        g *= E
        return g

    @staticmethod
    def slope(a: Array, E: Array) -> Array:
        return -1.5 * E

    @staticmethod
    def curvature(a: Array, E: Array) -> Array:
        """Grows as 1/a towards a = 0, where it only ever meets a factor that falls as a²: zero stands for it there."""
        return np.where(a > 0.0, 2.25 * E / np.where(a > 0.0, a, 1.0), 0.0)


class Matern52(Radial):
    """Matérn, ν = 5/2: g = (1 + a + a²/3) e^{−a}, a = √(5q)."""

    @staticmethod
    def decay(q: Array) -> tuple[Array, Array]:
        return _root_and_decay(q, 5.0)

    @staticmethod
    def value(a: Array, E: Array) -> Array:
        g = a / 3.0
        g += 1.0
        g *= a
        g += 1.0
        g *= E
        return g

    @staticmethod
    def slope(a: Array, E: Array) -> Array:
        g = 1.0 + a
        g *= E
        g *= -5.0 / 6.0
        return g

    @staticmethod
    def curvature(a: Array, E: Array) -> Array:
        return (25.0 / 12.0) * E


def _root_and_decay(q: Array, c: float) -> tuple[Array, Array]:
    """√(cq) and exp(−√(cq))."""
    a = c * q
    np.sqrt(a, out=a)
    E = -a
    return a, np.exp(E, out=E)


class RadialCovariance(Covariance):
    """With A = X/ℓ and B = Z/ℓ, q_ij = |A_i − B_j|², everything is a few matrix products.

    ∂q_ij/∂log ℓ_k = −2 (A_ik − B_jk)²  and  ∂q_ij/∂x_ik = 2 (A_ik − B_jk)/ℓ_k.
    """

    def __init__(self, kernel: Radial, theta: Array, X: Array, Z: Array | None) -> None:
        self._kernel, self._columns, self._D = kernel, list(kernel.columns), X.shape[-1]
        self._inverse = np.exp(-theta)[..., None, :]
        self._A, self._inactive_x = self._scaled(X)
        self._B, self._inactive_z = (self._A, self._inactive_x) if Z is None else self._scaled(Z)
        self._lifted = self._scaled_heights()
        self._q = self._squared_distance(symmetric=Z is None)
        self._a, self._E = kernel.decay(self._q)
        self.K = kernel.value(self._a, self._E)

    def _scaled(self, X: Array) -> tuple[Array, BoolArray]:
        """Coordinates from the centre of the cube, over ℓ, and which are inactive: those stand at the centre."""
        centred = X[..., self._columns] - 0.5
        inactive = np.isnan(centred)
        if inactive.any():
            centred[inactive] = 0.0
        return centred * self._inverse, inactive

    def _scaled_heights(self) -> tuple[Array, Array] | None:
        """h/ℓ for inactive coordinates of X and Z, or nothing when all are active."""
        if not (self._inactive_x.any() or self._inactive_z.any()):
            return None
        height = INACTIVE_HEIGHT * self._inverse
        return self._inactive_x * height, self._inactive_z * height

    def _squared_distance(self, symmetric: bool) -> Array:
        q = squared_distance(self._A, self._B)
        if self._lifted is not None:
            q += squared_distance(*self._lifted)
        np.maximum(q, 0.0, out=q)
        if symmetric:
            diagonal = np.arange(q.shape[-1])
            q[..., diagonal, diagonal] = 0.0
        return q

    def theta_gradient(self, W: Array) -> Array:
        V = self._kernel.slope(self._a, self._E)
        V *= W
        if not self._kernel.ard:
            return np.asarray(-2.0 * np.sum(V * self._q, axis=(-2, -1))[..., None])
        total = _weighted_squares(V, self._A, self._B)
        if self._lifted is not None:
            total = total + _weighted_squares(V, *self._lifted)
        return -2.0 * total

    def input_gradient(self, W: Array) -> Array:
        V = self._kernel.slope(self._a, self._E)
        V *= W
        pulled = 2.0 * self._inverse * (np.sum(V, axis=-1)[..., None] * self._A - V @ self._B)
        gradient = np.zeros((*pulled.shape[:-1], self._D))
        gradient[..., self._columns] = np.where(self._inactive_x, 0.0, pulled)
        return gradient

    def jet(self) -> Jet:
        """∂k/∂x = 2 g' u and ∂²k/∂x_i∂z_j = −4 g'' u_i u_j − 2 g' δ_ij/ℓ_i², where u_k = (x_k − z_k)/ℓ_k²."""
        slope, curvature = self._kernel.slope(self._a, self._E), self._kernel.curvature(self._a, self._E)
        u = (self._A[..., :, None, :] - self._B[..., None, :, :]) * self._inverse[..., None, :]
        ux, uz = u * ~self._inactive_x[..., :, None, :], u * ~self._inactive_z[..., None, :, :]
        jet = zero_jet(self.K.shape, self._D)
        jet.dx[..., self._columns] = 2.0 * slope[..., None] * ux
        jet.dz[..., self._columns] = -2.0 * slope[..., None] * uz
        bent = -4.0 * curvature[..., None, None] * ux[..., :, None] * uz[..., None, :]
        straight = -2.0 * slope[..., None, None] * self._inverse_squares_where_active()
        rows, columns = np.ix_(self._columns, self._columns)
        jet.dxdz[..., rows, columns] = bent + straight
        return jet

    def _inverse_squares_where_active(self) -> Array:
        """δ_ij/ℓ_i² as (…, n, m, d, d), zero where x_i or z_i is inactive."""
        active = ~(self._inactive_x[..., :, None, :] | self._inactive_z[..., None, :, :])
        return np.asarray((active * self._inverse[..., None, :] ** 2)[..., None] * np.eye(len(self._columns)))


def squared_distance(A: Array, B: Array) -> Array:
    """|A_i − B_j|² by one matrix product; rounding may leave it a little below zero."""
    q = A @ np.swapaxes(B, -1, -2)
    q *= -2.0
    q += np.einsum("...d,...d->...", A, A)[..., :, None]
    q += np.einsum("...d,...d->...", B, B)[..., None, :]
    return np.asarray(q)


def _weighted_squares(V: Array, A: Array, B: Array) -> Array:
    """Σ_ij V_ij (A_ik − B_jk)² for every k."""
    rows = np.sum(V, axis=-1)[..., None, :] @ (A * A)
    columns = np.sum(V, axis=-2)[..., None, :] @ (B * B)
    crossed = np.sum(A * (V @ B), axis=-2)
    return np.asarray(rows[..., 0, :] + columns[..., 0, :] - 2.0 * crossed)


def default_lengthscale(d: int) -> Parameter:
    """A weak prior whose median grows with the dimension, 0.5·d^¼, as distances in the cube do."""
    lower, upper = LENGTHSCALE_BOUNDS
    return Parameter("lengthscale", median=0.5 * sqrt(sqrt(d)), spread=LENGTHSCALE_SPREAD, lower=lower, upper=upper)


def require_columns(columns: Sequence[int]) -> None:
    if not columns or len(set(columns)) != len(columns) or min(columns) < 0:
        raise InvalidArgument(
            f"A kernel acts on distinct columns, counted from 0, got {tuple(columns)}. Give it at least one column."
        )


# -------------------------------------------------------------------------------------------------- categories


@dataclass(frozen=True)
class CategoryOverlap(Correlation):
    """k = exp(−Σ_j [x_j ≠ x'_j]/ℓ_j).  θ = log ℓ, one for all columns by default; codes are compared, never subtracted.

    With every category at its own corner of a simplex, √[x_j ≠ x'_j] is a Euclidean distance, so k is a squared
    exponential there and positive semi-definite. Inactive (NaN) is one more category.
    """

    columns: tuple[int, ...]
    ard: bool = False
    lengthscale: Parameter = OVERLAP

    def __post_init__(self) -> None:
        require_columns(self.columns)

    @cached_property  # computed once for a frozen value: as good as the property
    def parameters(self) -> tuple[Parameter, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        names = [f"overlap[{j}]" for j in self.columns] if self.ard else ["overlap"]
        return tuple(self.lengthscale.named(name) for name in names)

    @property
    def rough_columns(self) -> frozenset[int]:
        return frozenset(self.columns)

    def evaluate(self, theta: Array, X: Array, Z: Array | None = None) -> Covariance:
        return OverlapCovariance(self, theta, X, X if Z is None else Z)


def _codes(X: Array) -> Array:
    """Inactive values as a code of their own."""
    return np.where(np.isnan(X), -1.0, X)


def _mismatches(codes_x: Array, codes_z: Array) -> Array:
    """1 where codes differ, of every pair and column (…, n, m, d)."""
    return np.asarray(codes_x[..., :, None, :] != codes_z[..., None, :, :], dtype=float)


def _number_of_mismatches(codes_x: Array, codes_z: Array) -> Array:
    """In how many columns each pair differs (…, n, m, 1), column by column: all at once would be d times the memory."""
    batch = np.broadcast_shapes(codes_x.shape[:-2], codes_z.shape[:-2])
    total = np.zeros((*batch, codes_x.shape[-2], codes_z.shape[-2]), dtype=np.uint16)
    columns = (np.ascontiguousarray(np.moveaxis(codes, -1, 0)) for codes in (codes_x, codes_z))
    for x, z in zip(*columns, strict=True):
        total += x[..., :, None] != z[..., None, :]
    return np.asarray(total[..., None], dtype=float)


class OverlapCovariance(Covariance):
    has_slope = False

    def __init__(self, kernel: CategoryOverlap, theta: Array, X: Array, Z: Array) -> None:
        self._X = X
        codes_x, codes_z = (_codes(M[..., list(kernel.columns)]) for M in (X, Z))
        self._mismatch = _mismatches(codes_x, codes_z) if kernel.ard else _number_of_mismatches(codes_x, codes_z)
        self._inverse = np.exp(-theta)
        self.K = np.exp(-np.sum(self._mismatch * self._inverse[..., None, None, :], axis=-1))

    def theta_gradient(self, W: Array) -> Array:
        return np.asarray(self._inverse * np.sum((W * self.K)[..., None] * self._mismatch, axis=(-3, -2)))

    def input_gradient(self, W: Array) -> Array:
        return np.zeros_like(self._X)

    def jet(self) -> Jet:
        return zero_jet(self.K.shape, self._X.shape[-1])
