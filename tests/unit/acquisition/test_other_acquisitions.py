from typing import Any

import numpy as np
import pytest

from benchmarks.baselines.bounds import LogHopedGain, boca_beta
from farthing.acquisition.acquisition import Affordable, LogValuePerCost, PosteriorMean
from farthing.acquisition.confidence_bound import (
    ConfidenceBound,
    ce_gp_ucb_beta,
    lambo_beta,
    lower_confidence_bound,
    pb2_beta,
    upper_confidence_bound,
)
from farthing.acquisition.expected_improvement import LogExpectedImprovement
from farthing.models.gp import condition
from farthing.models.kernels import SE


def process(seed):
    rng = np.random.default_rng(seed)
    X = rng.random((8, 2))
    return condition(SE((0, 1)), np.log([0.4, 0.7]), X, rng.standard_normal(8), noise=1e-2)


LOSS, LOG_COST = process(0), process(1)
ACQUISITIONS: dict[str, Any] = {
    "mean": PosteriorMean(LOSS, sign=-1.0),
    "bound": ConfidenceBound(LOSS, 2.0),
    "upper bound": ConfidenceBound(LOSS, 2.0, sign=1.0),
    "hoped gain": LogHopedGain(LOSS, 3.0, 2.0),
    "log value per cost": LogValuePerCost(LogExpectedImprovement(LOSS, -0.5), PosteriorMean(LOG_COST), 0.7),
}


@pytest.mark.parametrize("name", ACQUISITIONS)
def test_gradient_equals_central_differences(name):
    acquisition = ACQUISITIONS[name]
    X = np.random.default_rng(2).random((7, 2))
    value, gradient = acquisition.value_and_gradient(X)
    np.testing.assert_allclose(value, acquisition(X), rtol=1e-9)
    for j in range(2):
        step = 1e-6 * np.eye(2)[j]
        expected = (acquisition(X + step) - acquisition(X - step)) / 2e-6
        np.testing.assert_allclose(gradient[:, j], expected, rtol=1e-5, atol=1e-7)


def test_bounds_lie_beta_deviations_around_the_mean():
    mean, variance = np.array([1.0]), np.array([4.0])
    assert upper_confidence_bound(mean, variance, 9.0)[0] == 7.0
    assert lower_confidence_bound(mean, variance, 9.0)[0] == -5.0


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_bound_is_as_far_above_a_value_as_below_a_loss(sign):
    X = np.random.default_rng(4).random((5, 2))
    mean, variance = LOSS.predict(X)
    np.testing.assert_array_equal(ConfidenceBound(LOSS, 2.0, sign=sign)(X), sign * mean + np.sqrt(2.0 * variance))


def test_the_posterior_mean_is_that_of_the_process_or_its_negative():
    X = np.random.default_rng(3).random((4, 2))
    np.testing.assert_array_equal(PosteriorMean(LOSS)(X), LOSS.mean(X))
    np.testing.assert_array_equal(PosteriorMean(LOSS, sign=-1.0)(X), -LOSS.mean(X))


def test_a_hoped_gain_of_exactly_nothing_is_none_and_its_slope_is_that_of_the_bound():
    X = np.random.default_rng(4).random((1, 2))
    bound, slope = ConfidenceBound(LOSS, 2.0).value_and_gradient(X)
    value, gradient = LogHopedGain(LOSS, float(-bound[0]), 2.0).value_and_gradient(X)
    assert value[0] == -np.inf
    np.testing.assert_array_equal(gradient, slope)


def test_what_is_expected_to_cost_more_than_the_limit_is_not_offered():
    X = np.random.default_rng(5).random((20, 2))
    limit = float(np.exp(np.median(LOG_COST.mean(X))))
    affordable = Affordable(PosteriorMean(LOSS), PosteriorMean(LOG_COST), limit)
    expected = np.where(LOG_COST.mean(X) > np.log(limit), -np.inf, LOSS.mean(X))
    assert np.isinf(expected).sum() == 10
    np.testing.assert_array_equal(affordable(X), expected)
    value, gradient = affordable.value_and_gradient(X)
    np.testing.assert_allclose(value, expected)
    np.testing.assert_array_equal(gradient, PosteriorMean(LOSS).value_and_gradient(X)[1])


def test_schedules_are_those_of_the_papers():
    assert [ce_gp_ucb_beta(t) for t in (1, 25)] == pytest.approx([0.8 * np.log(4), 0.8 * np.log(100)])
    assert [pb2_beta(t) for t in (1, 2)] == [0.2, 0.2]
    assert pb2_beta(10) == pytest.approx(0.2 + np.log(4))
    assert lambo_beta(3, D=5) == pytest.approx(np.log(6))
    assert boca_beta(3, D=4) == pytest.approx(2 * np.log(7))
