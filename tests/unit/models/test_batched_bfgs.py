import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

from farthing.models.batched_bfgs import bfgs_update, minimize_batch, newton_step


def rosenbrock(X):
    return np.array([rosen(x) for x in X]), np.array([rosen_der(x) for x in X])


def quadratic(X):
    """A narrow valley, condition number 1000, with its minimum at 0.7 in every variable."""
    weights = np.logspace(0, 3, X.shape[1])
    return np.sum(weights * (X - 0.7) ** 2, axis=1), 2 * weights * (X - 0.7)


def styblinski_tang(X):
    return 0.5 * np.sum(X**4 - 16 * X**2 + 5 * X, axis=1), 0.5 * (4 * X**3 - 32 * X + 5)


def steep_log(X):
    """As log EI far from the optimum: huge slopes, then a smooth top."""
    r = np.sum((X - 0.3) ** 2, axis=1)
    return np.log1p(1e4 * r), 1e4 * 2 * (X - 0.3) / (1 + 1e4 * r)[:, None]


def scipy_minimum(function, x, bounds):
    def one(x):
        return tuple(part[0] for part in function(x[None]))

    return minimize(one, x, jac=True, method="L-BFGS-B", bounds=[bounds] * x.size).fun


every_box = pytest.mark.parametrize("bounds", [(-5.0, 5.0), (-2.0, 0.5), (0.8, 3.0), (0.0, 1.0)])


@pytest.mark.parametrize("function", [rosenbrock, quadratic, styblinski_tang, steep_log])
@every_box
def test_scipy_finds_nothing_lower_from_where_a_search_ended(function, bounds):
    start = np.random.default_rng(0).uniform(*bounds, (8, 5))
    lower, upper = np.full(5, bounds[0]), np.full(5, bounds[1])
    ours = minimize_batch(function, start, lower=lower, upper=upper, most_calls=500, value_tolerance=1e-13)
    theirs = np.array([scipy_minimum(function, x, bounds) for x in ours.x])
    assert np.all((ours.x >= lower) & (ours.x <= upper))
    np.testing.assert_allclose(ours.value, function(ours.x)[0])
    assert np.all(ours.value <= theirs + 1e-6 * (1 + np.abs(theirs)))


@pytest.mark.parametrize("function", [quadratic, steep_log])
@every_box
def test_searches_in_one_valley_end_where_scipy_does(function, bounds):
    start = np.random.default_rng(0).uniform(*bounds, (8, 5))
    ours = minimize_batch(function, start, lower=np.full(5, bounds[0]), upper=np.full(5, bounds[1]))
    theirs = [scipy_minimum(function, x, bounds) for x in start]
    np.testing.assert_allclose(ours.value, theirs, rtol=1e-5, atol=1e-6)


def test_takes_about_as_many_steps_as_scipy():
    start = np.random.default_rng(1).uniform(-2, 2, (1, 6))
    ours = minimize_batch(rosenbrock, start, lower=np.full(6, -5.0), upper=np.full(6, 5.0), most_calls=500)
    theirs = minimize(rosen, start[0], jac=rosen_der, method="L-BFGS-B", bounds=[(-5.0, 5.0)] * 6)
    assert ours.calls <= 1.5 * theirs.nfev


def test_each_row_of_a_batch_ends_where_it_would_alone():
    start = np.random.default_rng(2).uniform(-2, 2, (6, 3))
    bounds = {"lower": np.full(3, -2.0), "upper": np.full(3, 2.0)}
    together = minimize_batch(styblinski_tang, start, **bounds)
    alone = [minimize_batch(styblinski_tang, x[None], **bounds).x[0] for x in start]
    np.testing.assert_allclose(together.x, alone, rtol=1e-9, atol=1e-9)


def test_equal_bounds_hold_a_variable_row_by_row():
    start = np.array([[0.1, 0.2], [0.3, 0.4]])
    lower, upper = np.array([[0.1, 0.0], [0.0, 0.4]]), np.array([[0.1, 1.0], [1.0, 0.4]])
    found = minimize_batch(quadratic, start, lower=lower, upper=upper)
    np.testing.assert_allclose(found.x, [[0.1, 0.7], [0.7, 0.4]], atol=1e-6)


def test_rows_that_are_not_finite_end_at_once_and_do_not_disturb_the_others():
    def partly_infinite(X):
        value, gradient = quadratic(X)
        return np.where(X[:, 0] > 0.9, np.inf, value), gradient

    start = np.array([[0.95, 0.5], [0.1, 0.2]])
    found = minimize_batch(partly_infinite, start, lower=np.zeros(2), upper=np.ones(2))
    assert np.isinf(found.value[0])
    np.testing.assert_allclose(found.x[1], 0.7, atol=1e-6)


@pytest.mark.parametrize("scale", [0.0, 1e-300, 1.0, 1e300])
def test_a_singular_curvature_does_not_raise(scale):
    B = np.full((1, 3, 3), scale)
    with np.errstate(all="ignore"):
        assert newton_step(B, np.ones((1, 3)), np.array([[True, True, False]])).shape == (1, 3)


@pytest.mark.parametrize("steepness", [1e-12, 1e12, 1e80])
def test_slopes_of_any_size_are_followed_to_the_bottom_or_left_without_raising(steepness):
    def valley(X):
        return steepness * np.sum(np.abs(X - 0.4) ** 1.5, axis=1), 1.5 * steepness * np.sign(X - 0.4) * np.sqrt(
            np.abs(X - 0.4)
        )

    start = np.random.default_rng(0).random((4, 3))
    found = minimize_batch(valley, start, lower=np.zeros(3), upper=np.ones(3))
    assert np.all(found.value <= valley(start)[0])


def test_a_race_lets_only_the_lowest_search_finish():
    start = np.random.default_rng(3).uniform(-4, 4, (5, 4))
    bounds = {"lower": np.full(4, -5.0), "upper": np.full(4, 5.0)}
    raced = minimize_batch(styblinski_tang, start, race_after=3, **bounds)
    finished = np.max(np.abs(styblinski_tang(raced.x)[1]), axis=1) < 1e-2
    assert finished.sum() == 1
    assert np.argmin(raced.value) == np.flatnonzero(finished)[0]


def test_curvature_that_rounding_has_spoilt_is_forgotten():
    """Seen after steps so short that the change of the gradient was rounding: τ = sᵀy/sᵀBs was −10¹⁰."""
    s, y = np.array([[1e-3, 0.0], [1e-3, 1e-3]]), np.array([[2e-3, 1e-3], [3e-3, 1e-3]])
    sound = np.diag([5.0, 1.0])
    [repaired, other] = bfgs_update(np.stack([np.diag([-1e-10, 1e10]), sound]), s, y)
    assert repaired @ s[0] == pytest.approx(y[0])
    assert np.linalg.eigvalsh(repaired).min() > 0.0
    np.testing.assert_array_equal(other, bfgs_update(sound[None], s[1:], y[1:])[0])


def test_a_singular_curvature_gives_no_step_rather_than_an_error():
    B = np.array([[[1.0, 1.0], [1.0, 1.0]]]) - 2e-13 * np.eye(2)
    assert np.isnan(newton_step(B, np.ones((1, 2)), np.ones((1, 2), dtype=bool))).all()
