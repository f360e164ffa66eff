"""Fit and predict: our GP against BoTorch's `SingleTaskGP` with `fit_gpytorch_mll`, same model and same priors.

The two take turns in one process on one thread, and CPU time is counted. The model is BoTorch's default: squared
exponential with one lengthscale per column, log-normal priors, fitted noise and constant mean. The marginal
likelihoods compared are of standardised values, with the priors, at each one's fitted hyperparameters. The posterior
has several modes in some problems, so either may end higher: `seeds_higher` and `seeds_lower` count how often we do.
"""

import time
import warnings
from collections.abc import Callable
from math import exp, log, sqrt
from statistics import median
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from farthing.models.fitting import fit, hyperparameter_posterior
from farthing.models.kernels import SE
from farthing.models.likelihood import HyperparameterPosterior
from farthing.models.linalg import Array
from farthing.models.parameters import Parameter
from farthing.models.transforms import Standardise

DIMENSION = 6
SIZES = (25, 50, 100, 200, 400)
QUERIES = 1000
BARS = {25: 0.1, 50: 0.1, 100: 0.1, 400: 0.25}
LEVEL = 1e-3
"""Nats by which two fitted log posteriors may differ and still be level: both optimisers stop within that."""


def run(*, seeds: int, quick: bool) -> dict[str, Any]:
    """For each n: CPU seconds of both, their ratio with its spread, and by how much our log posterior is higher."""
    sizes = SIZES[:3] if quick else SIZES
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torch

        torch.set_num_threads(1)
        _compare(DIMENSION * 4, seed=-1)  # the first call of each pays for imports and caches
        rows = [_summary(n, [_compare(n, seed=seed) for seed in range(seeds)]) for n in sizes]
    return {"benchmark": "gp", "unit": "CPU seconds, one thread", "rows": rows}


def _compare(n: int, *, seed: int) -> dict[str, float]:
    X, y, queries = _problem(n, np.random.default_rng([seed + 1, n]))
    contenders: list[tuple[str, Callable[[Array, Array, Array], Array]]] = [("ours", _ours), ("botorch", _botorch)]
    results: dict[str, float] = {}
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
    y = _hartmann6(X) + 0.05 * rng.standard_normal(n)
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


def _summary(n: int, results: list[dict[str, float]]) -> dict[str, Any]:
    ratios = sorted(result["ours"] / result["botorch"] for result in results)
    gaps = [result["ours_log_posterior"] - result["botorch_log_posterior"] for result in results]
    bar = BARS.get(n)
    return {
        "n": n,
        "ours": median(result["ours"] for result in results),
        "botorch": median(result["botorch"] for result in results),
        "ratio": median(ratios),
        "ratio_least": ratios[0],
        "ratio_most": ratios[-1],
        "ours_log_posterior": median(result["ours_log_posterior"] for result in results),
        "botorch_log_posterior": median(result["botorch_log_posterior"] for result in results),
        "log_posterior_gain": median(gaps),
        "seeds_higher": sum(gap > LEVEL for gap in gaps),
        "seeds_lower": sum(gap < -LEVEL for gap in gaps),
        "bar": bar,
        "passed": (bar is None or median(ratios) <= bar) and median(gaps) >= -LEVEL,
    }


def _hartmann6(X: Array) -> Array:
    scale = np.array([1.0, 1.2, 3.0, 3.2])
    A = np.array(
        [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
    )
    P = 1e-4 * np.array(
        [
            [1312, 1696, 5569, 124, 8283, 5886],
            [2329, 4135, 8307, 3736, 1004, 9991],
            [2348, 1451, 3522, 2883, 3047, 6650],
            [4047, 8828, 8732, 5743, 1091, 381],
        ]
    )
    distance = np.einsum("kj,nkj->nk", A, (X[:, None, :] - P) ** 2)
    return np.asarray(-np.exp(-distance) @ scale)
