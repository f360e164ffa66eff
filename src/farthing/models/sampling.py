"""Samples of the hyperparameters' posterior, so that an acquisition can be averaged over them (taKG, section 4)."""

from typing import Any

import numpy as np

from farthing.errors import MissingExtra
from farthing.models.likelihood import HyperparameterPosterior
from farthing.models.linalg import Array

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
