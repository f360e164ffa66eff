import numpy as np
import pytest

from farthing.models.diagnostics import calibration, importance, leave_one_out
from farthing.models.gp import condition
from farthing.models.kernels import SE, CategoryOverlap, Constant


def arranged(n=10):
    rng = np.random.default_rng(0)
    X, y = rng.random((n, 3)), rng.standard_normal(n)
    X[:, 2] = rng.integers(0, 2, n)
    kernel = Constant() * SE((0, 1)) * CategoryOverlap((2,))
    return condition(kernel, np.log([1.5, 0.3, 0.9, 1.0]), X, y, noise=0.1, m=0.2)


def test_leave_one_out_equals_leaving_out_each_observation():
    gp = arranged()
    left = leave_one_out(gp)
    for i in range(gp.n):
        others = np.arange(gp.n) != i
        without = condition(gp.kernel, gp.theta, gp.X[others], gp.y[others], noise=0.1, m=0.2)
        mean, variance = without.predict(gp.X[[i]])
        assert left.mean[i] == pytest.approx(mean[0], rel=1e-8)
        assert left.variance[i] == pytest.approx(variance[0] + 0.1, rel=1e-8)


def test_residuals_of_a_right_model_are_calibrated():
    rng = np.random.default_rng(0)
    X = rng.random((400, 1))
    kernel, theta = SE((0,)), np.log([0.1])
    K = kernel.evaluate(theta, X).K + 0.1 * np.eye(400)
    gp = condition(kernel, theta, X, np.linalg.cholesky(K) @ rng.standard_normal(400), noise=0.1)
    levels = np.array([0.5, 0.8, 0.95])
    left = leave_one_out(gp)
    np.testing.assert_allclose(calibration(left.residuals, levels), levels, atol=0.08)  # 3 errors of 400 draws
    assert 0.3 < left.explained < 1.0


def test_importance_is_the_share_of_inverse_squared_lengthscales():
    shares = importance(arranged())
    weights = np.array([0.3**-2, 0.9**-2, 2.0])
    np.testing.assert_allclose(shares, weights / weights.sum())


def test_diagnostics_of_nothing_are_empty_not_errors():
    gp = condition(Constant(), np.zeros(1), np.zeros((0, 2)), np.zeros(0), noise=0.1)
    left = leave_one_out(gp)
    assert left.residuals.size == 0
    assert np.isnan(left.explained)
    assert np.isnan(calibration(left.residuals, np.array([0.5]))).all()
    np.testing.assert_array_equal(importance(gp), 0.0)
