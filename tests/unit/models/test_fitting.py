import numpy as np
import pytest
from unit.models.problems import PROBLEMS, draw_rows, draw_theta

from farthing.models.fitting import Standardise, fit, fit_gp, hyperparameter_posterior, starting_points
from farthing.models.gp import as_values
from farthing.models.kernels import SE, Constant, Matern52, Parameter


def smooth_problem(n, seed=0, noise=0.05):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    y = np.sin(6 * X[:, 0]) + X[:, 1] ** 2 + noise * rng.standard_normal(n)
    return X, Standardise.of(y).apply(y)


KERNEL = Constant() * Matern52((0, 1, 2))


@pytest.mark.parametrize("noise", [None, 0.05])
def test_several_observations_of_the_same_rows_have_the_densities_that_each_has_alone(noise):
    rng = np.random.default_rng(7)
    X, observations = rng.random((20, 3)), list(rng.standard_normal((4, 20)))
    posteriors = [hyperparameter_posterior(KERNEL, X, y, noise=noise) for y in observations]
    theta = posteriors[0].priors.mean + 0.1
    alone = [float(posterior.value_and_gradient(theta[None, :])[0][0]) for posterior in posteriors]
    assert posteriors[0].values_of(theta, np.stack(observations, axis=1)) == pytest.approx(alone, rel=1e-10)


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("noise", [None, 0.05])
def test_gradient_of_the_log_posterior_equals_central_differences(name, noise):
    rng = np.random.default_rng(0)
    kernel = PROBLEMS[name].kernel
    X, y = draw_rows(10, rng), rng.standard_normal(10)
    posterior = hyperparameter_posterior(kernel, X, y, noise=noise)
    theta = np.stack([draw_theta(kernel, rng) for _ in range(3)])
    if noise is None:
        theta = np.column_stack([theta, [-3.0, -4.0, -1.0]])

    _, gradient = posterior.value_and_gradient(theta)

    for k in range(theta.shape[1]):
        step = 1e-5 * np.eye(theta.shape[1])[k]
        ahead, behind = (posterior.value_and_gradient(theta + s)[0] for s in (step, -step))
        np.testing.assert_allclose(gradient[:, k], (ahead - behind) / 2e-5, rtol=1e-5, atol=1e-6)


def test_gradient_with_slopes_equals_central_differences():
    rng = np.random.default_rng(0)
    X, y = rng.random((8, 3)), rng.standard_normal(8)
    posterior = hyperparameter_posterior(KERNEL, X, y, along=np.array([-1, -1, 0, 1, 2, -1, 0, 1]))
    theta = posterior.priors.mean + 0.1 * rng.standard_normal((2, 5))
    _, gradient = posterior.value_and_gradient(theta)
    for k in range(5):
        step = 1e-4 * np.eye(5)[k]
        ahead, behind = (posterior.value_and_gradient(theta + s)[0] for s in (step, -step))
        np.testing.assert_allclose(gradient[:, k], (ahead - behind) / 2e-4, rtol=1e-5, atol=1e-5)


def test_log_posterior_is_marginal_likelihood_plus_priors():
    X, y = smooth_problem(15)
    posterior = hyperparameter_posterior(KERNEL, X, y)
    theta = posterior.priors.mean + 0.2
    gp = posterior.process(theta)
    prior_of_mean = -0.5 * gp.m**2
    expected = gp.log_marginal_likelihood + prior_of_mean + posterior.priors.log_density(theta)[0]
    assert posterior.value_and_gradient(theta[None])[0][0] == pytest.approx(expected, rel=1e-9)


def test_the_constant_mean_is_the_best_one():
    X, y = smooth_problem(15)
    posterior = hyperparameter_posterior(KERNEL, X, y + 2.0)
    theta = posterior.priors.mean

    def density(m):
        rest = hyperparameter_posterior(KERNEL, X, y + 2.0 - m, mean_spread=1e-9)
        return rest.value_and_gradient(theta[None])[0][0] - 0.5 * m**2

    m = posterior.process(theta).m
    assert density(m) > max(density(m - 0.01), density(m + 0.01))


def test_fit_finds_a_stationary_point_or_a_bound():
    X, y = smooth_problem(40)
    posterior = hyperparameter_posterior(KERNEL, X, y)
    theta = fit(posterior)
    _, gradient = posterior.value_and_gradient(theta[None])
    inside = (theta > posterior.priors.lower) & (theta < posterior.priors.upper)
    assert np.all(np.abs(gradient[0][inside]) < 0.05)  # curvatures are of order ten: less than 0.01 off in log units


