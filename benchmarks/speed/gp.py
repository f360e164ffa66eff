"""Fit and predict: our GP against BoTorch's `SingleTaskGP` with `fit_gpytorch_mll`, same model and same priors.

The two take turns in one process on one thread, and CPU time is counted. The model is BoTorch's default: squared
exponential with one lengthscale per column, log-normal priors, fitted noise and constant mean. The log posteriors
compared are of standardised values at each one's fitted hyperparameters. Some problems have several modes, so
either may end higher: the table counts the seeds in which ours does, and those in which BoTorch's does.
"""

import time
import warnings
from collections.abc import Callable
from math import exp, log, sqrt
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.bars import Bar, Result, at_most
from benchmarks.problems.synthetic import hartmann_6
from benchmarks.spread import Spread
from farthing.models.fitting import HyperparameterPosterior, Standardise, fit, hyperparameter_posterior
from farthing.models.kernels import SE, Parameter
from farthing.models.linalg import Array

DIMENSION = 6
SIZES, QUICK_SIZES = (25, 50, 100, 200, 400), (25, 50, 100)
QUERIES = 1000
LIMITS = {25: 0.1, 50: 0.1, 100: 0.1, 400: 0.25}
LEVEL = 1e-3
"""Nats by which two fitted log posteriors may differ and still be level: both optimisers stop within that."""

Outcome = dict[str, float]
"""Of one problem: CPU seconds and log posterior of each contender."""


def run(*, seeds: int, quick: bool) -> Result:
    """`seeds` is the number of problems of each size."""
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torch

        torch.set_num_threads(1)
        _compare(DIMENSION * 4, seed=-1)  # the first call of each pays for imports and caches
        sizes = QUICK_SIZES if quick else SIZES
        outcomes = {n: [_compare(n, seed=seed) for seed in range(seeds)] for n in sizes}
    return Result(
        figures={"fit and predict": [_row(n, found) for n, found in outcomes.items()]},
        bars=[bar for n, found in outcomes.items() for bar in _bars(n, found)],
        left_out=[],
    )


def _row(n: int, outcomes: list[Outcome]) -> dict[str, Any]:
    gains = _gains(outcomes)
    return {
        "n": n,
        "ours, CPU s": str(Spread.of(outcome["ours"] for outcome in outcomes)),
        "BoTorch, CPU s": str(Spread.of(outcome["botorch"] for outcome in outcomes)),
        "ratio": str(_ratio(outcomes)),
        "our log posterior": str(Spread.of(outcome["ours_log_posterior"] for outcome in outcomes)),
        "BoTorch's": str(Spread.of(outcome["botorch_log_posterior"] for outcome in outcomes)),
        "seeds higher": sum(gain > LEVEL for gain in gains),
        "seeds lower": sum(gain < -LEVEL for gain in gains),
    }


def _bars(n: int, outcomes: list[Outcome]) -> list[Bar]:
    gain = Spread.of(_gains(outcomes)).median
    likelihood = Bar(
        what=f"n = {n}: our log posterior less BoTorch's, median",
        bar=f"≥ -{LEVEL:g}",
        measured=gain,
        holds=gain >= -LEVEL,
    )
    if n not in LIMITS:
        return [likelihood]
    what = f"n = {n}: our CPU time over BoTorch's, median"
    return [at_most(what, limit=LIMITS[n], measured=_ratio(outcomes).median, unit="times"), likelihood]


def _ratio(outcomes: list[Outcome]) -> Spread:
    return Spread.of(outcome["ours"] / outcome["botorch"] for outcome in outcomes)


def _gains(outcomes: list[Outcome]) -> list[float]:
    return [outcome["ours_log_posterior"] - outcome["botorch_log_posterior"] for outcome in outcomes]


def _compare(n: int, *, seed: int) -> Outcome:
    X, y, queries = _problem(n, np.random.default_rng([seed + 1, n]))
    contenders: list[tuple[str, Callable[[Array, Array, Array], Array]]] = [("ours", _ours), ("botorch", _botorch)]
    results: Outcome = {}
    posterior = _posterior(X, y)
    for name, contender in contenders if seed % 2 else reversed(contenders):
        started = time.process_time()
        theta = contender(X, y, queries)
        results[name] = time.process_time() - started
        results[f"{name}_log_posterior"] = float(posterior.value_and_gradient(theta[None])[0][0])
    return results


def _problem(n: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Hartmann-6 with a little noise at uniform points, standardised; and points to predict."""
    X, queries = rng.random((n, DIMENSION)), rng.random((QUERIES, DIMENSION))
    y = np.array([hartmann_6(x) for x in X]) + 0.05 * rng.standard_normal(n)
    return X, Standardise.of(y).apply(y), queries


def _ours(X: Array, y: Array, queries: Array) -> Array:
    posterior = _posterior(X, y)
    theta = fit(posterior)
    posterior.process(theta).predict(queries)
    return theta


def _posterior(X: Array, y: Array) -> HyperparameterPosterior:
    """BoTorch's default priors, LogNormal(√2 + ½ log d, √3) and LogNormal(−4, 1), by their modes in log θ."""
    lengthscale = Parameter(
        "lengthscale", median=exp(sqrt(2.0) + 0.5 * log(DIMENSION) - 3.0), spread=sqrt(3.0), lower=2.5e-2, upper=1e3
    )
    noise = Parameter("noise", median=exp(-4.0 - 1.0), spread=1.0, lower=1e-4, upper=1e1)
    kernel = SE(tuple(range(DIMENSION)), lengthscale=lengthscale)
    return hyperparameter_posterior(kernel, X, y, noise_prior=noise, mean_spread=1e6)


def _botorch(X: Array, y: Array, queries: Array) -> Array:
    import torch
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from gpytorch.mlls import ExactMarginalLogLikelihood

    model = SingleTaskGP(torch.tensor(X), torch.tensor(y)[:, None], outcome_transform=None)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    with torch.no_grad():
        prediction = model.posterior(torch.tensor(queries))
        prediction.mean.numpy()
        prediction.variance.numpy()
        values = torch.cat([model.covar_module.lengthscale.ravel(), model.likelihood.noise.ravel()])
    return np.asarray(np.log(values.numpy()))
