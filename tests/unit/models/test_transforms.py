import numpy as np
import pytest

from farthing.models.fitting import Standardise


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
