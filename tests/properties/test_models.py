"""Properties of kernels and processes, whatever the rows: holes, duplicates, order, scale."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.acquisition.expected_improvement import log_h, log_h_and_slope
from farthing.acquisition.maximize import Domain, Effort, maximize
from farthing.models.fidelity_kernels import DataSize, LearningCurve, TimeDecay
from farthing.models.fitting import Standardise, fit_gp
from farthing.models.gp import condition
from farthing.models.kernels import SE, CategoryOverlap, Constant, Matern32, Matern52

RADIAL = (SE, Matern32, Matern52)
cube_values = st.one_of(st.none(), st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 1))


@st.composite
def rows(draw, columns=3, least=1, most=12):
    """Rows of the unit cube where any value may be inactive, with duplicates likely."""
    n = draw(st.integers(least, most))
    values = draw(st.lists(st.lists(cube_values, min_size=columns, max_size=columns), min_size=n, max_size=n))
    X = np.array([[np.nan if v is None else v for v in row] for row in values], dtype=float)
    return X[draw(st.lists(st.integers(0, n - 1), min_size=n, max_size=n))] if draw(st.booleans()) else X


def assert_positive_semidefinite(K):
    assert np.all(np.isfinite(K))
    assert np.linalg.eigvalsh(0.5 * (K + K.T)).min() > -1e-9 * len(K) * max(1.0, np.abs(K).max())


@given(rows(), st.sampled_from(RADIAL), st.booleans(), st.floats(-4, 3), st.floats(-4, 3))
def test_radial_kernels_stay_positive_semidefinite_with_inactive_values(X, kind, ard, a, b):
    kernel = kind((0, 1, 2), ard=ard)
    theta = np.array([a, b, 0.0]) if ard else np.array([a])
    assert_positive_semidefinite(kernel.evaluate(theta, X).K)


@given(rows(), st.sampled_from(RADIAL), st.floats(-3, 2), st.integers(0, 2**32 - 1))
def test_compositions_stay_positive_semidefinite_with_inactive_values(X, kind, a, seed):
    rng = np.random.default_rng(seed)
    whole = np.column_stack([X, rng.integers(0, 3, len(X)), rng.random(len(X)), rng.integers(0, 9, len(X))])
    whole[rng.random(len(X)) < 0.2, 3] = np.nan
    kernel = Constant() * kind((0, 1)) * CategoryOverlap((3,)) * LearningCurve(4) + SE((2,)) * TimeDecay(5) * DataSize(
        4
    )
    theta = np.clip(a + rng.standard_normal(len(kernel.parameters)), -3, 3)
    assert_positive_semidefinite(kernel.evaluate(theta, whole).K)


@given(rows(), st.sampled_from(RADIAL))
def test_rows_with_the_same_inactive_columns_are_compared_by_the_others_alone(X, kind):
    X[:, 1] = np.nan
    theta = np.array([-0.5, 0.3, 0.1])
    expected = kind((0, 2)).evaluate(theta[[0, 2]], X).K
    np.testing.assert_allclose(kind((0, 1, 2)).evaluate(theta, X).K, expected, atol=1e-9)


@given(rows(least=2), st.integers(0, 2**32 - 1))
def test_the_order_of_observations_does_not_matter(X, seed):
    rng = np.random.default_rng(seed)
    y, order, queries = rng.standard_normal(len(X)), rng.permutation(len(X)), rng.random((5, 3))
    kernel, theta = Constant() * Matern52((0, 1, 2)), np.log([1.0, 0.3, 0.5, 0.8])
    gp = condition(kernel, theta, X, y, noise=1e-2)
    permuted = condition(kernel, theta, X[order], y[order], noise=1e-2)
    for a, b in zip(gp.joint(queries), permuted.joint(queries), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(gp.log_marginal_likelihood, permuted.log_marginal_likelihood, rtol=1e-9, atol=1e-9)


@settings(max_examples=25)
@given(st.integers(3, 25), st.integers(0, 2**32 - 1))
def test_the_order_of_observations_does_not_matter_to_a_fit(n, seed):
    rng = np.random.default_rng(seed)
    X, queries, order = rng.random((n, 2)), rng.random((5, 2)), rng.permutation(n)
    y = Standardise.of(np.sin(5 * X[:, 0]) + X[:, 1]).apply(np.sin(5 * X[:, 0]) + X[:, 1])
    kernel = Matern52((0, 1))
    mean, permuted = (fit_gp(kernel, X[i], y[i]).mean(queries) for i in (np.arange(n), order))
    np.testing.assert_allclose(mean, permuted, atol=1e-2)  # both searches end within their tolerance of one optimum


@given(rows(least=2), st.integers(0, 2**32 - 1), st.data())
def test_conditioning_in_parts_equals_conditioning_at_once(X, seed, data):
    cut = data.draw(st.integers(0, len(X)))
    y, queries = np.random.default_rng(seed).standard_normal(len(X)), np.random.default_rng(1).random((4, 3))
    kernel, theta = SE((0, 1, 2)), np.log([0.3, 0.5, 0.8])
    once = condition(kernel, theta, X, y, noise=1e-2)
    parts = condition(kernel, theta, X[:cut], y[:cut], noise=1e-2).condition_on(X[cut:], y[cut:], noise=1e-2)
    for a, b in zip(once.joint(queries), parts.joint(queries), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-9)


@settings(max_examples=40)
@given(
    rows(),
    st.lists(st.floats(-1e150, 1e150), min_size=12, max_size=12),
    st.sampled_from([None, 0.0]),
)
def test_no_history_makes_a_fit_raise_or_answer_nonsense(X, values, noise):
    y = np.array(values[: len(X)])
    z = Standardise.of(y).apply(y)
    gp = fit_gp(Constant() * Matern52((0, 1, 2)), X, z, noise=noise)
    mean, variance, *gradients = gp.predict_with_gradient(np.random.default_rng(0).random((6, 3)))
    assert all(np.all(np.isfinite(part)) for part in (mean, variance, *gradients))
    assert np.all(variance > 0)


@given(st.floats(-1e8, 1e8), st.floats(-1e8, 1e8))
def test_log_improvement_grows_with_what_may_be_gained(a, b):
    low, high = np.array([min(a, b)]), np.array([max(a, b)])
    assert log_h(low)[0] <= log_h(high)[0] + 1e-12 * abs(log_h(high)[0])
    assert log_h_and_slope(low)[1][0] >= 0


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1))
def test_a_maximum_is_a_row_of_the_domain(seed):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.random((8, 2)), rng.integers(0, 3, 8)])
    gp = condition(Matern52((0, 1)) * CategoryOverlap((2,)), np.zeros(3), X, rng.standard_normal(8), noise=1e-3)

    class Lowest:
        def __call__(self, X):
            return -gp.mean(X)

        def value_and_gradient(self, X):
            mean, _, gradient, _ = gp.predict_with_gradient(X)
            return -mean, -gradient

    grid = np.linspace(0, 1, 7)
    domain = Domain((None, grid, np.arange(3.0)), frozenset({2}))
    found = maximize(Lowest(), domain, rng=rng, effort=Effort(screened=32, restarts=2))
    assert 0 <= found.x[0] <= 1
    assert found.x[1] in grid
    assert found.x[2] in (0.0, 1.0, 2.0)
