import numpy as np
import pytest

from farthing.models.gp import calibration, condition, leave_one_out, variance_shares
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


def test_variance_shares_are_the_total_effects_of_a_known_function():
    rng = np.random.default_rng(0)
    U, again = rng.random((2, 20_000, 3))

    def f(X):
        return 2.0 * X[:, 0] + X[:, 1]

    moved = np.array([f(np.where(np.arange(3) == j, again, U)) for j in range(3)])
    np.testing.assert_allclose(
        variance_shares(f(U), moved), [0.8, 0.2, 0.0], atol=0.01
    )  # 4/12 and 1/12 of the variance
    several = variance_shares(np.stack([f(U), U[:, 2]]), np.stack([moved, np.tile(U[:, 2], (3, 1))]))
    assert several.shape == (2, 3)
    np.testing.assert_array_equal(several[1], 0.0)


def test_diagnostics_of_nothing_are_empty_not_errors():
    gp = condition(Constant(), np.zeros(1), np.zeros((0, 2)), np.zeros(0), noise=0.1)
    left = leave_one_out(gp)
    assert left.residuals.size == 0
    assert np.isnan(left.explained)
    assert np.isnan(calibration(left.residuals, np.array([0.5]))).all()
