"""Orders of results, models and acquisitions of several objectives and limits."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import farthing as ft
from farthing.acquisition.hypervolume import LogFeasible, LogHypervolumeImprovement, hypervolume, non_dominated, ranks
from farthing.models.gp import condition
from farthing.models.kernels import Constant, Matern52
from farthing.strategies import Randomness
from farthing.strategies.shared.several import Models, chebyshev, fit_many, observe_many, places, reference_of
from farthing.trials import History, Measurement, Problem, State, Suggestion, Trial
from farthing.trials.objectives import Limit, Objective

SQUARE = ft.Space({"x": ft.Float(0, 1), "y": ft.Float(0, 1)})


def problem(constraints: dict[str, Limit] | None = None, *, objectives: str = "ab") -> Problem:
    further = tuple(Objective(name) for name in objectives[1:])
    return Problem(SQUARE, value=objectives[0], further=further, constraints=constraints or {})


def history(aims: Problem, rows: Sequence[tuple[float, float]], values: Sequence[dict[str, float] | None]) -> History:
    return History(aims, [_trial(i, *given) for i, given in enumerate(zip(rows, values, strict=True))])


def _trial(number: int, row: tuple[float, float], values: dict[str, float] | None) -> Trial:
    suggestion = Suggestion({"x": row[0], "y": row[1]})
    if values is None:
        return Trial(number, suggestion, State.FAILED)
    value, others = values["a"], {name: one for name, one in values.items() if name != "a"}
    return Trial(number, suggestion, State.DONE, value=value, measurements=(Measurement(value=value, metrics=others),))


def spread_rows(n: int) -> list[tuple[float, float]]:
    return [(x, y) for x, y in np.random.default_rng(0).random((n, 2)).tolist()]


# ------------------------------------------------------------------------------------------------------- order


def test_what_keeps_the_limits_comes_first_by_rank_and_then_by_room() -> None:
    losses = np.array([[0.0, 4.0], [1.0, 3.0], [1.1, 2.9], [4.0, 0.0], [4.0, 4.0], [-9.0, -9.0], [np.nan, np.nan]])
    excess = np.array([[-1.0], [0.0], [-1.0], [-1.0], [-1.0], [0.1], [np.nan]])
    found = places(losses, excess)
    order = np.argsort(found).tolist()
    assert set(order[:2]) == {0, 3}  # the ends of the front
    assert order[2:4] == [2, 1]  # then the rest of it: the one with more room first
    assert order[4:] == [4, 5, 6]  # dominated, beyond the limit, without a result


def test_a_later_rank_is_ordered_by_its_own_room() -> None:
    losses = np.array([[5.0, 0.0], [1.0, 4.0], [8.0, 0.0], [3.0, 4.0], [5.0, 3.0], [7.0, 1.0], [4.0, 8.0]])
    order = np.argsort(places(losses, np.zeros((7, 0)))).tolist()
    assert order[:2] == [0, 1]  # the front
    assert set(order[2:4]) == {2, 3}  # the ends of the second
    assert order[4:] == [4, 5, 6]  # what has more room on it, the rest of it, the third


def test_beyond_the_limits_comes_first_what_exceeds_them_least_of_all_together() -> None:
    losses = np.array([[0.0, 0.0], [5.0, 5.0], [1.0, 1.0]])
    excess = np.array([[10.0, -1.0], [0.0, 1.0], [4.0, 0.5]])  # shares of the worst: 1, 1 and 0.4 + 0.5
    assert np.argsort(places(losses, excess)).tolist() == [2, 0, 1]


finite = st.floats(-100, 100, width=32)


@given(
    st.integers(1, 3).flatmap(lambda m: arrays(float, st.tuples(st.integers(1, 9), st.just(m)), elements=finite)),
    st.lists(st.sampled_from([0.25, 0.5, 2.0, 8.0]), min_size=3, max_size=3),
    st.randoms(use_true_random=False),
)
def test_ranks_in_order_of_place_never_fall_whatever_the_order_and_the_scale(losses, factors, random) -> None:
    order = random.sample(range(len(losses)), len(losses))
    scaled = (losses * factors[: losses.shape[1]])[order]
    none = np.zeros((len(losses), 0))
    for rows in (losses, scaled):
        by_place = ranks(rows)[np.argsort(places(rows, none))]
        assert np.all(np.diff(by_place) >= 0)
    front = non_dominated(losses)
    np.testing.assert_array_equal(places(scaled, none) < front.sum(), front[order])


def test_weights_of_the_scalarised_form_lead_everywhere_on_the_front() -> None:
    angles = np.linspace(0.0, np.pi / 2, 21)
    front = 1.0 - np.stack([np.cos(angles), np.sin(angles)], axis=1)
    losses = np.concatenate([front, front + 0.3])
    chosen = {int(np.argmin(chebyshev(losses, np.random.default_rng(seed)))) for seed in range(200)}
    assert max(chosen) < len(front), "a dominated point was the best"
    assert len(chosen) > 10


@given(
    arrays(float, st.tuples(st.integers(2, 8), st.integers(2, 3)), elements=finite),
    st.lists(st.sampled_from([0.25, 0.5, 2.0, 8.0]), min_size=3, max_size=3),
)
def test_the_reference_is_beyond_the_front_and_scales_with_the_losses(losses, factors) -> None:
    scale = np.array(factors[: losses.shape[1]])
    front = losses[non_dominated(losses)]
    found = reference_of(front, losses)
    assert np.all(found > front.max(axis=0))
    if np.all(np.ptp(losses, axis=0) > 0.0):
        again = reference_of((losses * scale)[non_dominated(losses)], losses * scale)
        np.testing.assert_allclose(again, found * scale, rtol=1e-12, atol=1e-12)


# ------------------------------------------------------------------------------------------------------- models


def process(values: Sequence[float], X: np.ndarray, *, noise: float = 1e-4):
    kernel, theta = Constant() * Matern52((0, 1)), np.log([1.0, 0.5, 0.5])
    return condition(kernel, theta, X, np.array(values), noise=noise)


def test_a_lucky_measurement_makes_no_point_of_the_front() -> None:
    """Nine results around (1, 1), one of them far better by luck: the front is near their mean."""
    X = np.full((9, 2), 0.5)
    lucky = np.array([1.2, 0.8, 1.1, -3.0, 0.9, 1.0, 1.1, 0.9, 1.0])
    gps = (process(lucky, X, noise=1.0), process(lucky[::-1], X, noise=1.0))
    models = Models(gps, (), np.full(2, np.inf), X)
    [improvement, *_] = models.improvement().factors
    assert isinstance(improvement, LogHypervolumeImprovement)
    edges = np.concatenate([side.edges for side in improvement.boxes.sides])
    assert edges.min() == pytest.approx(gps[0].mean(X)[0])
    assert edges.min() > 0.3  # the luck was −3


@pytest.mark.parametrize("limited", [False, True])
def test_the_acquisition_is_the_expected_feasible_improvement(limited: bool) -> None:
    """Against draws of the objectives and the limited quantity, which are independent."""
    rng = np.random.default_rng(3)
    X = rng.random((5, 2))
    gps = tuple(process(np.sin(4 * X[:, 0] + 2 * j) + X[:, 1] * (1 - 2 * j), X, noise=0.01) for j in range(2))
    limits = ((process(X[:, 0] - X[:, 1], X), 0.1),) if limited else ()
    models = Models(gps, limits, np.full(2, np.inf), X)
    means = np.stack([gp.mean(X) for gp in gps], axis=1)
    keeps = limits[0][0].mean(X) <= 0.1 if limited else np.ones(5, dtype=bool)
    front = means[keeps][non_dominated(means[keeps])]
    reference = reference_of(front, means)
    before = hypervolume(front, reference)
    at = rng.random((4, 2))
    found = np.exp(models.improvement()(at))
    for i, x in enumerate(at):
        drawn = [
            mean + np.sqrt(variance) * rng.standard_normal(4000)
            for mean, variance in (gp.predict(x[None]) for gp in (*gps, *(gp for gp, _ in limits)))
        ]
        rows = np.stack(drawn[:2], axis=1)
        gains = np.array([hypervolume(np.vstack([front, row]), reference) - before for row in rows])
        if limited:
            gains = gains * (drawn[2] <= 0.1)
        assert np.count_nonzero(gains) > 50
        assert abs(found[i] - gains.mean()) < 4.5 * gains.std() / np.sqrt(gains.size)


def test_the_gradient_of_improvement_and_feasibility_equals_differences() -> None:
    rng = np.random.default_rng(4)
    X = rng.random((10, 2))
    gps = tuple(process(np.sin(4 * X[:, 0] + j) + X[:, 1], X) for j in range(3))
    models = Models(gps, ((process(X[:, 0] - X[:, 1], X), 0.1),), np.full(3, np.inf), X)
    acquisition, at = models.improvement(), rng.random((5, 2))
    value, gradient = acquisition.value_and_gradient(at)
    np.testing.assert_allclose(value, acquisition(at), rtol=1e-12)
    for j in range(2):
        step = 1e-6 * np.eye(2)[j]
        expected = (acquisition(at + step) - acquisition(at - step)) / 2e-6
        np.testing.assert_allclose(gradient[:, j], expected, rtol=1e-5, atol=1e-6)


def test_before_anything_keeps_the_limits_only_their_probability_counts() -> None:
    X = np.random.default_rng(0).random((6, 2))
    limit = (process(2.0 + X[:, 0], X), 0.0)
    models = Models((process(X[:, 1], X), process(X[:, 0], X)), (limit,), np.full(2, np.inf), X)
    np.testing.assert_array_equal(models.improvement()(X), LogFeasible(*limit)(X))


def test_a_limit_on_an_objective_bounds_its_improvement() -> None:
    """Beyond the limit nothing counts: neither what was seen there, nor what is expected there."""
    rows = spread_rows(14)
    values = [{"a": x, "b": 1.0 - x + y} for x, y in rows]
    aims = problem({"b": ft.AtMost(0.5)})
    models = _models(history(aims, rows, values))
    assert not models.limits, "a limit on an objective needs no model of its own"
    within, beyond = np.array([[0.55, 0.0]]), np.array([[0.3, 0.0]])  # b is 0.45 and 0.7, both better than all seen
    assert models.improvement()(within)[0] > models.improvement()(beyond)[0] + 5.0
    free = _models(history(problem(), rows, values))
    assert free.improvement()(within)[0] < free.improvement()(beyond)[0] + 5.0


def _models(past: History) -> Models:
    return fit_many(past, observe_many(past), Randomness(0)).models


def test_a_limit_on_the_good_side_of_an_objective_is_modelled_as_any_other() -> None:
    rows = spread_rows(10)
    past = history(problem({"b": ft.AtLeast(0.5)}), rows, [{"a": x, "b": y} for x, y in rows])
    models = _models(past)
    assert len(models.limits) == 1
    assert np.all(np.isinf(models.most))
    low, high = rows_of([(0.5, 0.1)]), rows_of([(0.5, 0.9)])
    assert LogFeasible(*models.limits[0])(low)[0] < -3.0 < LogFeasible(*models.limits[0])(high)[0]
    assert models.objectives[1].mean(low)[0] < models.objectives[1].mean(high)[0], "the objective is still minimised"


def test_what_lies_beyond_the_few_that_keep_a_limit_is_still_looked_for() -> None:
    """Those that keep it are close together; the rest shows how far the objectives reach."""
    rows = [*((x, 0.2) for x in (0.46, 0.5, 0.54)), *((x, 0.9) for x in np.linspace(0.0, 1.0, 12))]
    values = [{"a": x, "b": 1.0 - x, "memory": y} for x, y in rows]
    models = _models(history(problem({"memory": ft.AtMost(0.5)}), rows, values))
    left, right, between = models.improvement()(rows_of([(0.05, 0.2), (0.95, 0.2), (0.48, 0.2)]))
    assert min(left, right) > between


def test_where_trials_fail_is_learnt_if_success_is_asked_for() -> None:
    rows = spread_rows(24)
    values = [None if x > 0.6 else {"a": y, "b": 1.0 - y} for x, y in rows]
    models = _models(history(problem({"runs": ft.Succeeds()}), rows, values))
    assert len(models.limits) == 1
    good, bad = LogFeasible(*models.limits[0])(np.array([[0.2, 0.5], [0.9, 0.5]]))
    assert np.exp(good) > 0.9
    assert np.exp(bad) < 0.1


def test_a_failure_counts_as_the_worst_result_unless_success_is_asked_for() -> None:
    rows = spread_rows(8)
    values = [None, *({"a": x, "b": 1.0 - x} for x, _ in rows[1:])]
    seen = observe_many(history(problem(), rows, values))
    np.testing.assert_array_equal(seen.losses[0], seen.losses[1:].max(axis=0))
    assert seen.loss[0] == seen.loss.max()
    assert not _models(history(problem(), rows, values)).limits


def test_objectives_are_fitted_again_as_results_come_though_failures_are_modelled_too() -> None:
    """The model of failures has more rows, and is fitted every time: it must not say when the others were fitted."""
    rows = spread_rows(30)
    values = [None if i % 2 else {"a": x, "b": 1.0 - x + y} for i, (x, y) in enumerate(rows)]
    past = history(problem({"runs": ft.Succeeds()}), rows, values)
    fitted = fit_many(past, observe_many(past), Randomness(0))
    assert fitted.note()["fitted_on"] == 15
    assert {"theta", "theta b", "theta failure"} <= fitted.note().keys()


def test_more_than_three_objectives_are_joined_by_weights_that_change() -> None:
    rows = spread_rows(10)
    aims = problem(objectives="abcd")
    values = [{"a": x, "b": y, "c": 1.0 - x, "d": 1.0 - y} for x, y in rows]
    seen = observe_many(history(aims, rows, values))
    first = fit_many(history(aims, rows, values), seen, Randomness(0))
    other = fit_many(history(aims, rows, values), seen, Randomness(1))
    assert len(first.models.objectives) == 1
    assert not np.array_equal(first.models.objectives[0].y, other.models.objectives[0].y)
    assert first.predicted(rows_of(rows)[0], aims) == {}


def test_a_limit_on_one_of_many_objectives_is_kept_too() -> None:
    """The one loss that they are joined to has no bound for it."""
    rows = spread_rows(10)
    aims = problem({"a": ft.AtMost(0.5)}, objectives="abcd")
    past = history(aims, rows, [{"a": x, "b": y, "c": 1.0 - x, "d": 1.0 - y} for x, y in rows])
    fitted = fit_many(past, observe_many(past), Randomness(0))
    chance = LogFeasible(*fitted.models.limits[0])(rows_of([(0.1, 0.5), (0.9, 0.5)]))
    assert chance[1] < -3.0 < chance[0]
    assert fitted.predicted(rows_of(rows)[0], aims) == {}, "a model of the excess predicts no value"


def rows_of(rows: Sequence[tuple[float, float]]) -> np.ndarray:
    return np.array(rows)
