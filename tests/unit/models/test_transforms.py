import numpy as np
import pytest

from farthing.models.transforms import Rank, Standardise


def test_standardised_values_have_zero_mean_and_unit_deviation():
    y = np.array([3.0, 5.0, 10.0])
    transform = Standardise.of(y)
    z = transform.apply(y)
    assert z.mean() == pytest.approx(0.0)
    assert z.std() == pytest.approx(1.0)
    np.testing.assert_allclose(transform.undo(z), y)
    np.testing.assert_allclose(transform.undo_variance(np.ones(1)), y.var())


@pytest.mark.parametrize("y", [[], [4.0], [2.0, 2.0], [1e308, -1e308], [1e-300, 3e-300], [0.0, 0.0, 0.0]])
def test_degenerate_values_stay_finite(y):
    y = np.array(y)
    z = Standardise.of(y).apply(y)
    assert np.all(np.isfinite(z))
    assert np.all(np.abs(z) <= 1.5)


def test_ranks_ignore_how_far_an_outlier_lies():
    near, far = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 2.0, 3.0, 1e9])
    np.testing.assert_array_equal(Rank.of(near).apply(near), Rank.of(far).apply(far))


def test_equal_values_share_a_score_and_undo_inverts():
    y = np.array([2.0, 1.0, 2.0, 5.0])
    transform = Rank.of(y)
    z = transform.apply(y)
    assert z[0] == z[2]
    assert z[1] < z[0] < z[3]
    np.testing.assert_allclose(transform.undo(z), y)


@pytest.mark.parametrize("y", [[], [7.0], [7.0, 7.0]])
def test_ranks_of_degenerate_values_are_finite(y):
    y = np.array(y)
    np.testing.assert_allclose(Rank.of(y).apply(y), np.zeros(y.size), atol=1e-12)
