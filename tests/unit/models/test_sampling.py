import numpy as np
import pytest

from farthing.models.fitting import fit, hyperparameter_posterior, sample_hyperparameters
from farthing.models.kernels import SE


def posterior_of(n):
    rng = np.random.default_rng(0)
    X = rng.random((n, 1))
    return hyperparameter_posterior(SE((0,)), X, np.sin(6 * X[:, 0]), noise=0.01)


def test_samples_follow_the_posterior_density():
    posterior = posterior_of(8)
    draws = sample_hyperparameters(posterior, fit(posterior), 2000, rng=np.random.default_rng(1), burn_in=200)
    grid = np.linspace(posterior.priors.lower[0], posterior.priors.upper[0], 4000)
    weight = np.exp(posterior.value_and_gradient(grid[:, None])[0])
    weight /= weight.sum()
    mean = weight @ grid
    deviation = np.sqrt(weight @ (grid - mean) ** 2)
    assert draws.shape == (2000, 1)
    assert draws.mean() == pytest.approx(mean, abs=0.15 * deviation)  # about 200 independent draws: two errors
    assert draws.std() == pytest.approx(deviation, rel=0.2)


def test_samples_stay_within_bounds_and_repeat_for_a_seed():
    posterior = posterior_of(3)
    first, second = (
        sample_hyperparameters(posterior, fit(posterior), 10, rng=np.random.default_rng(7)) for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)
    assert np.all((first >= posterior.priors.lower) & (first <= posterior.priors.upper))
