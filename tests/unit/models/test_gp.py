import warnings

import numpy as np
import pytest
import torch
from unit.models.problems import CUBE, FIDELITY, PROBLEMS, SMOOTH, draw_rows, draw_theta, gpytorch

from farthing.errors import InvalidArgument
from farthing.models.gp import as_values, condition, row_covariance
from farthing.models.kernels import SE, CategoryOverlap, Constant, Matern52

every_kernel = pytest.mark.parametrize("name", PROBLEMS)
NOISE, M = 0.01, 0.3


def arrange(name, n=12, seed=0):
    rng = np.random.default_rng(seed)
    problem = PROBLEMS[name]
    theta = draw_theta(problem.kernel, rng)
    X, queries, y = draw_rows(n, rng), draw_rows(8, rng), rng.standard_normal(n)
    return problem, theta, X, y, queries


class Oracle(gpytorch.models.ExactGP):
    def __init__(self, kernel, X, y):
        likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
        likelihood.noise = NOISE
        super().__init__(torch.tensor(X), torch.tensor(y), likelihood)
        self.mean_module = gpytorch.means.ConstantMean().double()
        self.mean_module.constant.data.fill_(M)
        self.covar_module = kernel

    def forward(self, X):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(X), self.covar_module(X))


@every_kernel
def test_posterior_and_marginal_likelihood_equal_gpytorch(name):
    problem, theta, X, y, queries = arrange(name)
    oracle = Oracle(problem.twin(problem.kernel, theta), X, y)
    exact = gpytorch.settings.fast_computations(False, False, False)
    with exact, torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore", gpytorch.utils.warnings.GPInputWarning)
        oracle.train()
        mll = gpytorch.mlls.ExactMarginalLogLikelihood(oracle.likelihood, oracle)
        expected_likelihood = float(mll(oracle(torch.tensor(X)), torch.tensor(y))) * y.size
        oracle.eval()
        expected = oracle(torch.tensor(queries))

    gp = condition(problem.kernel, theta, X, y, noise=NOISE, m=M)
    mean, covariance = gp.joint(queries)

    np.testing.assert_allclose(mean, expected.mean.numpy(), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(covariance, expected.covariance_matrix.numpy(), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(gp.predict(queries)[0], mean, rtol=1e-12)
    np.testing.assert_allclose(gp.predict(queries)[1], np.diagonal(covariance), rtol=1e-6, atol=1e-10)
    assert gp.log_marginal_likelihood == pytest.approx(expected_likelihood, rel=1e-6)


@every_kernel
@pytest.mark.parametrize("slopes", [False, True])
def test_gradients_of_mean_and_variance_equal_central_differences(name, slopes):
    problem, theta, X, y, queries = arrange(name)
    along = as_values(X)
    if slopes:
        along[:4] = [0, 1, 2, 0]
    queries[:, -1] += 0.5  # away from the kink of time decay
    gp = condition(problem.kernel, theta, X, y, noise=NOISE, m=M, along=along)
    mean, variance, mean_gradient, variance_gradient = gp.predict_with_gradient(queries)

    np.testing.assert_allclose(mean, gp.predict(queries)[0], rtol=1e-10)
    np.testing.assert_allclose(variance, gp.predict(queries)[1], rtol=1e-10)
    for alone, with_variance in zip(gp.mean_with_gradient(queries), (mean, mean_gradient), strict=True):
        np.testing.assert_array_equal(alone, with_variance)
    for j in (*CUBE, FIDELITY, X.shape[1] - 1):
        step = 1e-5 * np.eye(X.shape[1])[j]
        ahead, behind = gp.predict(queries + step), gp.predict(queries - step)
        by_mean, by_variance = ((a - b) / 2e-5 for a, b in zip(ahead, behind, strict=True))
        np.testing.assert_allclose(mean_gradient[:, j], by_mean, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(variance_gradient[:, j], by_variance, rtol=1e-5, atol=1e-7)


@every_kernel
def test_conditioning_twice_equals_conditioning_once(name):
    problem, theta, X, y, queries = arrange(name)
    once = condition(problem.kernel, theta, X, y, noise=NOISE, m=M)
    twice = condition(problem.kernel, theta, X[:5], y[:5], noise=NOISE, m=M).condition_on(X[5:], y[5:])
    for a, b in zip(once.joint(queries), twice.joint(queries), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)
    assert once.log_marginal_likelihood == pytest.approx(twice.log_marginal_likelihood, rel=1e-10)


@pytest.mark.parametrize("name", SMOOTH)
def test_slopes_have_the_covariance_of_difference_quotients(name):
    problem, theta, X, _, queries = arrange(name, n=4)
    h = 1e-4
    slope = row_covariance(problem.kernel, theta, X, np.array([0, 1, 2, FIDELITY]), queries, as_values(queries))
    for i, j in enumerate((0, 1, 2, FIDELITY)):
        step = h * np.eye(X.shape[1])[j]
        ahead, behind = (
            np.broadcast_to(problem.kernel.evaluate(theta, X + s, queries).K, (4, 8)) for s in (step, -step)
        )
        np.testing.assert_allclose(slope[i], (ahead[i] - behind[i]) / (2 * h), rtol=1e-5, atol=1e-7)


def test_exact_slopes_of_a_smooth_function_sharpen_the_prediction():
    rng = np.random.default_rng(0)
    kernel, theta = SE((0, 1)), np.log([0.4, 0.4])
    X, queries = rng.random((6, 2)), rng.random((50, 2))

    def f(X):
        return np.sin(3 * X[:, 0]) * np.cos(2 * X[:, 1])

    gradient = np.stack([3 * np.cos(3 * X[:, 0]) * np.cos(2 * X[:, 1]), -2 * np.sin(3 * X[:, 0]) * np.sin(2 * X[:, 1])])
    values = condition(kernel, theta, X, f(X), noise=1e-8)
    informed = values.condition_on(np.concatenate([X, X]), gradient.ravel(), noise=1e-8, along=np.repeat([0, 1], 6))
    error = np.abs(values.mean(queries) - f(queries)).mean()
    assert np.abs(informed.mean(queries) - f(queries)).mean() < 0.25 * error  # three times the data, measured 0.14
    np.testing.assert_allclose(informed.mean(X, along=np.zeros(6, dtype=int)), gradient[0], atol=1e-3)


def test_slopes_along_categories_and_time_are_refused():
    gp = condition(SE((0,)) * CategoryOverlap((1,)), np.zeros(2), np.zeros((1, 2)), np.zeros(1), noise=0.1)
    with pytest.raises(InvalidArgument, match="column 1"):
        gp.condition_on(np.zeros((1, 2)), np.zeros(1), along=np.array([1]))


def test_without_observations_the_posterior_is_the_prior():
    gp = condition(Constant() * SE((0,)), np.log([2.0, 0.5]), np.zeros((0, 1)), np.zeros(0), noise=0.1, m=1.5)
    X = np.random.default_rng(0).random((4, 1))
    mean, variance, mean_gradient, variance_gradient = gp.predict_with_gradient(X)
    np.testing.assert_allclose(mean, 1.5)
    np.testing.assert_allclose(variance, 2.0)
    np.testing.assert_array_equal(mean_gradient, 0.0)
    np.testing.assert_array_equal(variance_gradient, 0.0)
    assert gp.log_marginal_likelihood == 0.0
    assert gp.condition_on(X, np.ones(4)).n == 4


def test_noise_of_each_row_is_its_own():
    kernel, theta = SE((0,)), np.log([0.3])
    X, y = np.array([[0.2], [0.8]]), np.array([1.0, 1.0])
    gp = condition(kernel, theta, X, y, noise=np.array([1e-6, 1.0]))
    mean, _ = gp.predict(X)
    assert mean[0] == pytest.approx(1.0, abs=1e-3)
    assert mean[1] < 0.7


def test_believing_keeps_the_mean_and_shrinks_the_variance():
    _, _, X, y, _ = arrange("matern52")
    gp = condition(Matern52(CUBE), np.zeros(3), X, y, noise=NOISE)
    rng = np.random.default_rng(1)
    pending, queries = draw_rows(2, rng), draw_rows(9, rng)
    kriging_believer = gp.kriging_believer(pending)
    np.testing.assert_allclose(kriging_believer.mean(queries), gp.mean(queries), rtol=1e-8, atol=1e-10)
    assert np.all(kriging_believer.predict(queries)[1] < gp.predict(queries)[1])


def test_fantasies_average_to_the_mean_and_share_one_variance():
    _, _, X, y, _ = arrange("matern52")
    gp = condition(Matern52(CUBE), np.zeros(3), X, y, noise=NOISE)
    rng = np.random.default_rng(1)
    pending, queries = draw_rows(2, rng), draw_rows(3, rng)
    count = 4000
    fantasies = gp.fantasies(pending, count, rng=rng)
    means = np.array([fantasy.mean(queries) for fantasy in fantasies])
    standard_error = means.std(axis=0) / np.sqrt(count)
    assert np.all(np.abs(means.mean(axis=0) - gp.mean(queries)) < 4.5 * standard_error)
    shrinkage = gp.predict(queries)[1] - fantasies[0].predict(queries)[1]
    np.testing.assert_allclose(means.var(axis=0), shrinkage, rtol=0.15)  # 4000 draws: about 2 % deviation


def test_samples_have_the_joint_distribution():
    _, _, X, y, queries = arrange("matern52")
    gp = condition(Matern52(CUBE), np.zeros(3), X, y, noise=NOISE)
    draws = gp.sample(queries, 20_000, rng=np.random.default_rng(2))
    mean, covariance = gp.joint(queries)
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=4.5 * np.sqrt(covariance.max() / 20_000))
    np.testing.assert_allclose(np.cov(draws.T), covariance, atol=6 * covariance.max() / np.sqrt(20_000))


def test_posterior_covariance_between_two_sets_is_a_block_of_the_joint_one():
    _, theta, X, y, queries = arrange("trace")
    gp = condition(PROBLEMS["trace"].kernel, theta, X, y, noise=NOISE)
    np.testing.assert_allclose(
        gp.covariance(queries[:3], queries[3:]), gp.covariance(queries)[:3, 3:], rtol=1e-9, atol=1e-12
    )


def test_exact_duplicates_without_noise_never_raise():
    X, y = np.full((1, 2), 0.3), np.ones(1)
    gp = condition(Matern52((0, 1)), np.zeros(2), X, y, noise=0.0)
    for _ in range(4):
        gp = gp.condition_on(X, y)
    assert gp.mean(X)[0] == pytest.approx(1.0, abs=1e-6)
    assert gp.kriging_believer(X).n == 6
    draws = gp.sample(np.repeat(X, 3, axis=0), 5, rng=np.random.default_rng(0))
    np.testing.assert_allclose(draws, 1.0, atol=1e-3)
    assert len(gp.fantasies(X, 3, rng=np.random.default_rng(0))) == 3
