import numpy as np
import pytest

from benchmarks.baselines.bounds import LogHopedGain
from farthing.acquisition.confidence_bound import ConfidenceBound
from farthing.acquisition.expected_improvement import LogExpectedImprovement
from farthing.acquisition.maximize import Domain, Effort, maximize, maximize_in_boxes
from farthing.acquisition.prefix_classes import (
    NEAR,
    ConstantCost,
    NewPrefixes,
    PrefixClass,
    PricedClasses,
    StageCosts,
    maximize_classes,
)
from farthing.models.gp import condition
from farthing.models.kernels import Matern52

RNG = np.random.default_rng(0)
X = RNG.random((10, 3))
GP = condition(Matern52((0, 1, 2)), np.log([0.4, 0.4, 0.4]), X, np.sum((X - 0.4) ** 2, axis=1), noise=1e-4)
IMPROVEMENT = LogExpectedImprovement(GP, float(GP.y.min()))
COSTS = StageCosts([ConstantCost(10.0), ConstantCost(1.0)])
CONTINUOUS = Domain((None,) * 3)
EFFORT = Effort(screened=128, restarts=4, most_calls=40)
FIRST = np.array([True, False, False])


def classes(rows: np.ndarray) -> list[PrefixClass]:
    return [PrefixClass(0, np.zeros(3, dtype=bool), rows), PrefixClass(1, FIRST, rows)]


def found_in(acquisition, domain=CONTINUOUS, rows=X):
    return maximize_classes(acquisition, domain, classes(rows), rng=np.random.default_rng(1), effort=EFFORT)


def test_held_columns_come_from_the_named_source_to_the_bit() -> None:
    fresh, kept = found_in(PricedClasses(IMPROVEMENT, COSTS))
    assert kept.x[0] == X[kept.source, 0]
    assert (fresh.kept, kept.kept) == (0, 1)


def test_the_class_that_keeps_nothing_is_at_least_as_valuable_and_as_good_as_an_ordinary_search() -> None:
    fresh, kept = found_in(PricedClasses(IMPROVEMENT, COSTS, exponent=0.0))
    assert fresh.value >= kept.value
    alone = maximize(IMPROVEMENT, CONTINUOUS, rng=np.random.default_rng(2), offered=X)
    assert fresh.value == pytest.approx(alone.value, abs=1e-3)


def test_the_class_that_keeps_nothing_is_as_valuable_as_any_however_short_its_own_search() -> None:
    hardly = Effort(screened=2, restarts=1, rounds=1, most_calls=1)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        priced = PricedClasses(IMPROVEMENT, COSTS, exponent=0.0)
        fresh, kept = maximize_classes(priced, CONTINUOUS, classes(X), rng=rng, effort=hardly)
        assert fresh.value >= kept.value - 1e-12  # sums over other batches of rows round differently


