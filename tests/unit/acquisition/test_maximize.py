from dataclasses import dataclass, field

import numpy as np
import pytest

from farthing.acquisition.acquisition import Unvisited, select_batch
from farthing.acquisition.expected_improvement import LogExpectedImprovement
from farthing.acquisition.maximize import Domain, Effort, maximize, perturbed, sobol
from farthing.models.gp import condition
from farthing.models.kernels import CategoryOverlap, Matern52


@dataclass(frozen=True)
class Hill:
    """A smooth hill per category in the last column; inactive (NaN) columns count as at the top."""

    top: np.ndarray
    bonus: np.ndarray

    def __call__(self, X):
        return self.value_and_gradient(X)[0]

    def value_and_gradient(self, X):
        offset = np.nan_to_num(X[:, :-1] - self.top)
        gradient = np.concatenate([-2 * offset, np.zeros((X.shape[0], 1))], axis=1)
        return self.bonus[X[:, -1].astype(int)] - np.sum(offset**2, axis=1), gradient


CATEGORIES = np.arange(3.0)
MIXED = Domain(grids=(None, np.linspace(0, 1, 5), np.linspace(0, 1, 101), CATEGORIES), categories=frozenset({3}))
HILL = Hill(np.array([0.314, 0.31, 0.314]), np.array([0.0, 1.0, 0.5]))


def test_finds_the_best_of_a_mixed_space_on_its_grids():
    found = maximize(HILL, MIXED, rng=np.random.default_rng(0))
    np.testing.assert_allclose(found.x, [0.314, 0.25, 0.31, 1.0], atol=1e-6)
    assert found.value == pytest.approx(HILL(found.x[None])[0])


def test_hops_reach_what_screening_and_climbing_missed():
    for seed in range(8):  # two points are screened, seldom with the best category among them
        found = maximize(HILL, MIXED, rng=np.random.default_rng(seed), effort=Effort(screened=2, restarts=1))
        np.testing.assert_allclose(found.x, [0.314, 0.25, 0.31, 1.0], atol=1e-6)


def test_a_single_search_starts_from_what_is_offered_too():
    effort = Effort(screened=8, restarts=1)
    found = maximize(
        HILL, MIXED, rng=np.random.default_rng(0), offered=np.array([[0.3, 0.25, 0.3, 1.0]]), effort=effort
    )
    np.testing.assert_allclose(found.x, [0.314, 0.25, 0.31, 1.0], atol=1e-6)


@dataclass
class Counted:
    """A flat function that remembers the rows it was asked for."""

    asked: list[np.ndarray] = field(default_factory=list)

    def __call__(self, X):
        self.asked.append(X)
        return -np.arange(len(X), dtype=float)

    def value_and_gradient(self, X):
        self.asked.append(X)
        return np.zeros(len(X)), np.zeros_like(X)


