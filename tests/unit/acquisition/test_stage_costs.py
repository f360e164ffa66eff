import numpy as np
import pytest

from farthing.acquisition.prefix_classes import ConstantCost, StageCosts
from farthing.costs.learned import Paid, learn_cost
from farthing.models.kernels import Constant, Matern52

RNG = np.random.default_rng(0)
ROWS = RNG.random((12, 3))
PAID = Paid.whole(np.exp(1.0 + ROWS[:, 0] + 0.1 * RNG.standard_normal(12)))
LEARNT = learn_cost(ROWS, PAID, Constant() * Matern52((0,)))
COSTS = StageCosts([LEARNT, ConstantCost(10.0), ConstantCost(1.0)])


def test_what_is_kept_need_not_be_paid() -> None:
    prices = [COSTS.price(ROWS, np.full(12, kept)) for kept in range(3)]
    np.testing.assert_allclose(prices[2], 1.0)
    np.testing.assert_allclose(prices[1], 11.0)
    np.testing.assert_allclose(prices[0], 11.0 + LEARNT.cost(ROWS))


def test_rows_of_different_classes_are_priced_together() -> None:
    kept = np.arange(12) % 3
    expected = [COSTS.price(ROWS[i : i + 1], kept[i : i + 1])[0] for i in range(12)]
    np.testing.assert_allclose(COSTS.price(ROWS, kept), expected)


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_the_gradient_of_a_log_price_is_that_of_differences(kept: int) -> None:
    kinds, step = np.full(12, kept), 1e-6
    value, gradient = COSTS.log_price_with_gradient(ROWS, kinds)
    np.testing.assert_allclose(np.exp(value), COSTS.price(ROWS, kinds))
    for j in range(3):
        moved = [np.log(COSTS.price(ROWS + sign * step * np.eye(3)[j], kinds)) for sign in (1, -1)]
        np.testing.assert_allclose(gradient[:, j], (moved[0] - moved[1]) / (2 * step), atol=1e-6)
