"""The exact Gaussian process: f ~ GP(m, k), observed as y = f(X) + N(0, σ²).

A `GP` is a value. Conditioning returns a new one whose Cholesky factor extends the old one; no factor is ever
recomputed for rows that it already covers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from farthing.errors import InvalidArgument
from farthing.models.kernels import Covariance, Kernel
from farthing.models.linalg import (
    Array,
    IntArray,
    cholesky,
    extend_cholesky,
    inverse_from_factor,
    log_determinant,
    solve_factored,
    solve_lower,
    solve_upper,
)

VALUE = -1
"""In `along`: the row observes f itself rather than a slope ∂f/∂x_j."""

LEAST_VARIANCE = 1e-12
"""Relative to the prior variance: the rounding error of a variance that should be zero."""


@dataclass(frozen=True, eq=False)
class GP:
    """A Gaussian process given its observations. Build it with `condition`, or fit it with `fitting.fit`.

    Row i observes f(X_i) where along_i = VALUE, or the slope ∂f/∂x_j at X_i where along_i = j.
    """

    kernel: Kernel
    theta: Array
    m: float
    noise: float
    """σ² of observations to come."""
    X: Array
    y: Array
    along: IntArray
    L: Array
    """K + diag(σ²) = L Lᵀ."""
    alpha: Array
    """(K + diag(σ²))⁻¹ (y − m)."""

    @property
    def n(self) -> int:
        return int(self.X.shape[0])

    @property
    def log_marginal_likelihood(self) -> float:
        """log p(y | X, θ) = −½ (y − m)ᵀ α − ½ log|K + σ²I| − ½ n log 2π."""
        residual = self.y - prior_mean(self.m, self.along)
        return -0.5 * (float(residual @ self.alpha) + log_determinant(self.L) + self.n * float(np.log(2.0 * np.pi)))

    # ------------------------------------------------------------------------------------------- prediction

    def mean(self, X: Array, along: IntArray | None = None) -> Array:
        """E f(X), or of slopes of f; shape (N,)."""
        along = as_values(X) if along is None else along
        return prior_mean(self.m, along) + self._covariance_with_rows(X, along) @ self.alpha

    def mean_with_gradient(self, X: Array) -> tuple[Array, Array]:
        """E f at each row and its gradient ∇k(x, X) α; shapes (N,) and (N, D)."""
        covariance = self.kernel.evaluate(self.theta, X, self.X)
        C = pick(covariance, as_values(X), self.along)
        return self.m + C @ self.alpha, self._mean_gradient(covariance, C)

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of the noise-free f at each row; both of shape (N,)."""
        C = self._covariance_with_rows(X, as_values(X))
        V = solve_lower(self.L, C.T)
        prior, _ = self.kernel.variance(self.theta, X)
        return self.m + C @ self.alpha, _positive(prior - np.einsum("ij,ij->j", V, V), prior)

    def predict_with_gradient(self, X: Array) -> tuple[Array, Array, Array, Array]:
        """Mean, variance, and their gradients in X; shapes (N,), (N,), (N, D), (N, D).

        ∇μ = ∇k(x, X) α   and   ∇σ² = ∇k(x, x) − 2 ∇k(x, X) K⁻¹ k(X, x)
        """
        covariance = self.kernel.evaluate(self.theta, X, self.X)
        C = pick(covariance, as_values(X), self.along)
        V = solve_lower(self.L, C.T)
        prior, prior_gradient = self.kernel.variance(self.theta, X)
        variance = _positive(prior - np.einsum("ij,ij->j", V, V), prior)
        mean_gradient = self._mean_gradient(covariance, C)
        reduction = pull_inputs(covariance, solve_upper(self.L, V).T, self.along)
        return self.m + C @ self.alpha, variance, mean_gradient, prior_gradient - 2.0 * reduction

    def joint(self, X: Array, along: IntArray | None = None) -> tuple[Array, Array]:
        """Mean (N,) and covariance (N, N) of f over the rows together, or of slopes of f."""
        return self.mean(X, along), self.covariance(X, along=along)

    def covariance(self, X: Array, Z: Array | None = None, *, along: IntArray | None = None) -> Array:
        """Posterior covariance between f(X) and f(Z), shape (N, M); of X with itself when Z is not given."""
        along = as_values(X) if along is None else along
        V = solve_lower(self.L, self._covariance_with_rows(X, along).T)
        if Z is None:
            return row_covariance(self.kernel, self.theta, X, along) - V.T @ V
        U = solve_lower(self.L, self._covariance_with_rows(Z, as_values(Z)).T)
        return row_covariance(self.kernel, self.theta, X, along, Z, as_values(Z)) - V.T @ U

    def sample(self, X: Array, count: int, *, rng: np.random.Generator) -> Array:
        """`count` joint draws of f(X); shape (count, N)."""
        mean, covariance = self.joint(X)
        L = cholesky(covariance, against=self.kernel.variance(self.theta, X)[0])
        return np.asarray(mean + rng.standard_normal((count, X.shape[0])) @ L.T)

    # ------------------------------------------------------------------------------------------- conditioning

    def condition_on(
        self, X: Array, y: Array, *, noise: float | Array | None = None, along: IntArray | None = None
    ) -> "GP":
        """The process after more observations; `noise` is σ² of the new rows, the fitted one by default."""
        along = as_values(X) if along is None else along
        require_smooth(self.kernel, along)
        B = self._covariance_with_rows(X, along)
        variances = np.broadcast_to(self.noise if noise is None else noise, along.shape)
        C = row_covariance(self.kernel, self.theta, X, along) + np.diag(variances)
        extended = replace(
            self,
            X=np.concatenate([self.X, X]),
            along=np.concatenate([self.along, along]),
            L=extend_cholesky(self.L, B, C),
        )
        return extended._observing(np.concatenate([self.y, y]))

    def with_mean(self, m: float) -> "GP":
        """The process with another constant mean."""
        return replace(self, m=m)._observing(self.y)

    def _observing(self, y: Array) -> "GP":
        return replace(self, y=y, alpha=solve_factored(self.L, y - prior_mean(self.m, self.along)))

    def kriging_believer(self, X: Array) -> "GP":
        """The process as if each row had returned its mean: the mean stays, the variance shrinks around them."""
        return self.condition_on(X, self.mean(X))

    def fantasies(self, X: Array, count: int, *, rng: np.random.Generator) -> tuple["GP", ...]:
        """`count` processes, each conditioned on one joint draw of noisy observations at the pending rows X."""
        kriging_believer = self.kriging_believer(X)
        noise = np.sqrt(self.noise) * rng.standard_normal((count, X.shape[0]))
        draws = self.sample(X, count, rng=rng) + noise
        return tuple(kriging_believer._observing(np.concatenate([self.y, drawn])) for drawn in draws)

    # ------------------------------------------------------------------------------------------------ pieces

    def _mean_gradient(self, covariance: Covariance, C: Array) -> Array:
        return pull_inputs(covariance, np.broadcast_to(self.alpha, C.shape), self.along)

    def _covariance_with_rows(self, X: Array, along: IntArray) -> Array:
        return row_covariance(self.kernel, self.theta, X, along, self.X, self.along)


