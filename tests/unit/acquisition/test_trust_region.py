"""Searching near one row, and holding columns."""

import numpy as np

from farthing.acquisition.acquisition import FixedFeatures, with_columns
from farthing.acquisition.confidence_bound import ConfidenceBound
from farthing.acquisition.maximize import Domain, Effort, TrustRegion, maximize_in_trust_region
from farthing.models.fidelity_kernels import TimeDecay
from farthing.models.gp import GP, condition
from farthing.models.kernels import SE
from farthing.models.linalg import Array

EFFORT = Effort(screened=128, restarts=4, most_calls=20)


class Towards:
    """Highest at one place."""

    def __init__(self, place: Array) -> None:
        self.place = place

    def __call__(self, X: Array) -> Array:
        return np.asarray(-np.sum((X - self.place) ** 2, axis=1))

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        return self(X), -2.0 * (X - self.place)


def process() -> GP:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.random((10, 2)), np.repeat([1.0, 2.0], 5)])
    return condition(SE((0, 1)) * TimeDecay(2), np.array([-1.0, -0.5, -2.0]), X, rng.standard_normal(10), noise=0.01)


def test_the_maximum_within_reach_is_found() -> None:
    near = TrustRegion(Domain((None, None)), np.array([0.5, 0.5]), side=0.4)
    found = maximize_in_trust_region(Towards(np.array([0.6, 0.41])), near, rng=np.random.default_rng(0), effort=EFFORT)
    np.testing.assert_allclose(found.x, [0.6, 0.41], atol=1e-4)


def test_a_maximum_out_of_reach_is_approached_to_the_edge_of_the_box() -> None:
    near = TrustRegion(Domain((None, None)), np.array([0.5, 0.1]), side=0.4)
    found = maximize_in_trust_region(Towards(np.array([2.0, -1.0])), near, rng=np.random.default_rng(0), effort=EFFORT)
    np.testing.assert_allclose(found.x, [0.7, 0.0], atol=1e-9)


def test_the_neighbours_on_a_coarse_grid_are_within_reach() -> None:
    grid = np.array([0.25, 0.75])
    near = TrustRegion(Domain((grid,)), np.array([0.25]), side=0.2)
    assert set(near.candidates(200, rng=np.random.default_rng(0))[:, 0]) == {0.25, 0.75}


def test_what_is_inactive_at_the_centre_may_be_anything() -> None:
    near = TrustRegion(Domain((None, None)), np.array([0.5, np.nan]), side=0.2)
    rows = near.candidates(500, rng=np.random.default_rng(0))
    assert 0.4 <= rows[:, 0].min() <= rows[:, 0].max() <= 0.6
    assert rows[:, 1].min() < 0.05
    assert rows[:, 1].max() > 0.95


def test_held_columns_are_seen_but_not_moved() -> None:
    bound, X = ConfidenceBound(process(), beta=2.0), np.random.default_rng(1).random((4, 2))
    held = FixedFeatures(bound, (3.0,))
    np.testing.assert_array_equal(held(X), bound(with_columns(X, 3.0)))
    value, gradient = held.value_and_gradient(X)
    np.testing.assert_allclose(value, held(X))
    step = 1e-6
    for j in range(2):
        moved = X.copy()
        moved[:, j] += step
        back = X.copy()
        back[:, j] -= step
        np.testing.assert_allclose(gradient[:, j], (held(moved) - held(back)) / (2 * step), atol=1e-6)