class Needle:
    """One at a single row, zero elsewhere: no slope leads there, so that only a search that starts there finds it."""

    def __init__(self, at: np.ndarray) -> None:
        self._at = at

    def __call__(self, X: np.ndarray) -> np.ndarray:
        return np.all(self._at == X, axis=1).astype(float)

    def value_and_gradient(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self(X), np.zeros_like(X)


@pytest.mark.parametrize("place", range(NEAR))
def test_a_search_of_classes_starts_from_the_best_rows_seen(place: int) -> None:
    needle = PricedClasses(Needle(X[place]), COSTS, exponent=0.0)
    assert [best.value for best in found_in(needle)] == [1.0, 1.0]


def test_the_best_rows_are_tried_with_every_prefix() -> None:
    row = np.where(FIRST, X[-1], X[0])
    _, kept = found_in(PricedClasses(Needle(row), COSTS, exponent=0.0))
    assert (kept.value, kept.source) == (1.0, len(X) - 1)


def test_a_class_may_be_searched_alone() -> None:
    priced = PricedClasses(IMPROVEMENT, COSTS)
    [kept] = maximize_classes(priced, CONTINUOUS, classes(X)[1:], rng=np.random.default_rng(1), effort=EFFORT)
    assert kept.x[0] == X[kept.source, 0]


def test_the_price_is_that_of_the_class() -> None:
    for best, price in zip(found_in(PricedClasses(IMPROVEMENT, COSTS)), (11.0, 1.0), strict=True):
        assert best.value == pytest.approx(IMPROVEMENT(best.x[None])[0] - np.log(price))


def test_what_is_not_affordable_is_not_offered() -> None:
    fresh, kept = found_in(PricedClasses(IMPROVEMENT, COSTS, limit=5.0))
    assert fresh.value == -np.inf
    assert kept.value > -np.inf


def test_what_costs_exactly_the_limit_is_affordable() -> None:
    priced = PricedClasses(IMPROVEMENT, COSTS, limit=11.0)
    assert all(best.value > -np.inf for best in found_in(priced))
    rows = np.column_stack([X, np.zeros(len(X))])
    np.testing.assert_allclose(priced(rows), priced.value_and_gradient(rows)[0])


@pytest.mark.parametrize("kind", [0.0, 1.0])
def test_gradients_of_priced_classes_are_those_of_differences(kind: float) -> None:
    rows = np.column_stack([RNG.random((5, 3)), np.full(5, kind)])
    priced = PricedClasses(IMPROVEMENT, COSTS, exponent=0.7)
    value, gradient = priced.value_and_gradient(rows)
    np.testing.assert_allclose(value, priced(rows))
    for j in range(3):
        step = 1e-6 * np.eye(4)[j]
        slope = (priced(rows + step) - priced(rows - step)) / 2e-6
        np.testing.assert_allclose(gradient[:, j], slope, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(gradient[:, 3], 0.0)


def test_gradients_of_the_hoped_gain_are_those_of_differences() -> None:
    gain = LogHopedGain(GP, best=float(GP.y.min()), beta=2.0)
    rows = RNG.random((40, 3))
    value, gradient = gain.value_and_gradient(rows)
    hopeful = np.isfinite(value)
    assert hopeful.sum() >= 5
    for j in range(3):
        step = 1e-6 * np.eye(3)[j]
        slope = (gain(rows[hopeful] + step) - gain(rows[hopeful] - step)) / 2e-6
        np.testing.assert_allclose(gradient[hopeful, j], slope, rtol=1e-4, atol=1e-5)


def test_new_prefixes_leave_out_those_that_are_there() -> None:
    grid = np.array([0.25, 0.75])
    domain = Domain((grid, None, None))
    rows = np.where(np.arange(3) == 0, 0.25, X)
    acquisition = NewPrefixes(PricedClasses(IMPROVEMENT, COSTS), [FIRST], [rows])
    fresh, kept = found_in(acquisition, domain, rows)
    assert (fresh.x[0], kept.x[0]) == (0.75, 0.25)
    everything = NewPrefixes(PricedClasses(IMPROVEMENT, COSTS), [FIRST], [np.vstack([rows, 0.75 * np.ones(3)])])
    assert found_in(everything, domain, rows)[0].value == -np.inf


def test_small_classes_are_searched_one_by_one() -> None:
    grid = np.linspace(0.05, 0.95, 4)
    domain = Domain((grid,) * 3)
    rows = domain.rounded(X)
    [fresh, kept] = found_in(PricedClasses(IMPROVEMENT, COSTS, exponent=0.0), domain, rows)
    every = np.stack([axis.ravel() for axis in np.meshgrid(grid, grid, grid)], axis=1)
    assert fresh.value == pytest.approx(IMPROVEMENT(every).max())
    assert kept.value == pytest.approx(IMPROVEMENT(every[np.isin(every[:, 0], rows[:, 0])]).max())


# ------------------------------------------------------------------------------------------------------- boxes

BOUND = ConfidenceBound(GP, 2.0)


def test_every_box_has_its_own_maximum_within_it() -> None:
    lower = np.array([[0.0, 0.0, 0.0], [0.5, 0.0, 0.0], [0.3, 0.2, 0.0]])
    upper = np.array([[1.0, 1.0, 1.0], [1.0, 0.5, 1.0], [0.3, 0.2, 1.0]])
    found = maximize_in_boxes(BOUND, CONTINUOUS, lower, upper, rng=np.random.default_rng(0), offered=X)
    assert (found.x >= lower).all()
    assert (found.x <= upper).all()
    np.testing.assert_allclose(found.value, BOUND(found.x))
    dense = np.random.default_rng(5).random((20_000, 3))
    for low, high, value in zip(lower, upper, found.value, strict=True):
        assert value >= BOUND(low + dense * (high - low)).max() - 1e-3


def test_boxes_of_gridded_columns_hold_values_of_the_grid() -> None:
    codes, grid = np.arange(4.0), np.linspace(0.1, 0.9, 5)
    domain = Domain((codes, grid, None), categories=frozenset({0}))
    lower, upper = np.array([[2.0, 0.3, 0.0]]), np.array([[3.0, 0.5, 1.0]])
    found = maximize_in_boxes(BOUND, domain, lower, upper, rng=np.random.default_rng(0))
    assert found.x[0, 0] in (2.0, 3.0)
    assert found.x[0, 1] in grid[1:3]


@pytest.mark.parametrize("place", [0, 4, 9])
def test_a_search_of_boxes_starts_from_the_best_row_offered(place: int) -> None:
    rng, effort = np.random.default_rng(0), Effort(screened=8, restarts=1)
    lower, upper = np.zeros((2, 3)), np.ones((2, 3))
    found = maximize_in_boxes(Needle(X[place]), CONTINUOUS, lower, upper, rng=rng, offered=X, effort=effort)
    np.testing.assert_array_equal(found.value, 1.0)
