import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from farthing.acquisition.expected_improvement import log_expected_improvement, log_expected_improvement_and_slopes
from farthing.acquisition.hypervolume import (
    LogFeasible,
    LogHypervolumeImprovement,
    boxes_of,
    crowding,
    hypervolume,
    log_hypervolume_improvement,
    log_hypervolume_improvement_and_slopes,
    non_dominated,
    ranks,
)
from farthing.errors import InvalidArgument
from farthing.models.gp import condition
from farthing.models.kernels import Constant, Matern52


def rows_of(m, *, least=0, most=9):
    """Few distinct numbers, so that ties and equal rows are common."""
    whole = st.integers(-3, 5).map(float)
    rows = st.lists(st.lists(whole, min_size=m, max_size=m), min_size=least, max_size=most)
    return rows.map(lambda rows: np.array(rows).reshape(-1, m))


def fronts(most_objectives=3):
    """Rows that need not be a front, and a reference that some of them may be beyond."""
    return st.integers(1, most_objectives).flatmap(
        lambda m: st.tuples(rows_of(m), rows_of(m, least=1, most=1).map(lambda rows: rows[0]))
    )


def round_front(n, m, *, seed=0):
    """n rows on a part of a sphere, none of which dominates another."""
    directions = np.abs(np.random.default_rng(seed).standard_normal((n, m)))
    return 1.0 - directions / np.linalg.norm(directions, axis=1, keepdims=True)


def cells_of(front, reference):
    """Middles and volumes of all cells below the reference between the coordinates of the rows, from −9 on."""
    edges = [np.unique([-9.0, *front[front[:, j] < reference[j], j], reference[j]]) for j in range(reference.size)]
    middles = np.array(list(itertools.product(*((e[1:] + e[:-1]) / 2 for e in edges))))
    volumes = np.array([np.prod(sizes) for sizes in itertools.product(*(np.diff(e) for e in edges))])
    return middles, volumes, np.any(np.all(front <= middles[:, None], axis=2), axis=1)


def improvement(boxes, losses):
    """HVI of each row, from the boxes."""
    lengths = np.maximum(boxes.upper - np.maximum(boxes.lower, losses[:, None]), 0.0)
    return np.sum(np.prod(lengths, axis=2), axis=1)


def dominates(a, b):
    return bool(np.all(a <= b) and np.any(a < b))


# ------------------------------------------------------------------------------------------------------- fronts


@given(st.integers(1, 4).flatmap(rows_of))
def test_ranks_are_those_of_peeling(losses):
    expected, left = np.full(losses.shape[0], -1), set(range(losses.shape[0]))
    for rank in itertools.count():
        front = {i for i in left if not any(dominates(losses[j], losses[i]) for j in left)}
        expected[list(front)] = rank
        left -= front
        if not left:
            break
    np.testing.assert_array_equal(ranks(losses), expected)
    np.testing.assert_array_equal(non_dominated(losses), expected == 0)


@given(st.integers(1, 4).flatmap(rows_of), st.randoms(use_true_random=False))
def test_ranks_depend_neither_on_the_order_of_rows_nor_on_the_scale_of_a_loss(losses, random):
    order = random.sample(range(losses.shape[0]), losses.shape[0])
    scaled = np.stack([np.exp(losses[:, 0]), *(losses[:, 1:] ** 3).T], axis=1)[order]
    np.testing.assert_array_equal(ranks(scaled), ranks(losses)[order])
    np.testing.assert_array_equal(non_dominated(scaled), non_dominated(losses)[order])


def test_a_loss_without_bound_is_dominated_and_alone_is_the_front():
    assert non_dominated(np.array([[0.0, np.inf], [1.0, np.inf]])).tolist() == [True, False]
    assert non_dominated(np.array([[np.inf, np.inf]])).tolist() == [True]