def test_half_of_the_searches_start_near_what_is_offered_and_half_elsewhere():
    counted, effort = Counted(), Effort(screened=16, restarts=6, rounds=1)
    maximize(counted, Domain((None,) * 2), rng=np.random.default_rng(0), offered=np.full((1, 2), 0.5), effort=effort)
    near, spread, climbed = counted.asked[:3]
    assert (len(near), len(spread), len(climbed)) == (1 + 16 // 4, 16, 6)
    np.testing.assert_array_equal(climbed, np.concatenate([near[:3], spread[:3]]))


@pytest.mark.parametrize(("row", "expected"), [([0.25], -np.inf), ([0.5], 1.0)])
def test_a_climb_sees_visited_rows_as_screening_does(row, expected):
    class One:
        def __call__(self, X):
            return np.ones(len(X))

        def value_and_gradient(self, X):
            return np.ones(len(X)), np.zeros_like(X)

    function, X = Unvisited(One(), np.array([[0.25]])), np.array([row])
    assert function(X) == function.value_and_gradient(X)[0] == expected


def neighbours(u, j, *, lower=0.0, upper=2.0):
    """The values of column j in the rows that differ from u in it."""
    rows = MIXED.neighbours(np.array(u), np.full(4, lower), np.full(4, upper))
    return sorted(rows[rows[:, j] != u[j], j].tolist())


def test_neighbours_are_powers_of_two_steps_away_and_both_ends_are_among_them():
    assert neighbours([0.3, 0.25, 0.0, 1.0], 1) == [0.0, 0.5, 0.75]
    assert neighbours([0.3, 1.0, 0.0, 1.0], 1) == [0.0, 0.5, 0.75]
    assert neighbours([0.3, 0.0, 0.0, 1.0], 1) == [0.25, 0.5, 1.0]
    np.testing.assert_allclose(neighbours([0.3, 0.5, 0.0, 1.0], 2), np.array([1, 2, 4, 8, 16, 32, 64]) / 100)


def test_every_other_category_is_a_neighbour():
    assert neighbours([0.3, 0.5, 0.0, 1.0], 3) == [0.0, 2.0]
    assert neighbours([0.3, 0.5, 0.0, 0.0], 3) == [1.0, 2.0]


def test_neighbours_stay_within_bounds():
    assert neighbours([0.3, 0.5, 0.0, 1.0], 1, lower=0.25, upper=0.5) == [0.25]


def test_the_same_generator_state_gives_the_same_bits():
    gp = condition(Matern52((0, 1)), np.zeros(2), np.random.default_rng(0).random((9, 2)), np.arange(9.0), noise=1e-3)
    acquisition, domain = LogExpectedImprovement(gp, 0.0), Domain((None, None))
    first, second = (maximize(acquisition, domain, rng=np.random.default_rng(5)) for _ in range(2))
    np.testing.assert_array_equal(first.x, second.x)
    assert first.value == second.value


def test_inactive_columns_are_nan_in_what_is_evaluated_and_returned():
    seen = []

    def snap(U):
        X = U.copy()
        X[X[:, 3] != 1.0, 0] = np.nan
        seen.append(X)
        return X

    domain = Domain(MIXED.grids, MIXED.categories, snap)
    found = maximize(Hill(HILL.top, np.array([5.0, 0.0, 0.0])), domain, rng=np.random.default_rng(0))
    assert np.isnan(found.x[0])
    np.testing.assert_allclose(found.x[1:], [0.25, 0.31, 0.0], atol=1e-6)
    assert all(np.all(np.isnan(X[X[:, 3] != 1.0, 0])) for X in seen)


def test_offered_points_are_never_lost():
    """A needle that no screening would find."""

    class Needle:
        def __call__(self, X):
            return np.exp(-1e6 * np.sum((X - 0.123) ** 2, axis=1))

        def value_and_gradient(self, X):
            value = self(X)
            return value, -2e6 * (X - 0.123) * value[:, None]

    offered = np.full((1, 4), 0.123)
    found = maximize(Needle(), Domain((None,) * 4), rng=np.random.default_rng(0), offered=offered)
    assert found.value == pytest.approx(1.0)


def test_offered_rows_may_have_inactive_columns():
    offered = np.array([[np.nan, 0.25, 0.3, 1.0]])
    found = maximize(HILL, MIXED, rng=np.random.default_rng(0), offered=offered)
    assert np.all(np.isfinite(found.x))


def test_a_wholly_discrete_space_is_searched_by_hops():
    domain = Domain((np.linspace(0, 1, 1001), np.linspace(0, 1, 3), np.arange(4.0)), frozenset({2}))
    hill = Hill(np.array([0.777, 0.9]), np.array([0.0, 0.0, 0.0, 1.0]))
    for seed in range(8):
        found = maximize(hill, domain, rng=np.random.default_rng(seed), effort=Effort(screened=2, restarts=1))
        np.testing.assert_allclose(found.x, [0.777, 1.0, 3.0], atol=1e-9)


def test_climbs_to_active_bounds():
    hill = Hill(np.array([1.5, -0.5]), np.zeros(1))
    found = maximize(hill, Domain((None, None, np.zeros(1)), frozenset({2})), rng=np.random.default_rng(0))
    np.testing.assert_array_equal(found.x, [1.0, 0.0, 0.0])


def test_screening_covers_the_cube_and_perturbations_stay_in_the_domain():
    rng = np.random.default_rng(0)
    assert [len(sobol(3, count, rng=rng)) for count in (1, 2, 3, 100)] == [2, 2, 4, 128]
    rows = perturbed(MIXED, np.array([[0.99, 0.25, 0.5, 2.0]]), 200, rng=rng)
    assert rows[:, 0].max() == 1.0
    assert np.mean(rows[:, 0] == 0.99) == pytest.approx(0.5, abs=0.15)  # four deviations of 200 coins
    np.testing.assert_array_equal(rows, MIXED.rounded(rows))
    assert set(rows[:, 3]) == {0.0, 1.0, 2.0}


def test_a_batch_spreads_and_avoids_what_is_pending():
    rng = np.random.default_rng(0)
    X = rng.random((10, 2))
    y = np.sum((X - 0.5) ** 2, axis=1)
    gp = condition(Matern52((0, 1)), np.log([0.3, 0.3]), X, (y - y.mean()) / y.std(), noise=1e-4)
    domain = Domain((None, None))

    def choose(count, pending):
        return select_batch(
            gp,
            count,
            pending=pending,
            acquisition=lambda gp: LogExpectedImprovement(gp, float(gp.y.min())),
            maximizer=lambda acquisition: maximize(acquisition, domain, rng=np.random.default_rng(1)).x,
        )

    batch = choose(3, np.zeros((0, 2)))
    gaps = [np.linalg.norm(a - b) for i, a in enumerate(batch) for b in batch[:i]]
    assert min(gaps) > 0.02
    np.testing.assert_allclose(choose(1, batch[:2])[0], batch[2], atol=1e-3)


def test_a_category_without_gradient_is_still_chosen_by_the_model():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.random(30), rng.integers(0, 3, 30)])
    y = (X[:, 0] - 0.6) ** 2 + np.array([0.5, 0.0, 1.0])[X[:, 1].astype(int)]
    gp = condition(Matern52((0,)) * CategoryOverlap((1,)), np.log([0.5, 1.0]), X, y - y.mean(), noise=1e-4)
    acquisition = LogExpectedImprovement(gp, float(gp.y.min()))
    found = maximize(acquisition, Domain((None, CATEGORIES), frozenset({1})), rng=rng)
    assert found.x[1] == 1.0
    assert found.x[0] == pytest.approx(0.6, abs=0.15)
