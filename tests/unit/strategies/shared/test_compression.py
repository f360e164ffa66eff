import numpy as np
import pytest

from farthing.strategies.shared.surrogate import MOST, Compression


def test_the_better_half_keeps_its_proportions() -> None:
    loss = np.array([1.0, 2.0, 3.0, 7.0, 1e6])
    z = Compression.of(loss).apply(loss)
    np.testing.assert_allclose(z[:3], [-1.0, -0.5, 0.0])


def test_the_worse_half_is_drawn_together_but_keeps_its_order() -> None:
    loss = np.array([0.0, 1.0, 2.0, 1e3, 1e6, 1e9, 1e12])
    z = Compression.of(loss).apply(loss)
    assert np.all(np.diff(z) > 0.0)
    assert z[-1] < 25.0


def test_undoing_gives_the_losses_back() -> None:
    loss = np.random.default_rng(0).standard_cauchy(101)
    scale = Compression.of(loss)
    np.testing.assert_allclose(scale.undo(scale.apply(loss)), loss, rtol=1e-9, atol=1e-9)
    assert scale.undo(np.array([1e9]))[0] == pytest.approx(loss.max())


def test_the_slope_is_that_of_undoing() -> None:
    loss = np.random.default_rng(1).standard_cauchy(101)
    scale, step = Compression.of(loss), 1e-6
    z = np.array([-2.0, -0.5, 0.5, scale.largest / 2])
    np.testing.assert_allclose(
        scale.slope(z), (scale.undo(z + step) - scale.undo(z - step)) / (2 * step), rtol=1e-6
    )  # central differences err by step² of the third derivative


@pytest.mark.parametrize(
    "loss",
    [
        [],
        [3.0],
        [2.0, 2.0, 2.0],
        [1.0, 1.0, 1.0, 5.0],
        [-1.7e308, 0.0, 1.7e308],
        [1e-300, 2e-300, 1e300],
        [5e-324, 0.0, 1.0],
        [1e300, 1e300 * (1 + 1e-15), 1e300 * (1 + 2e-15)],
    ],
)
def test_any_finite_losses_become_ordinary_numbers(loss: list[float]) -> None:
    y = np.array(loss)
    z = Compression.of(y).apply(y)
    assert np.all(np.isfinite(z))
    assert np.all(np.diff(z[np.argsort(y, kind="stable")]) >= 0.0)
    assert np.all((z >= -1.0) & (z <= np.log1p(MOST)))