def test_crowding_is_the_room_between_both_neighbours():
    losses = np.array([[0.0, 10.0], [1.0, 6.0], [4.0, 5.0], [8.0, 0.0]])
    expected = [np.inf, 4 / 8 + 5 / 10, 7 / 8 + 6 / 10, np.inf]
    np.testing.assert_allclose(crowding(losses), expected)
    np.testing.assert_allclose(crowding(losses[::-1]), expected[::-1])
    np.testing.assert_allclose(crowding(losses * [3.0, 0.1]), expected)


def test_a_third_equal_row_has_no_room():
    losses = np.array([[0.0, 3.0], [1.0, 1.0], [1.0, 1.0], [1.0, 1.0], [3.0, 0.0]])
    room = crowding(losses)
    assert sorted(room[1:4] > 0.0) == [False, True, True]
    assert np.all(np.isfinite(room[1:4]))


def test_a_loss_that_is_equal_in_all_rows_does_not_count_for_crowding():
    column = np.array([0.0, 1.0, 4.0])
    found = crowding(np.stack([column, np.full(3, 7.0)], axis=1))
    np.testing.assert_allclose(found, crowding(column[:, None]))


# ------------------------------------------------------------------------------------------------------- volumes


@given(fronts())
def test_the_boxes_have_every_free_cell_once_and_no_dominated_one(given_front):
    front, reference = given_front
    boxes = boxes_of(front, reference)
    middles, _, is_dominated = cells_of(front, reference)
    within = np.all((boxes.lower <= middles[:, None]) & (middles[:, None] < boxes.upper), axis=2)
    np.testing.assert_array_equal(np.sum(within, axis=1), np.where(is_dominated, 0, 1))
    assert np.all(boxes.lower < boxes.upper)
    for j, edges in enumerate(np.concatenate([boxes.lower, boxes.upper]).T):
        assert set(edges) <= {-np.inf, reference[j], *front[:, j]}  # no cell is cut


@given(fronts())
def test_the_improvement_from_boxes_is_the_difference_of_hypervolumes(given_front):
    front, reference = given_front
    boxes, before = boxes_of(front, reference), hypervolume(front, reference)
    losses = np.random.default_rng(0).uniform(-4.0, 6.0, (20, reference.size))
    expected = [hypervolume(np.concatenate([front, y[None]]), reference) - before for y in losses]
    np.testing.assert_allclose(improvement(boxes, losses), expected, atol=1e-9)  # volumes are up to 9³


@pytest.mark.parametrize(("m", "most"), [(1, 1), (2, 31), (3, 61)])
def test_a_front_of_thirty_makes_few_boxes(m, most):
    assert boxes_of(round_front(30, m), np.ones(m)).lower.shape[0] <= most


@given(fronts(most_objectives=4))
def test_the_hypervolume_is_the_sum_of_dominated_cells(given_front):
    front, reference = given_front
    _, volumes, is_dominated = cells_of(front, reference)
    assert hypervolume(front, reference) == pytest.approx(np.sum(volumes[is_dominated]), rel=1e-12)


@given(fronts(most_objectives=4), st.randoms(use_true_random=False))
def test_the_hypervolume_depends_neither_on_the_order_of_rows_nor_on_that_of_losses(given_front, random):
    front, reference = given_front
    order = random.sample(range(front.shape[0]), front.shape[0])
    columns = random.sample(range(reference.size), reference.size)
    found = hypervolume(front[order][:, columns], reference[columns])
    assert found == pytest.approx(hypervolume(front, reference), rel=1e-12)


def test_a_small_hypervolume_below_a_far_corner_keeps_its_digits():
    thin = 1e-9
    found = hypervolume(np.array([[0.0, 1.0 - thin], [1.0 - thin, 0.0]]), np.ones(2))
    assert found == pytest.approx(2 * thin - thin**2, rel=1e-7)  # the coordinates themselves have 7 digits of `thin`
    assert found == (1 - (1 - thin)) * (1 - thin) + (1 - (1 - thin))


