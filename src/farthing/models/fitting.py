"""Fitting hyperparameters: the maximum of their posterior (MAP)."""

from typing import Any

import numpy as np

from farthing.errors import MissingExtra
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
# Samples of the hyperparameters' posterior, so that an acquisition can be averaged over them (taKG, section 4).


START_SPREAD = 0.1
"""Deviation of the walkers' starts, in θ; burn-in makes it unimportant."""


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

    All walkers of half an ensemble are evaluated in one batch.
    """
    walkers = 2 * (start.size + 1)
    sampler = _import_emcee().EnsembleSampler(walkers, start.size, _log_density(posterior), vectorize=True)
    initial = start + START_SPREAD * rng.standard_normal((walkers, start.size))
    inside = np.clip(initial, posterior.priors.lower, posterior.priors.upper)
    sampler.random_state = np.random.RandomState(rng.integers(2**32)).get_state()
    steps = burn_in + thinning * -(-count // walkers)
    sampler.run_mcmc(inside, steps, skip_initial_state_check=True)
    draws = sampler.get_chain(discard=burn_in, thin=thinning, flat=True)
    return np.asarray(draws[-count:])


def _log_density(posterior: HyperparameterPosterior) -> Any:
    """The log posterior for rows of θ, −∞ outside the bounds."""
    priors = posterior.priors

    def log_density(theta: Array) -> Array:
        inside = np.all((theta >= priors.lower) & (theta <= priors.upper), axis=1)
        density = np.full(theta.shape[0], -np.inf)
        if inside.any():
            density[inside], _ = posterior.value_and_gradient(theta[inside])
        return density

    return log_density


def _import_emcee() -> Any:
    try:
        import emcee
    except ImportError as error:
        raise MissingExtra(
            "Sampling hyperparameters needs emcee, which is not installed. Run: pip install 'farthing[mcmc]'."
        ) from error
    return emcee
