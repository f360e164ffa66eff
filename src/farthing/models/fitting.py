"""Fitting hyperparameters: the maximum of their posterior (MAP)."""

from math import ceil

import numpy as np

from farthing.models.batched_bfgs import minimize_batch
from farthing.models.gp import GP, as_values, require_smooth
from farthing.models.kernels import Kernel
from farthing.models.likelihood import MEAN_SPREAD, NOISE, HyperparameterPosterior
from farthing.models.linalg import Array, IntArray, keep_freed_memory
from farthing.models.parameters import Parameter, Priors

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
