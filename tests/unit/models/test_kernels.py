import numpy as np
import pytest
import torch
from unit.models.problems import CUBE, FIDELITY, PROBLEMS, SMOOTH, draw_rows, draw_theta

from farthing.errors import InvalidArgument
from farthing.models.fidelity_kernels import LearningCurve
from farthing.models.kernels import SE, CategoryOverlap, Constant, Matern52

STEP = 1e-5  # central differences are then exact to about 1e-10 of unit-sized functions
every_kernel = pytest.mark.parametrize("name", PROBLEMS)


def arrange(name, n=9, m=7, seed=0):
    rng = np.random.default_rng(seed)
    problem = PROBLEMS[name]
    X, Z = draw_rows(n, rng), draw_rows(m, rng)
    return problem, draw_theta(problem.kernel, rng), X, Z, rng.standard_normal((n, m))


def with_holes(X, rng):
    X = X.copy()
    X[:, CUBE] = np.where(rng.random((X.shape[0], len(CUBE))) < 0.3, np.nan, X[:, CUBE])
    return X


def dense(covariance, n, m):
    return np.broadcast_to(covariance.K, (n, m))


@every_kernel
def test_matrix_equals_gpytorch(name):
    problem, theta, X, Z, _ = arrange(name)
    twin = problem.twin(problem.kernel, theta)
    expected = twin(torch.tensor(X), torch.tensor(Z)).to_dense().detach().numpy()
    np.testing.assert_allclose(dense(problem.kernel.evaluate(theta, X, Z), 9, 7), expected, rtol=1e-9, atol=1e-12)


@every_kernel
def test_matrix_with_itself_is_symmetric_and_equals_the_matrix_of_two_copies(name):
    problem, theta, X, _, _ = arrange(name)
    K = dense(problem.kernel.evaluate(theta, X), 9, 9)
    np.testing.assert_allclose(K, K.T, rtol=1e-14)
    np.testing.assert_allclose(K, dense(problem.kernel.evaluate(theta, X, X.copy()), 9, 9), rtol=1e-12)


@every_kernel
@pytest.mark.parametrize("holes", [False, True])
def test_theta_gradient_equals_central_differences(name, holes):
    problem, theta, X, Z, W = arrange(name)
    if holes:
        X, Z = with_holes(X, np.random.default_rng(1)), with_holes(Z, np.random.default_rng(2))

    def weighted(theta):
        return np.sum(W * problem.kernel.evaluate(theta, X, Z).K)

    expected = [(weighted(theta + e) - weighted(theta - e)) / (2 * STEP) for e in STEP * np.eye(theta.size)]
    gradient = problem.kernel.evaluate(theta, X, Z).theta_gradient(W)
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-8)


@every_kernel
@pytest.mark.parametrize("holes", [False, True])
def test_input_gradient_equals_central_differences(name, holes):
    problem, theta, X, Z, W = arrange(name)
    if holes:
        X, Z = with_holes(X, np.random.default_rng(1)), with_holes(Z, np.random.default_rng(2))
    X[:, -1] += 0.5  # away from the kink of time decay
    differentiable = [*CUBE, FIDELITY, X.shape[1] - 1]
    gradient = problem.kernel.evaluate(theta, X, Z).input_gradient(W)
    for j in differentiable:
        step = STEP * np.eye(X.shape[1])[j]
        change = problem.kernel.evaluate(theta, X + step, Z).K - problem.kernel.evaluate(theta, X - step, Z).K
        expected = np.sum(W * change, axis=1) / (2 * STEP)
        np.testing.assert_allclose(gradient[:, j], np.nan_to_num(expected), rtol=1e-5, atol=1e-8)


@every_kernel
@pytest.mark.parametrize("holes", [False, True])
def test_jet_equals_central_differences(name, holes):
    problem, theta, X, Z, _ = arrange(name)
    if holes:
        X, Z = with_holes(X, np.random.default_rng(1)), with_holes(Z, np.random.default_rng(2))
    X[:, -1] += 0.5
    kernel = problem.kernel
    dx, dz, dxdz = kernel.evaluate(theta, X, Z).jet()
    steps = STEP * np.eye(X.shape[1])
    for j in (*CUBE, FIDELITY, X.shape[1] - 1):
        by_x = (kernel.evaluate(theta, X + steps[j], Z).K - kernel.evaluate(theta, X - steps[j], Z).K) / (2 * STEP)
        by_z = (kernel.evaluate(theta, X, Z + steps[j]).K - kernel.evaluate(theta, X, Z - steps[j]).K) / (2 * STEP)
        ahead, behind = (kernel.evaluate(theta, X, Z + sign * steps[j]).jet().dx for sign in (1, -1))
        by_xz = (ahead - behind) / (2 * STEP)
        np.testing.assert_allclose(dx[..., j], np.broadcast_to(by_x, (9, 7)), rtol=1e-5, atol=1e-8)
        np.testing.assert_allclose(dz[..., j], np.broadcast_to(by_z, (9, 7)), rtol=1e-5, atol=1e-8)
        np.testing.assert_allclose(dxdz[..., j], by_xz, rtol=1e-5, atol=1e-8)


