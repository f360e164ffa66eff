from itertools import combinations

import numpy as np
import pytest

from farthing.acquisition.expected_improvement import greedy_gains, log_augmented_improvement, log_joint_improvements
from farthing.models.gp import condition
from farthing.models.kernels import Matern52

RNG = np.random.default_rng(3)
X = RNG.random((8, 2))
GP = condition(Matern52((0, 1)), np.log([0.3, 0.3]), X, np.sin(6 * X[:, 0]) + X[:, 1], noise=1e-4)
POOL = RNG.random((10, 2))


def log_gains(best: float, sizes: tuple[int, ...] = (1, 2, 4, 8)) -> np.ndarray:
    return log_joint_improvements(GP, POOL, best, sizes, rng=np.random.default_rng(0))


def test_a_bundle_of_one_is_augmented_improvement() -> None:
    mean, variance = GP.predict(POOL[:1])
    assert log_gains(0.2)[0] == pytest.approx(log_augmented_improvement(mean, variance, 0.2, noise=GP.noise)[0])


def test_larger_bundles_gain_more_but_never_k_times_as_much() -> None:
    gains = np.exp(log_gains(0.2))
    assert (np.diff(gains) > 0).all()
    assert (gains <= gains[0] * np.array([1, 2, 4, 8]) + 1e-12).all()


def test_a_bundle_is_worth_what_many_joint_draws_say() -> None:
    """The greedy pair out of three rows, each as good as another, against 200 000 draws: 5 % for the 256 used."""
    pool = np.array([[0.8, 0.1], [0.82, 0.1], [0.9, 0.6]])
    found = np.exp(log_joint_improvements(GP, pool, -0.2, (1, 2, 3), rng=np.random.default_rng(1)))
    draws = GP.sample(pool, 200_000, rng=np.random.default_rng(2))
    exact = np.mean(np.maximum(-0.2 - draws.min(axis=1), 0.0))
    assert found[2] == pytest.approx(exact, rel=0.15)


def test_the_greedy_choice_is_within_its_guarantee_of_the_best_one() -> None:
    improvement = np.maximum(np.random.default_rng(4).standard_normal((400, 7)), 0.0)
    for k in (2, 3):
        best = max(np.mean(improvement[:, [0, *others]].max(axis=1)) for others in combinations(range(1, 7), k - 1))
        assert greedy_gains(improvement, k)[k - 1] >= (1 - 1 / np.e) * best


def test_each_row_of_a_bundle_is_added_to_those_before_it() -> None:
    """Each of three rows improves in one draw of three; the third, which improves the most, is added first."""
    improvement = np.array([[3.0, 0.0, 0.0], [0.0, 6.0, 0.0], [0.0, 0.0, 9.0]])
    np.testing.assert_allclose(greedy_gains(improvement, 3), [1.0, 4.0, 6.0])


def test_improvement_too_rare_to_be_sampled_still_counts() -> None:
    gains = log_gains(-30.0)
    assert np.isfinite(gains).all()
    assert gains[-1] > gains[0]
    assert gains[0] < -100
