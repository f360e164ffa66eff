import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from benchmarks.baselines.max_value_entropy import (
    RIGHT,
    LogMaxValueEntropy,
    draw_least_values,
    log_entropy_and_slope,
    log_max_value_entropy,
)
from farthing.models.gp import condition
from farthing.models.kernels import Constant, Matern52


def process(noise=1e-3):
    X = np.random.default_rng(0).random((12, 3))
    theta = np.log([1.0, 0.4, 0.6, 0.9])
    return condition(Constant() * Matern52((0, 1, 2)), theta, X, np.sin(5 * X[:, 0]), noise=noise)


@pytest.mark.parametrize("gamma", [-2.0, 0.0, 1.5, 4.0])
def test_entropy_is_what_cutting_a_normal_distribution_off_takes_from_its_entropy(gamma):
    """Knowing that f ≥ f* leaves a normal distribution cut off γ deviations below its mean."""
    mass = norm.cdf(gamma)
    density = lambda u: norm.pdf(u) / mass  # noqa: E731
    left, _ = quad(lambda u: -density(u) * np.log(density(u)), -gamma, max(-gamma, 0.0) + 12)
    log_g, _ = log_entropy_and_slope(np.array([gamma]))
    assert np.exp(log_g[0]) == pytest.approx(norm.entropy() - left, abs=1e-6)


def test_log_entropy_has_its_slope_and_no_seam():
    gamma = np.array([-20.0, -3.0, 0.0, 2.0, 4.99, 5.01, 8.0, 40.0, 200.0])
    step = 1e-5
    above, below = (log_entropy_and_slope(gamma + change)[0] for change in (step, -step))
    np.testing.assert_allclose(log_entropy_and_slope(gamma)[1], (above - below) / (2 * step), rtol=1e-5)
    seam = log_entropy_and_slope(RIGHT + np.array([-1e-9, 1e-9]))[0]
    assert np.ptp(seam) < 1e-6  # R for −log Φ is exact to 1 − Φ(5) = 3e-7


@pytest.mark.parametrize("noise", [1e-6, 1e-2])
def test_gradient_equals_central_differences(noise):
    gp = process(noise)
    entropy = LogMaxValueEntropy(gp, np.array([-1.4, -1.1, -1.05]))
    X = np.random.default_rng(1).random((5, 3))
    value, gradient = entropy.value_and_gradient(X)
    np.testing.assert_allclose(value, entropy(X))
    for column in range(3):
        step = np.zeros(3)
        step[column] = 1e-6
        np.testing.assert_allclose(gradient[:, column], (entropy(X + step) - entropy(X - step)) / 2e-6, rtol=1e-4)


def test_least_values_have_the_median_of_the_least_of_independent_rows():
    gp = process()
    rows = np.random.default_rng(2).random((200, 3))
    mean, variance = gp.predict(rows)
    rng = np.random.default_rng(3)
    least = np.min(mean + np.sqrt(variance) * rng.standard_normal((4000, 200)), axis=1)
    drawn = np.concatenate([draw_least_values(gp, rows, np.inf, rng=rng) for _ in range(400)])
    # two medians of 4000 draws each: their errors are about 1.25 σ/√4000 = 0.02 σ
    assert np.median(drawn) == pytest.approx(np.median(least), abs=0.1 * np.std(least))
    assert draw_least_values(gp, rows, -3.0, rng=rng).max() <= -3.0


def test_a_place_that_says_nothing_about_the_least_value_is_worth_less():
    values, _, _ = log_max_value_entropy(np.array([0.0, 3.0]), np.array([1.0, 1.0]), np.array([-1.0]))
    assert values[0] > values[1]