@every_kernel
def test_variance_is_the_diagonal_and_its_gradient_equals_central_differences(name):
    problem, theta, X, _, _ = arrange(name)
    value, gradient = problem.kernel.variance(theta, X)
    np.testing.assert_allclose(value, np.diagonal(dense(problem.kernel.evaluate(theta, X), 9, 9)), rtol=1e-12)
    for j in (*CUBE, FIDELITY, X.shape[1] - 1):
        step = STEP * np.eye(X.shape[1])[j]
        ahead, behind = (problem.kernel.variance(theta, X + s)[0] for s in (step, -step))
        np.testing.assert_allclose(gradient[:, j], (ahead - behind) / (2 * STEP), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_of_coincident_rows_are_finite_and_jointly_positive_semidefinite(name):
    problem, theta, X, _, _ = arrange(name, n=5)
    X[1] = X[0]
    jet = problem.kernel.evaluate(theta, X).jet()
    slopes = jet.dxdz.transpose(0, 2, 1, 3).reshape(5 * X.shape[1], -1)
    assert np.linalg.eigvalsh(0.5 * (slopes + slopes.T)).min() > -1e-9


@every_kernel
def test_a_batch_of_thetas_equals_each_alone(name):
    problem, theta, X, _, _ = arrange(name)
    thetas = theta + 0.3 * np.arange(3)[:, None]
    W = np.random.default_rng(3).standard_normal((3, 9, 9))
    batch = problem.kernel.evaluate(thetas, X)
    gradient = batch.theta_gradient(W)
    for b in range(3):
        alone = problem.kernel.evaluate(thetas[b], X)
        np.testing.assert_allclose(batch.K[b], alone.K, rtol=1e-12)
        np.testing.assert_allclose(gradient[b], alone.theta_gradient(W[b]), rtol=1e-9, atol=1e-12)


def test_inactive_values_are_the_same_place_and_apart_from_active_ones():
    kernel, theta = Matern52((0, 1)), np.zeros(2)
    X = np.array([[np.nan, 0.2], [np.nan, 0.2], [0.5, 0.2], [0.9, 0.2]])
    K = kernel.evaluate(theta, X).K
    assert K[0, 1] == 1.0
    assert K[0, 3] < K[0, 2] < 1.0


def test_inactive_is_a_category_of_its_own():
    X = np.array([[np.nan], [np.nan], [0.0], [1.0]])
    K = CategoryOverlap((0,)).evaluate(np.zeros(1), X).K
    assert K[0, 1] == 1.0
    assert K[0, 2] == K[0, 3] == K[2, 3] == pytest.approx(np.exp(-1.0))


def test_products_and_sums_flatten():
    a, b, c = Constant(), SE((0,)), SE((1,))
    assert (a * b * c).kernels == (a * (b * c)).kernels == (a, b, c)
    assert (a + b + c).kernels == (a + (b + c)).kernels == (a, b, c)


@pytest.mark.parametrize("columns", [(), (1, 1), (-1,)])
def test_columns_must_be_distinct_and_counted_from_zero(columns):
    with pytest.raises(InvalidArgument, match="distinct columns"):
        SE(columns)


def test_curves_seen_at_the_same_few_places_have_the_covariance_and_gradients_of_single_pairs():
    rng = np.random.default_rng(3)
    kernel, theta = LearningCurve(0), np.array([0.1, -0.2, 0.3])
    X, Z = rng.choice([0.1, 0.25, 0.5, 1.0], (120, 1)), rng.choice([0.1, 0.5, 1.0], (90, 1))
    together, W = kernel.evaluate(theta, X, Z), rng.standard_normal((120, 90))
    alone = [[kernel.evaluate(theta, x[None], z[None]) for z in Z] for x in X]
    np.testing.assert_array_equal(together.K, [[float(pair.K[0, 0]) for pair in row] for row in alone])
    weighted = [[pair.theta_gradient(W[i, j, None, None]) for j, pair in enumerate(row)] for i, row in enumerate(alone)]
    np.testing.assert_allclose(together.theta_gradient(W), np.sum(weighted, axis=(0, 1)), rtol=1e-10, atol=1e-10)
    by_input = kernel.evaluate(theta, X + 1e-6, Z).K - kernel.evaluate(theta, X - 1e-6, Z).K
    np.testing.assert_allclose(together.input_gradient(W)[:, 0], np.sum(W * by_input, axis=1) / 2e-6, rtol=1e-5)