def condition(
    kernel: Kernel,
    theta: Array,
    X: Array,
    y: Array,
    *,
    noise: float | Array,
    m: float = 0.0,
    along: IntArray | None = None,
) -> GP:
    """The process with given hyperparameters after observing y at X; no rows at all leave the prior.

    `noise` is σ²: one number, or one per row (their mean is then assumed for observations to come).
    """
    new_noise = float(np.mean(noise)) if np.size(noise) else 0.0
    D = X.shape[1]
    nothing = np.zeros(0)
    prior = GP(kernel, theta, m, new_noise, np.zeros((0, D)), nothing, as_values(nothing), np.zeros((0, 0)), nothing)
    return prior.condition_on(X, y, noise=noise, along=along) if X.shape[0] else prior


def as_values(X: Array) -> IntArray:
    """`along` for rows that all observe f itself."""
    return np.full(X.shape[0], VALUE, dtype=np.int64)


def prior_mean(m: float, along: IntArray) -> Array:
    """m for values; the slope of a constant is zero."""
    return np.where(along == VALUE, m, 0.0)


def require_smooth(kernel: Kernel, along: IntArray) -> None:
    rough = kernel.rough_columns.intersection(along.tolist())
    if rough:
        raise InvalidArgument(
            f"Slopes can be observed along smooth columns only, got column {min(rough)}. "
            "Leave out derivatives along categories and time."
        )


def row_covariance(
    kernel: Kernel,
    theta: Array,
    X: Array,
    along_x: IntArray,
    Z: Array | None = None,
    along_z: IntArray | None = None,
) -> Array:
    """Prior covariance between what the rows of X and of Z observe; of X with itself when Z is not given.

    A point whose slopes are observed has a row for each of them. The kernel is evaluated once for all of them.
    """
    along_z = along_x if along_z is None else along_z
    if _are_values(along_x) and _are_values(along_z):
        return pick(kernel.evaluate(theta, X, Z), along_x, along_z)
    points_x, place_x = _points(X)
    points_z, place_z = (None, place_x) if Z is None else _points(Z)
    derivatives = _derivatives(kernel.evaluate(theta, points_x, points_z))
    return np.asarray(derivatives[..., place_x[:, None], place_z, along_x[:, None] + 1, along_z + 1])


def pick(covariance: Covariance, along_x: IntArray, along_z: IntArray) -> Array:
    """Entries of k, ∂k/∂x, ∂k/∂z or ∂²k/∂x∂z (…, n, m), as each pair of rows asks; not to be changed."""
    if _are_values(along_x) and _are_values(along_z):
        return np.broadcast_to(covariance.K, (*covariance.K.shape[:-2], along_x.size, along_z.size))
    rows, columns = np.arange(along_x.size)[:, None], np.arange(along_z.size)
    return np.asarray(_derivatives(covariance)[..., rows, columns, along_x[:, None] + 1, along_z + 1])


