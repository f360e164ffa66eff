import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.special import erfcx
from scipy.stats import norm

from farthing.acquisition.expected_improvement import (
    LogAugmentedImprovement,
    LogExpectedImprovement,
    LogOwnImprovement,
    expected_excess,
    h,
    log_expected_improvement,
    log_h,
    log_h_and_slope,
    log_share_learnt,
)
from farthing.models.gp import condition
from farthing.models.kernels import Constant, Matern52

with warnings.catch_warnings():  # linear_operator calls torch.jit.script when it is imported
    warnings.simplefilter("ignore", DeprecationWarning)
    from botorch.acquisition.analytic import _log_ei_helper


def process(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((12, 3))
    return condition(Constant() * Matern52((0, 1, 2)), np.log([1.0, 0.4, 0.6, 0.9]), X, np.sin(5 * X[:, 0]), noise=1e-3)


def test_log_h_equals_botorch_in_the_body_and_both_tails():
    z = np.concatenate([-np.logspace(6, -6, 400), np.logspace(-6, 3, 200)])
    expected = _log_ei_helper(torch.tensor(z)).numpy()
    np.testing.assert_allclose(log_h(z), expected, rtol=1e-9, atol=1e-12)


def test_an_expected_excess_is_the_expected_improvement_of_its_negative():
    mean, variance = np.array([-0.6, 0.0, 0.7]), np.array([0.04, 0.25, 4.0])
    expected = np.exp(log_expected_improvement(-mean, variance, best=0.0))
    np.testing.assert_allclose(expected_excess(mean, variance), expected, rtol=1e-12)


def test_without_variance_the_expected_excess_is_the_excess():
    found = expected_excess(np.array([-1.0, 0.0, 2.0, 1e9]), np.zeros(4))
    np.testing.assert_allclose(found, [0.0, 0.0, 2.0, 1e9], atol=1e-100)


def test_the_series_far_to_the_left_agrees_with_mills_ratio():
    """Just left of the seam, where the ratio still has 12 digits and each term of the series counts."""
    z = np.linspace(-50.5, -50.01, 5)
    mills = np.sqrt(np.pi / 2.0) * erfcx(-z / np.sqrt(2.0))
    expected = -0.5 * z * z - 0.5 * np.log(2.0 * np.pi) + np.log(1.0 + z * mills)
    np.testing.assert_allclose(log_h(z), expected, rtol=0.0, atol=2e-11)


def test_log_h_is_continuous_where_its_formulas_meet():
    for seam in (-1.0, -50.0):
        z = seam + np.array([-1e-9, 1e-9])
        assert np.ptp(log_h(z)) < 2e-9 * (1 + abs(seam)) + 1e-10
        assert np.ptp(log_h_and_slope(z)[1]) < 1e-8


def test_slope_of_log_h_equals_central_differences():
    z = np.array([-300.0, -60.0, -49.0, -7.0, -1.01, -0.99, 0.0, 2.0, 30.0])
    step = 1e-5 * np.maximum(1, np.abs(z))
    expected = (log_h(z + step) - log_h(z - step)) / (2 * step)
    np.testing.assert_allclose(log_h_and_slope(z)[1], expected, rtol=1e-6)


@pytest.mark.parametrize("z", [-3.0, -0.5, 0.0, 1.7])
def test_h_equals_its_integral(z):
    expected, _ = quad(lambda u: max(z - u, 0) * norm.pdf(u), -12, z)
    assert h(np.array(z)) == pytest.approx(expected, rel=1e-7)


def test_log_expected_improvement_is_the_logarithm_of_the_mean_gain():
    draws = np.random.default_rng(0).normal(0.4, 0.3, 400_000)
    gains = np.maximum(0.2 - draws, 0)
    exact = np.exp(log_expected_improvement(np.array([0.4]), np.array([0.09]), 0.2)[0])
    assert abs(exact - gains.mean()) < 4.5 * gains.std() / np.sqrt(gains.size)


def test_log_expected_improvement_lives_on_where_the_improvement_underflows():
    sigma = 0.5
    plain, z = sigma * h(np.array(-59.7 / sigma)), -59.7 / sigma
    log_value = log_expected_improvement(np.array([60.0]), np.array([sigma**2]), 0.3)[0]
    assert plain == 0.0
    assert log_value == pytest.approx(np.log(sigma) + norm.logpdf(z) - 2 * np.log(-z), abs=1e-3)  # h → φ/z²


@pytest.mark.parametrize("kind", [LogExpectedImprovement, LogAugmentedImprovement])
@pytest.mark.parametrize("best", [-0.9, 0.5, -30.0])
def test_gradient_equals_central_differences(kind, best):
    acquisition = kind(process(), best)
    X = np.random.default_rng(1).random((6, 3))
    value, gradient = acquisition.value_and_gradient(X)
    np.testing.assert_allclose(value, acquisition(X), rtol=1e-9)
    for j in range(3):
        step = 1e-6 * np.eye(3)[j]
        expected = (acquisition(X + step) - acquisition(X - step)) / 2e-6
        np.testing.assert_allclose(gradient[:, j], expected, rtol=1e-5, atol=1e-6)


def test_the_share_learnt_is_what_a_measurement_removes_of_a_deviation():
    """One measurement with noise σ_n² leaves 1 − σ²/(σ² + σ_n²) of the variance: 1 − σ_n/√(σ² + σ_n²) of σ goes."""
    variance, noise = np.array([1e-9, 1e-3, 0.5, 40.0]), 1e-2
    left = variance * noise / (variance + noise)
    removed = (np.sqrt(variance) - np.sqrt(left)) / np.sqrt(variance)
    np.testing.assert_allclose(np.exp(log_share_learnt(variance, noise)[0]), removed, rtol=1e-6)


def test_without_noise_augmented_improvement_is_expected_improvement():
    gp = replace(process(), noise=0.0)
    X = np.random.default_rng(2).random((5, 3))
    np.testing.assert_allclose(LogAugmentedImprovement(gp, -0.5)(X), LogExpectedImprovement(gp, -0.5)(X), rtol=1e-12)


def test_a_place_that_was_measured_often_is_worth_less_than_one_that_was_not():
    """EI alone prefers the row that is measured to death: its mean is better by less than the noise."""
    gp = condition(
        Constant() * Matern52((0,)), np.log([1.0, 0.05]), np.full((200, 1), 0.2), np.full(200, -0.05), noise=0.25
    )
    known, unknown = np.array([[0.2]]), np.array([[0.9]])
    best = float(gp.mean(known)[0])
    gap = {
        kind: float(kind(gp, best)(known)[0] - kind(gp, best)(unknown)[0])
        for kind in (LogExpectedImprovement, LogAugmentedImprovement)
    }
    assert gap[LogAugmentedImprovement] < gap[LogExpectedImprovement] - 3.0


def test_improvement_counts_from_the_best_of_the_own_branch():
    rng = np.random.default_rng(3)
    X = rng.random((12, 3))
    X[:8, 2] = np.nan
    gp = condition(Constant() * Matern52((0, 1, 2)), np.log([1.0, 0.4, 0.6, 0.9]), X, np.sin(5 * X[:, 0]), noise=1e-3)
    new = rng.random((6, 3))
    new[:2, 2], new[4:, 1] = np.nan, np.nan  # the last two are in a branch that nobody saw
    mean = gp.mean(X)
    assert mean[:8].min() != mean[8:].min()
    own = LogOwnImprovement(gp, X)
    for rows, best in ((new[:2], mean[:8].min()), (new[2:4], mean[8:].min()), (new[4:], np.median(mean))):
        expected = LogExpectedImprovement(gp, best=float(best)).value_and_gradient(rows)
        np.testing.assert_array_equal(own(rows), expected[0])
        for found, wanted in zip(own.value_and_gradient(rows), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)
