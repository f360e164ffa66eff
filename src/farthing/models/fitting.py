"""Fitting hyperparameters: the maximum of their posterior (MAP)."""

from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, log, pi

import numpy as np
from scipy.linalg import lapack

from farthing.models.batched_bfgs import minimize_batch
from farthing.models.gp import GP, VALUE, as_values, condition, require_smooth, row_covariance
from farthing.models.kernels import Kernel, Parameter, Priors
from farthing.models.linalg import Array, IntArray, cholesky, keep_freed_memory, solve_factored

# ------------------------------------------------------------
# The log posterior of hyperparameters, with its gradient, for a batch of them at once.


NOISE = Parameter("noise", median=1e-3, spread=2.0, lower=1e-6, upper=1.0)
"""For standardised values; a guess. Strategies bring priors of their own."""
MEAN_SPREAD = 1.0
"""Deviation of the prior of the constant mean, in standardised units: as wide as the values themselves."""

LOG_SQRT_2PI = 0.5 * log(2.0 * pi)
THETA_STEP = 1e-5
"""Of differences that stand for derivatives in θ."""

CHUNK = 2**14
"""Entries of the covariances evaluated together: as many as the cache of a core holds."""


@dataclass(frozen=True, eq=False)
class HyperparameterPosterior:
    """log p(y | X, θ) + log p(θ) of observations; θ = (kernel's θ, log σ²), or the kernel's alone when noise is given.

    The constant mean has the prior N(0, s²) and is kept at its best for each θ, so its gradient is zero and it needs no
    place in θ:  m = 1ᵀK⁻¹y/(1ᵀK⁻¹1 + s⁻²).
    """

    kernel: Kernel
    X: Array
    y: Array
    along: IntArray
    given_noise: Array | None = None
    noise_prior: Parameter = NOISE
    mean_spread: float = MEAN_SPREAD

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        return self.kernel.parameters if self.given_noise is not None else (*self.kernel.parameters, self.noise_prior)

    @cached_property
    def priors(self) -> Priors:
        return Priors.of(self.parameters)

    @cached_property
    def _level(self) -> Array:
        """The contribution of a constant mean of one to each observation."""
        return np.asarray(self.along == VALUE, dtype=float)

    def value_and_gradient(self, theta: Array) -> tuple[Array, Array]:
        """Log posterior (B,) and gradient (B, p) at the rows of θ (B, p).

        ∂/∂θ log p(y) = Σ_ij W_ij ∂K_ij/∂θ   with   W = ½ (α αᵀ − K⁻¹)
        """
        rows = max(1, CHUNK // max(1, self.y.size**2))
        chunks = [theta[first : first + rows] for first in range(0, theta.shape[0], rows)]
        values, gradients = zip(*map(self._value_and_gradient_of_chunk, chunks), strict=True)
        return np.concatenate(values), np.concatenate(gradients)

    def values_of(self, theta: Array, Y: Array) -> Array:
        """The log posterior (k,) at one θ (p,) of several observations Y (n, k) at the same rows, all by one factor."""
        kernel_theta, noise = self._split(theta[None, :])
        K = np.array(row_covariance(self.kernel, kernel_theta, self.X, self.along)[0])
        np.einsum("ii->i", K)[...] += noise[0] if self.given_noise is None else noise
        L, prior = _factor(K), float(self.priors.log_density(theta[None, :])[0][0])
        solved, _ = lapack.dpotrs(L, np.column_stack([Y, self._level]), lower=1)
        solved, u = solved[:, :-1], solved[:, -1]
        m = (u @ Y) / (float(u @ self._level) + self.mean_spread**-2)
        misfit = (
            np.sum((solved - np.outer(u, m)) * (Y - np.outer(self._level, m)), axis=0) + (m / self.mean_spread) ** 2
        )
        return np.asarray(prior - 0.5 * misfit - float(np.sum(np.log(np.diagonal(L)))) - Y.shape[0] * LOG_SQRT_2PI)

    def process(self, theta: Array) -> GP:
        """The GP with these hyperparameters (p,)."""
        kernel_theta, noise = self._split(theta)
        scalar = float(noise) if self.given_noise is None else noise
        centred = condition(self.kernel, kernel_theta, self.X, self.y, noise=scalar, along=self.along)
        solved = solve_factored(centred.L, self._right_sides)
        return centred.with_mean(_best_mean(solved, self._right_sides, self.mean_spread))

    def thinned(self, most: int) -> "HyperparameterPosterior":
        """The posterior of at most `most` observations, spread evenly over the order of their values."""
        n = self.y.size
        if n <= most:
            return self
        kept = np.sort(np.argsort(self.y, kind="stable")[np.linspace(0, n - 1, most).astype(int)])
        noise = None if self.given_noise is None else self.given_noise[kept]
        return replace(self, X=self.X[kept], y=self.y[kept], along=self.along[kept], given_noise=noise)

    # ------------------------------------------------------------------------------------------------ pieces

    def _value_and_gradient_of_chunk(self, theta: Array) -> tuple[Array, Array]:
        kernel_theta, noise = self._split(theta)
        if self._has_slopes:
            return self._value_and_gradient_with_slopes(theta, kernel_theta, noise)
        covariance = self.kernel.evaluate(kernel_theta, self.X)
        K = np.array(np.broadcast_to(covariance.K, (theta.shape[0], self.y.size, self.y.size)))
        value, W = self._value_and_weights(K, noise)
        return self._with_priors(theta, value, covariance.theta_gradient(W), W, noise)

    @cached_property
    def _has_slopes(self) -> bool:
        return bool(np.any(self.along != VALUE))

    @cached_property
    def _right_sides(self) -> Array:
        return np.stack([self.y, self._level], axis=1)

    def _split(self, theta: Array) -> tuple[Array, Array]:
        """The kernel's θ, and σ² of shape (…, 1), (n,) or ()."""
        if self.given_noise is not None:
            return theta, self.given_noise
        return theta[..., :-1], np.exp(theta[..., -1:]) if theta.ndim > 1 else np.exp(theta[-1])

    def _value_and_weights(self, K: Array, noise: Array) -> tuple[Array, Array]:
        """log p(y) for each K, and W with Σ W ∘ dK = d log p for symmetric dK. K is overwritten."""
        np.einsum("bii->bi", K)[...] += noise
        return np.array([self._weigh(K[b]) for b in range(K.shape[0])]), K

    def _weigh(self, K: Array) -> float:
        """log p(y) = −½ (y − m)ᵀ α − ½ log|K| − ½ n log 2π, with the prior of m; K becomes W.

        The half of K⁻¹ that LAPACK leaves out is not filled in: W carries the other half twice instead.
        """
        L = _factor(K)
        value, alpha = self._log_evidence(L, self._right_sides)
        half_inverse, _ = lapack.dpotri(L, lower=1, overwrite_c=1)
        np.multiply.outer(0.5 * alpha, alpha, out=K)
        K -= half_inverse.T
        np.einsum("ii->i", K)[...] += 0.5 * np.diagonal(half_inverse)
        return value

    def _log_evidence(self, L: Array, right_sides: Array) -> tuple[float, Array]:
        """log p(y) and α for `right_sides` (y, 1), at the best constant mean."""
        solved, _ = lapack.dpotrs(L, right_sides, lower=1)
        m = _best_mean(solved, right_sides, self.mean_spread)
        alpha = solved[:, 0] - m * solved[:, 1]
        misfit = float(alpha @ (right_sides[:, 0] - m * right_sides[:, 1])) + (m / self.mean_spread) ** 2
        half_log_determinant = float(np.sum(np.log(np.diagonal(L))))
        return -0.5 * misfit - half_log_determinant - right_sides.shape[0] * LOG_SQRT_2PI, alpha

    def _with_priors(self, theta: Array, value: Array, gradient: Array, W: Array, noise: Array) -> tuple[Array, Array]:
        if self.given_noise is None:
            trace = np.einsum("bii->b", W)[:, None]
            gradient = np.concatenate([gradient, noise * trace], axis=1)
        prior, prior_gradient = self.priors.log_density(theta)
        return value + prior, gradient + prior_gradient

    def _value_and_gradient_with_slopes(self, theta: Array, kernel_theta: Array, noise: Array) -> tuple[Array, Array]:
        """∂K/∂θ by central differences: third derivatives of the kernels would be much code for a rare case."""
        value, W = self._value_and_weights(row_covariance(self.kernel, kernel_theta, self.X, self.along), noise)
        gradient = np.empty_like(kernel_theta)
        for k, step in enumerate(THETA_STEP * np.eye(kernel_theta.shape[1])):
            stepped = np.stack([kernel_theta + step, kernel_theta - step])
            ahead, behind = row_covariance(self.kernel, stepped, self.X, self.along)
            gradient[:, k] = np.einsum("bij,bij->b", W, ahead - behind) / (2.0 * THETA_STEP)
        return self._with_priors(theta, value, gradient, W, noise)


def _factor(K: Array) -> Array:
    L, info = lapack.dpotrf(K.T, lower=1, clean=1)
    return np.asarray(L) if info == 0 else cholesky(K)


def _best_mean(solved: Array, right_sides: Array, spread: float) -> float:
    u, level = solved[:, 1], right_sides[:, 1]
    return float(u @ right_sides[:, 0]) / (float(u @ level) + spread**-2)


# ------------------------------------------------------------
# Values are standardised, so that the priors of the GP, which expect unit scale, fit any objective.


@dataclass(frozen=True)
class Standardise:
    """z = (y − offset)/scale."""

    offset: float = 0.0
    scale: float = 1.0

    @classmethod
    def of(cls, y: Array) -> "Standardise":
        """Zero mean and unit deviation of y; constant, single or absent values keep a scale of one.

        The deviation is taken of y/max|y|, so that values near the limits of a float do not overflow.
        """
        if y.size == 0:
            return cls()
        largest = float(np.max(np.abs(y))) or 1.0
        offset = float(np.mean(y / largest)) * largest
        deviation = float(np.std(y / largest))
        return cls(offset, deviation * largest if deviation > 1e-12 else 1.0)

    def apply(self, y: Array) -> Array:
        return y / self.scale - self.offset / self.scale

    def undo(self, z: Array) -> Array:
        return z * self.scale + self.offset

    def undo_variance(self, variance: Array) -> Array:
        return variance * self.scale**2


# ------------------------------------------------------------
# The maximum of the posterior.


FEW = 50
"""Up to this many rows the posterior often has several modes, and finding them all is cheap. A limit on time."""
RACE_AFTER = 4
"""Calls after which, with more rows, only the better of mode and warm start continues: a stale start loses.

Chosen for speed: the same noise is found.
"""
VALUE_TOLERANCE = 1e-7
MANY = 500
"""Hyperparameters are fitted to at most this many rows: more change them little and cost their cube. Limits time."""
SHIFTS = (0.0, 0.8, -0.8, 1.6, -1.6)
"""Starts of searches, in spreads of the prior from its mode: the smooth side first, which has the better modes.

The distances are a guess, not tuned.
"""


def hyperparameter_posterior(
    kernel: Kernel,
    X: Array,
    y: Array,
    *,
    noise: float | Array | None = None,
    noise_prior: Parameter = NOISE,
    mean_spread: float = MEAN_SPREAD,
    along: IntArray | None = None,
) -> HyperparameterPosterior:
    """The posterior of θ given observations; y of about unit scale. `noise` is σ² where known, else it is fitted."""
    along = as_values(X) if along is None else along
    require_smooth(kernel, along)
    given = None if noise is None else np.broadcast_to(np.asarray(noise, dtype=float), y.shape)
    return HyperparameterPosterior(kernel, X, y, along, given, noise_prior, mean_spread)


def fit(posterior: HyperparameterPosterior, *, warm_start: Array | None = None, starts: int | None = None) -> Array:
    """θ of highest posterior density: the best of several searches that advance together.

    Searches start from `warm_start`, an earlier θ or several of them, if there is one, and from `starts` other places
    (two for few rows, else one; at most five): the prior's mode and beside it. The same observations always give the
    same θ, bit for bit; without any it is the mode.
    """
    posterior = posterior.thinned(MANY)
    n, priors = posterior.y.size, posterior.priors
    if n == 0:
        return priors.mean
    keep_freed_memory()
    minima = minimize_batch(
        lambda theta: _negated(posterior.value_and_gradient(theta)),
        starting_points(priors, warm_start, starts or (2 if n <= FEW else 1)),
        lower=priors.lower,
        upper=priors.upper,
        race_after=RACE_AFTER if starts is None and n > FEW else None,
        value_tolerance=VALUE_TOLERANCE,
    )
    return np.asarray(minima.x[int(np.argmin(minima.value))])


def starting_points(priors: Priors, warm_start: Array | None, starts: int) -> Array:
    """The prior's mode, points `SHIFTS` spreads beside it, `starts` in all, and the warm start if there is one."""
    shifts = np.array(SHIFTS[:starts])[:, None]
    known = np.zeros((0, priors.mean.size)) if warm_start is None else np.atleast_2d(warm_start)
    rows = np.concatenate([priors.mean + shifts * priors.spread, known])
    return np.asarray(np.clip(rows, priors.lower, priors.upper))


def _negated(value_and_gradient: tuple[Array, Array]) -> tuple[Array, Array]:
    value, gradient = value_and_gradient
    return -value, -gradient


def fit_gp(
    kernel: Kernel,
    X: Array,
    y: Array,
    *,
    noise: float | Array | None = None,
    warm_start: Array | None = None,
    along: IntArray | None = None,
) -> GP:
    """The GP at its fitted hyperparameters, in one call, with the default priors."""
    posterior = hyperparameter_posterior(kernel, X, y, noise=noise, along=along)
    return posterior.process(fit(posterior, warm_start=warm_start))


# ------------------------------------------------------------
# Samples of the hyperparameters' posterior, so that an acquisition can be averaged over them (taKG, section 3).


START_SPREAD = 0.1
"""Deviation of the walkers' starts, in θ; burn-in makes it unimportant."""
STRETCH = 2.0
"""The usual scale of the stretch move (Goodman and Weare, 2010), and emcee's."""


def sample_hyperparameters(
    posterior: HyperparameterPosterior,
    start: Array,
    count: int,
    *,
    rng: np.random.Generator,
    burn_in: int = 50,
    thinning: int = 5,
) -> Array:
    """`count` draws of θ (count, p) by the affine-invariant ensemble sampler, its walkers starting around `start`.

    It is emcee's own algorithm, the stretch move by halves (Foreman-Mackey et al., 2013, algorithm 3). All walkers of
    half an ensemble are evaluated in one batch.
    """
    posterior = posterior.thinned(MANY)
    priors, walkers = posterior.priors, 2 * (start.size + 1)
    theta = np.clip(start + START_SPREAD * rng.standard_normal((walkers, start.size)), priors.lower, priors.upper)
    density = _log_density(posterior, theta)
    kept = []
    for step in range(1, burn_in + thinning * ceil(count / walkers) + 1):
        for half in (np.arange(0, walkers, 2), np.arange(1, walkers, 2)):
            _stretch(posterior, theta, density, half, rng)
        if step > burn_in and (step - burn_in) % thinning == 0:
            kept.append(theta.copy())
    return np.concatenate(kept)[-count:]


def _stretch(
    posterior: HyperparameterPosterior, theta: Array, density: Array, half: IntArray, rng: np.random.Generator
) -> None:
    """Moves one half of the walkers, in place, each along the line to a walker of the other half.

    θ' = θ_j + z (θ − θ_j) with p(z) ∝ 1/√z on [1/a, a], taken with probability min(1, z^{p−1} p(θ')/p(θ)).
    """
    others = np.setdiff1d(np.arange(len(theta)), half)
    z = ((STRETCH - 1.0) * rng.random(half.size) + 1.0) ** 2 / STRETCH
    partner = theta[rng.choice(others, half.size)]
    proposed = partner + z[:, None] * (theta[half] - partner)
    found = _log_density(posterior, proposed)
    is_taken = np.log(rng.random(half.size)) < (theta.shape[1] - 1) * np.log(z) + found - density[half]
    theta[half[is_taken]], density[half[is_taken]] = proposed[is_taken], found[is_taken]


def _log_density(posterior: HyperparameterPosterior, theta: Array) -> Array:
    """The log posterior for rows of θ, −∞ outside the bounds."""
    inside = np.all((theta >= posterior.priors.lower) & (theta <= posterior.priors.upper), axis=1)
    density = np.full(theta.shape[0], -np.inf)
    if inside.any():
        density[inside], _ = posterior.value_and_gradient(theta[inside])
    return density