def _are_values(along: IntArray) -> bool:
    return bool((along == VALUE).all())


def _points(X: Array) -> tuple[Array, IntArray]:
    """The distinct rows, and where among them each row is."""
    points, place = np.unique(X, axis=0, return_inverse=True)
    return points, place.reshape(-1)


def _derivatives(covariance: Covariance) -> Array:
    """[[k, ∂k/∂z], [∂k/∂x, ∂²k/∂x∂z]] of every pair of points, shape (…, n, m, 1 + D, 1 + D)."""
    dx, dz, dxdz = covariance.jet()
    D = dx.shape[-1]
    derivatives = np.empty((*dx.shape[:-1], 1 + D, 1 + D))
    derivatives[..., 0, 0], derivatives[..., 0, 1:] = covariance.K, dz
    derivatives[..., 1:, 0], derivatives[..., 1:, 1:] = dx, dxdz
    return derivatives


def pull_inputs(covariance: Covariance, W: Array, along_z: IntArray) -> Array:
    """∂/∂X_i Σ_j W_ij cov(f(X_i), row j)."""
    j = np.flatnonzero(along_z != VALUE)
    if not j.size:
        return covariance.input_gradient(W)
    dx, _, dxdz = covariance.jet()
    slopes = dx.copy()
    slopes[..., j, :] = np.moveaxis(dxdz[..., j, :, along_z[j]], 0, -2)
    return np.asarray(np.einsum("...nm,...nmd->...nd", W, slopes))


def _positive(variance: Array, prior: Array) -> Array:
    return np.maximum(variance, LEAST_VARIANCE * prior)


# ------------------------------------------------------------
# Is the model to be trusted? Leave-one-out residuals, calibration, and which columns matter.


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """Predictions of each observation from all others; hyperparameters stay as they are."""

    observed: Array
    mean: Array
    variance: Array
    """Of the observation, noise included."""

    @property
    def residuals(self) -> Array:
        """(y − μ₋ᵢ)/σ₋ᵢ: standard normal if the model is right."""
        return (self.observed - self.mean) / np.sqrt(self.variance)

    @property
    def explained(self) -> float:
        """1 − Σ(y − μ₋ᵢ)²/Σ(y − ȳ)²: one is perfect, zero no better than the average; NaN for constant y."""
        spread = float(np.sum((self.observed - np.mean(self.observed)) ** 2)) if self.observed.size else 0.0
        return 1.0 - float(np.sum((self.observed - self.mean) ** 2)) / spread if spread > 0.0 else float("nan")


def leave_one_out(gp: GP) -> LeaveOneOut:
    """In closed form (Rasmussen and Williams, 5.12):  μ₋ᵢ = yᵢ − αᵢ/[K⁻¹]ᵢᵢ,  σ²₋ᵢ = 1/[K⁻¹]ᵢᵢ."""
    precision = np.diagonal(inverse_from_factor(gp.L))
    return LeaveOneOut(gp.y, gp.y - gp.alpha / precision, 1.0 / precision)


def leave_groups_out(gp: GP, groups: Sequence[IntArray]) -> LeaveOneOut:
    """The first row of each group, predicted without any of the group: of a learning curve, its end without the rest.

    With P = K⁻¹ and the rows B of a group, μ₋B = y_B − (P_BB)⁻¹ α_B and Σ₋B = (P_BB)⁻¹, which is (5.12) for one row.
    """
    P = inverse_from_factor(gp.L)
    first = np.array([group[0] for group in groups], dtype=np.int64)
    left = [np.linalg.inv(P[np.ix_(group, group)])[0] for group in groups]
    misses = np.array([float(row @ gp.alpha[group]) for row, group in zip(left, groups, strict=True)])
    return LeaveOneOut(gp.y[first], gp.y[first] - misses, np.array([row[0] for row in left]))


def calibration(residuals: Array, levels: Array) -> Array:
    """The share of residuals inside the central interval of each level; equal to the levels if calibrated."""
    central = np.abs(2.0 * ndtr(residuals) - 1.0)
    return np.array([float(np.mean(central <= level)) if central.size else float("nan") for level in levels])


def variance_shares(base: Array, moved: Array) -> Array:
    """Each input's share (…, D) of the variance of a function: its total effect, all of them divided by their sum.

    `base` (…, N) has values at random inputs, `moved` (…, D, N) the values where input j alone is drawn again. By
    Jansen's estimator, T_j = E(f − f_j)²/(2 Var f); interactions count for all of their inputs. The shares are zero
    for a constant.
    """
    effects = np.mean((moved - base[..., None, :]) ** 2, axis=-1)
    total = np.sum(effects, axis=-1, keepdims=True)
    return np.asarray(np.divide(effects, total, out=np.zeros_like(effects), where=total > 0.0))