def test_boxes_of_more_than_three_objectives_are_refused():
    with pytest.raises(InvalidArgument, match=r"1 to 3 objectives, got 4\. Turn some into constraints"):
        boxes_of(np.zeros((1, 4)), np.ones(4))


# ------------------------------------------------------------------------------------------- expected improvement


def beliefs(m, N, *, seed=1):
    rng = np.random.default_rng(seed)
    return rng.uniform(0.0, 1.0, (m, N)), rng.uniform(0.05, 0.5, (m, N)) ** 2


@pytest.mark.parametrize("m", [2, 3])
def test_the_expected_improvement_is_the_mean_of_draws(m):
    boxes = boxes_of(round_front(12, m), np.full(m, 1.1))
    mean, variance = beliefs(m, 6)
    exact = np.exp(log_hypervolume_improvement(mean, variance, boxes))
    normals = np.random.default_rng(2).standard_normal((40_000, m))
    for i in range(6):
        gains = improvement(boxes, mean[:, i] + np.sqrt(variance[:, i]) * normals)
        assert abs(exact[i] - gains.mean()) < 4.5 * gains.std() / np.sqrt(gains.size)


@pytest.mark.parametrize("best", [0.4, -30.0, -1e4])
def test_with_one_loss_it_is_the_expected_improvement(best):
    boxes = boxes_of(np.array([[best], [best + 0.5], [3.0]]), np.array([2.0]))
    mean, variance = beliefs(1, 7)
    found = log_hypervolume_improvement_and_slopes(mean, variance, boxes)
    expected = log_expected_improvement_and_slopes(mean[0], variance[0], best)
    np.testing.assert_allclose(found[0], log_expected_improvement(mean[0], variance[0], best), rtol=1e-13)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours.reshape(-1), theirs, rtol=1e-12)


def test_without_a_front_it_is_the_product_of_improvements_below_the_reference():
    reference = np.array([0.3, -200.0, 1.0])
    mean, variance = beliefs(3, 5)
    found = log_hypervolume_improvement(mean, variance, boxes_of(np.zeros((0, 3)), reference))
    expected = log_expected_improvement(mean, variance, reference[:, None]).sum(axis=0)
    np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize("m", [2, 3])
@pytest.mark.parametrize("shift", [-1.0, 0.0, 1.5, 60.0])
def test_slopes_equal_central_differences(m, shift):
    """A shift of −1 puts the means below the front, where single boxes gain less with more variance."""
    boxes = boxes_of(round_front(9, m), np.full(m, 1.1))
    mean, variance = beliefs(m, 8)
    mean = mean + shift
    value, by_mean, by_variance = log_hypervolume_improvement_and_slopes(mean, variance, boxes)
    np.testing.assert_array_equal(value, log_hypervolume_improvement(mean, variance, boxes))
    assert np.all(by_mean < 0.0)
    assert np.all(by_variance >= -1e-12)  # HVI is convex in each loss; the bound is for rounding
    for j in range(m):
        step = 1e-5 * np.eye(m)[j][:, None] * variance
        for slope, ahead, behind in (
            (by_mean, (mean + step, variance), (mean - step, variance)),
            (by_variance, (mean, variance + step), (mean, variance - step)),
        ):
            difference = log_hypervolume_improvement(*ahead, boxes) - log_hypervolume_improvement(*behind, boxes)
            expected = difference / (2 * step[j])
            np.testing.assert_allclose(slope[j], expected, rtol=1e-5, atol=1e-6)


def test_rows_almost_equal_improve_like_one():
    """Δ of the box between them is lost in rounding."""
    front, reference = round_front(5, 2), np.full(2, 1.1)
    near = np.concatenate([front, front + np.array([1e-16, -1e-16]), front + np.array([-1e-14, 1e-14])])
    assert boxes_of(near, reference).lower.shape[0] > 6
    mean, variance = beliefs(2, 9)
    found = log_hypervolume_improvement_and_slopes(mean, variance, boxes_of(near, reference))
    expected = log_hypervolume_improvement_and_slopes(mean, variance, boxes_of(front, reference))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


