import numpy as np
import pytest

from farthing.costs.learned import LearnedCost, Paid, learn_cost
from farthing.models.kernels import Constant, Covariance, Matern52
from farthing.models.linalg import Array

KERNEL = Constant() * Matern52((0, 1))


FIXED = 0.5


def true_cost(X: np.ndarray, done: np.ndarray | float = 1.0, *, fixed: float = FIXED) -> np.ndarray:
    """A start of half a second, and work of e to e³ seconds, rising along the first column only."""
    return fixed + np.exp(1.0 + 2.0 * X[:, 0]) * done


def learnt(*, n: int = 40, shares: bool = True, seed: int = 0) -> LearnedCost:
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    done = rng.uniform(0.02, 1.0, n) if shares else np.ones(n)
    noise = np.exp(0.02 * rng.standard_normal(n))
    return learn_cost(X, Paid.whole(true_cost(X, done) * noise, done), KERNEL)


def test_a_known_cost_is_recovered_with_its_fixed_part() -> None:
    model = learnt()
    X = np.random.default_rng(1).random((200, 2))
    assert model.setup.new == pytest.approx(FIXED, rel=0.15)  # the next values on the grid of those tried
    for done in (0.05, 0.3, 1.0):
        ratio = model.cost(X, done) / true_cost(X, done)
        assert np.quantile(np.abs(np.log(ratio)), 0.9) < 0.1  # five times the noise of the observations


@pytest.mark.parametrize("fixed", [0.0, 0.1, 1.0, 10.0])
def test_the_fixed_part_is_the_one_that_leaves_least_to_explain(fixed: float) -> None:
    """Nothing but the share decides the rest of these costs: with the right fixed part they are all the same."""
    rng = np.random.default_rng(3)
    X, done = rng.random((30, 2)), rng.uniform(0.02, 1.0, 30)
    cost = (fixed + done) * np.exp(0.01 * rng.standard_normal(30))
    assert learn_cost(X, Paid.whole(cost, done), KERNEL).setup.new == pytest.approx(fixed, rel=0.1, abs=0.02)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("others", [(0.1, 0.1, 0.158), (0.1, 0.158, 0.251, 0.251)])
def test_the_fixed_part_is_found_where_next_to_nothing_is_left_to_explain(others: tuple[float, ...], seed: int) -> None:
    """Of exact costs of a few short runs, nearly all of the least could be a start as well, if rounding counted."""
    rng = np.random.default_rng(seed)
    done = np.array([0.13] * 5 + list(others))
    model = learn_cost(rng.random((done.size, 2)), Paid.whole(0.01 + done, done), KERNEL)
    np.testing.assert_allclose(model.cost(rng.random((50, 2))), 1.01, rtol=0.02)  # a step of the grid of A


def test_expensive_and_cheap_configurations_have_the_same_fixed_part() -> None:
    """A start tells little about the end of a cheap configuration, and all about that of an expensive one."""
    rng = np.random.default_rng(8)
    X = rng.random((40, 2))
    done = rng.choice([0.1, 0.3], size=40)
    model = learn_cost(X, Paid.whole(true_cost(X, done), done), KERNEL)
    for x in (0.1, 0.9):
        row = np.array([[x, 0.5]])
        assert model.cost(row, 1.0)[0] == pytest.approx(true_cost(row)[0], rel=0.1)


def test_the_cost_grows_with_the_share_that_is_done() -> None:
    X = np.random.default_rng(2).random((50, 2))
    costs = np.array([learnt().cost(X, done) for done in np.linspace(0.0, 1.0, 21)])
    assert np.all(np.diff(costs, axis=0) >= 0.0)


def test_no_prediction_is_below_the_smallest_cost_seen() -> None:
    X = np.linspace(0.0, 0.5, 12)[:, None] * np.ones(2)
    cost = np.exp(-4.0 * X[:, 0])
    model = learn_cost(X, Paid.whole(cost), KERNEL)
    far = np.ones((1, 2))
    assert model.scale.undo(model.gp.mean(far))[0] < np.log(cost.min()), "the process itself goes on downwards"
    assert model.cost(far)[0] == pytest.approx(cost.min())
    assert np.all(model.value_and_gradient(far)[1] == 0.0)


def test_without_shares_there_is_no_fixed_part_to_choose() -> None:
    assert learnt(shares=False).setup.new == 0.0


def test_an_earlier_fit_may_be_kept_as_it_is_or_started_from() -> None:
    rng = np.random.default_rng(5)
    X, done = rng.random((40, 2)), rng.uniform(0.02, 1.0, 40)
    paid = true_cost(X, done) * np.exp(0.02 * rng.standard_normal(40))
    fitted = learn_cost(X, Paid.whole(paid, done), KERNEL)
    moved = fitted.theta + 0.3
    kept = learn_cost(X, Paid.whole(paid, done), KERNEL, warm_start=moved, keeps_theta=True)
    again = learn_cost(X, Paid.whole(paid, done), KERNEL, warm_start=moved)
    np.testing.assert_array_equal(kept.theta, moved)
    assert kept.setup.new == pytest.approx(again.setup.new, rel=0.01)  # each has a pace of its own
    assert (again.setup.new, fitted.setup.new) == pytest.approx((FIXED, FIXED), rel=0.15)
    np.testing.assert_allclose(again.cost(X), fitted.cost(X), rtol=0.1)  # five times the noise, as above


def test_slopes_are_those_of_the_log_cost() -> None:
    model, step = learnt(), 1e-6
    X = np.random.default_rng(4).random((10, 2))
    _, gradient = model.value_and_gradient(X)
    for j in range(2):
        moved = step * np.eye(2)[j]
        slope = (model(X + moved) - model(X - moved)) / (2 * step)
        np.testing.assert_allclose(gradient[:, j], slope, rtol=1e-4, atol=1e-6)  # differences have step² and ε/step


class Counted(Matern52):
    """Counts how often it is evaluated."""

    evaluations = 0

    def evaluate(self, theta: Array, X: Array, Z: Array | None = None) -> Covariance:
        Counted.evaluations += 1
        return super().evaluate(theta, X, Z)


def test_hyperparameters_that_are_kept_cost_no_likelihood() -> None:
    kernel, X = Constant() * Counted((0, 1)), np.random.default_rng(4).random((30, 2))
    warm_start = learn_cost(X, Paid.whole(true_cost(X)), kernel).theta
    Counted.evaluations = 0
    learn_cost(X, Paid.whole(true_cost(X)), kernel, warm_start=warm_start, keeps_theta=True)
    assert Counted.evaluations <= 3, "more than conditioning on the rows takes"


def test_all_fixed_parts_are_compared_by_one_factor_for_each_of_two_hyperparameters() -> None:
    rng = np.random.default_rng(6)
    kernel, X, done = Constant() * Counted((0, 1)), rng.random((30, 2)), rng.uniform(0.02, 1.0, 30)
    warm_start = learn_cost(X, Paid.whole(true_cost(X, done), done), kernel).theta
    Counted.evaluations = 0
    learnt = learn_cost(X, Paid.whole(true_cost(X, done), done), kernel, warm_start=warm_start, keeps_theta=True)
    assert learnt.setup.new == pytest.approx(FIXED, rel=0.15)
    assert Counted.evaluations <= 5, "more than two factors, and conditioning on the rows"
