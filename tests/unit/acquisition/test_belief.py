"""A user's belief as a factor of an acquisition function."""

import numpy as np
import pytest

from farthing.acquisition.belief import FLOOR, LIKELY, Belief, Believed
from farthing.models.linalg import Array


class Flat:
    """Nothing is worth more than anything else."""

    def __call__(self, X: Array) -> Array:
        return np.zeros(X.shape[0])

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        return np.zeros(X.shape[0]), np.zeros_like(X)


BELIEF = Belief(ranges={0: (0.3, 0.3), 1: (0.4, 0.7)}, options={2: (1,)}, counts={2: 3})


def test_it_is_one_at_the_guess_and_never_below_its_floor() -> None:
    X = np.array([[0.3, 0.5, 1.0], [0.3, 0.5, 0.0], [1.0, 0.5, 1.0], [np.nan, 0.5, 1.0]])
    assert np.exp(BELIEF(X)) == pytest.approx([1.0, FLOOR, FLOOR, 1.0], rel=1e-6)


def test_its_gradient_is_that_of_its_values() -> None:
    X = np.random.default_rng(0).random((40, 3))
    X[:, 2] = 1.0
    value, gradient = Believed(Flat(), BELIEF, weight=0.7).value_and_gradient(X)
    step = 1e-6
    for j in (0, 1):
        moved = X.copy()
        moved[:, j] += step
        difference = (Believed(Flat(), BELIEF, weight=0.7)(moved) - value) / step
        assert gradient[:, j] == pytest.approx(difference, abs=1e-3)  # a difference of 1e-6 is exact to about 1e-4
    assert not gradient[:, 2].any()


def test_points_near_it_are_around_the_guess_and_have_its_options() -> None:
    near = np.array([BELIEF.near(u) for u in np.random.default_rng(0).random((2000, 3))])
    assert np.all((near >= 0.0) & (near <= 1.0))
    assert np.mean(near[:, 0]) == pytest.approx(0.3, abs=0.02)  # of 2000 draws, ± 0.1/√2000 and what is cut off
    share = np.mean((near[:, 2] * 3).astype(int) == 1)
    assert share == pytest.approx(LIKELY, abs=0.05)
    assert BELIEF.centre(np.full(3, 0.9)) == pytest.approx([0.3, 0.55, 0.5])