@given(fronts(), st.randoms(use_true_random=False))
def test_the_expected_improvement_depends_on_the_front_alone(given_front, random):
    """Not on the order of rows, nor on dominated rows, nor on the order of losses."""
    front, reference = given_front
    order = random.sample(range(front.shape[0]), front.shape[0])
    columns = random.sample(range(reference.size), reference.size)
    only = front[order][non_dominated(front[order])]
    mean, variance = beliefs(reference.size, 4)
    found = log_hypervolume_improvement(
        mean[columns], variance[columns], boxes_of(only[:, columns], reference[columns])
    )
    expected = log_hypervolume_improvement(mean, variance, boxes_of(front, reference))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def processes(m):
    rng = np.random.default_rng(0)
    X = rng.random((12, 3))
    X[:4, 2] = np.nan
    kernel, theta = Constant() * Matern52((0, 1, 2)), np.log([1.0, 0.4, 0.6, 0.9])
    return tuple(condition(kernel, theta, X, np.sin(5 * X[:, 0] + 2 * j) + X[:, 1], noise=1e-3) for j in range(m))


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("shift", [0.0, 3.0, 100.0])
def test_the_gradient_in_rows_equals_central_differences(m, shift):
    front = round_front(6, m) - shift
    acquisition = LogHypervolumeImprovement(processes(m), boxes_of(front, np.full(m, 1.5 - shift)))
    check_gradient(acquisition)


def check_gradient(acquisition):
    X = np.random.default_rng(1).random((6, 3))
    X[4:, 2] = np.nan
    value, gradient = acquisition.value_and_gradient(X)
    np.testing.assert_allclose(value, acquisition(X), rtol=1e-9)
    for j in range(2):
        step = 1e-6 * np.eye(3)[j]
        expected = (acquisition(X + step) - acquisition(X - step)) / 2e-6
        np.testing.assert_allclose(gradient[:, j], expected, rtol=1e-5, atol=1e-6)
    assert np.all(gradient[4:, 2] == 0.0)  # inactive
    assert np.all(gradient[:4, 2] != 0.0)


@pytest.mark.parametrize("m", [2, 3])
def test_far_from_the_front_value_and_gradient_are_finite(m):
    gps = processes(m)
    for shift, at_most in ((100.0, -1e3), (1e5, -1e8)):
        front = round_front(30, m) - shift
        acquisition = LogHypervolumeImprovement(gps, boxes_of(front, np.full(m, 1.5 - shift)))
        value, gradient = acquisition.value_and_gradient(np.random.default_rng(1).random((6, 3)))
        assert np.all(np.isfinite(value))
        assert np.all(value < at_most)
        assert np.all(np.isfinite(gradient))
        assert np.all(np.any(gradient != 0.0, axis=1))


# ------------------------------------------------------------------------------------------------------- constraints


@pytest.mark.parametrize("bound", [0.3, -4.0, 200.0])
def test_log_feasible_is_the_probability_to_be_at_most_the_bound(bound):
    (gp,) = processes(1)
    X = np.random.default_rng(1).random((6, 3))
    mean, variance = gp.predict(X)
    np.testing.assert_allclose(LogFeasible(gp, bound)(X), norm.logcdf(bound, mean, np.sqrt(variance)), rtol=1e-12)


@pytest.mark.parametrize("bound", [0.3, -4.0, -1e2])
def test_the_gradient_of_log_feasible_equals_central_differences(bound):
    (gp,) = processes(1)
    check_gradient(LogFeasible(gp, bound))


def test_log_feasible_is_finite_in_both_tails():
    (gp,) = processes(1)
    X = np.random.default_rng(1).random((6, 3))
    for bound in (-1e6, 1e6):
        value, gradient = LogFeasible(gp, bound).value_and_gradient(X)
        assert np.all(np.isfinite(value))
        assert np.all(np.isfinite(gradient))
        assert np.all((value < -1e10) if bound < 0 else (value == 0.0))