def test_fit_recovers_what_generated_the_data():
    rng = np.random.default_rng(0)
    X = rng.random((150, 2))
    kernel = SE((0, 1))
    true = np.log([0.2, 0.8])
    K = kernel.evaluate(true, X).K
    y = np.linalg.cholesky(K + 0.01 * np.eye(150)) @ rng.standard_normal(150)
    gp = fit_gp(kernel, X, y)
    np.testing.assert_allclose(gp.theta, true, atol=0.25)  # about two posterior deviations
    assert gp.noise == pytest.approx(0.01, rel=0.5)


def test_a_warm_start_is_never_worse_and_the_fit_is_the_same_bit_for_bit():
    X, y = smooth_problem(60)
    posterior = hyperparameter_posterior(KERNEL, X, y)
    cold = fit(posterior)
    warm = fit(posterior, warm_start=cold)
    np.testing.assert_array_equal(cold, fit(posterior))
    values = posterior.value_and_gradient(np.stack([cold, warm]))[0]
    assert values[1] >= values[0] - 1e-6


def test_many_rows_are_fitted_by_some_of_them_and_all_are_conditioned_on():
    X, y = smooth_problem(700)
    posterior = hyperparameter_posterior(KERNEL, X, y, noise=np.full(700, 0.01))
    some = posterior.thinned(500)
    assert (some.y.size, some.y.min(), some.y.max()) == (500, y.min(), y.max())
    np.testing.assert_array_equal(fit(posterior), fit(some))
    assert posterior.process(fit(some)).n == 700


def test_given_noise_is_kept():
    X, y = smooth_problem(12)
    given = np.linspace(0.01, 0.1, 12)
    gp = fit_gp(KERNEL, X, y, noise=given)
    assert gp.theta.size == len(KERNEL.parameters)
    K = KERNEL.evaluate(gp.theta, X).K + np.diag(given)
    np.testing.assert_allclose(gp.L @ gp.L.T, K, rtol=1e-9, atol=1e-12)


def test_starts_stay_within_the_bounds():
    posterior = hyperparameter_posterior(KERNEL, *smooth_problem(5))
    starts = starting_points(posterior.priors, np.full(5, 99.0), 5)
    assert starts.shape == (6, 5)
    assert np.all((starts >= posterior.priors.lower) & (starts <= posterior.priors.upper))


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.zeros((0, 3)), []),
        (np.full((1, 3), 0.5), [3.0]),
        (np.full((2, 3), 0.5), [3.0, 3.0]),
        (np.full((30, 3), 0.5), np.arange(30.0)),
        (np.random.default_rng(0).random((2, 3)), [0.0, 1.0]),
        (np.random.default_rng(0).random((20, 3)), np.ones(20)),
        (np.random.default_rng(0).random((20, 3)), [1e12, *range(19)]),
        (0.5 + 1e-12 * np.random.default_rng(0).random((20, 3)), np.arange(20.0)),
    ],
    ids=["none", "one", "two equal", "duplicates", "n < d", "constant", "outlier", "near duplicates"],
)
@pytest.mark.parametrize("given", [None, 0.0])
def test_trouble_never_raises_and_answers_stay_sensible(X, y, given):
    transform = Standardise.of(np.asarray(y, dtype=float))
    gp = fit_gp(KERNEL, X, transform.apply(np.asarray(y, dtype=float)), noise=given)
    mean, variance, mean_gradient, variance_gradient = gp.predict_with_gradient(np.random.default_rng(1).random((9, 3)))
    assert all(np.all(np.isfinite(part)) for part in (mean, variance, mean_gradient, variance_gradient))
    assert np.all(variance > 0)
    assert np.all(np.abs(mean) < 100)


def test_without_observations_the_fit_is_the_prior_mode():
    posterior = hyperparameter_posterior(KERNEL, np.zeros((0, 3)), np.zeros(0))
    np.testing.assert_array_equal(fit(posterior), posterior.priors.mean)


def test_slopes_take_part_in_the_fit():
    rng = np.random.default_rng(0)
    X = rng.random((20, 1))
    y = np.concatenate([np.sin(12 * X[:10, 0]), 12 * np.cos(12 * X[10:, 0])])
    along = as_values(X)
    along[10:] = 0
    gp = fit_gp(SE((0,)), X, y, along=along)
    queries = np.linspace(0.1, 0.9, 20)[:, None]
    assert np.abs(gp.mean(queries) - np.sin(12 * queries[:, 0])).mean() < 0.1


def test_bad_priors_are_refused():
    with pytest.raises(ValueError, match="lower <= median <= upper"):
        Parameter("lengthscale", median=2.0, spread=1.0, lower=0.1, upper=1.0)
