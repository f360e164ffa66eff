"""Rules of recommending, on runs that are known."""

import numpy as np
import pytest

from benchmarks.recommending import RULES, Expected, Reached, agreement, regrets

RUNS = Reached(
    amount=np.array([20.0, 20.0, 4.0, 8.0]),
    loss=np.array([0.5, 0.6, 0.4, 0.7]),
    final=np.array([0.1, 0.2, 0.3, 0.4]),
    is_full=np.array([True, True, False, False]),
    paths=[((4, 20), (0.35, 0.5)), ((4, 20), (0.3, 0.6)), ((4,), (0.4,)), ((8,), (0.7,))],
    model=Expected(
        predicted=np.array([0.5, 0.6, 0.3, 0.2]),
        deviation=np.array([0.01, 0.01, 0.1, 0.1]),
        last=np.array([0.5, 0.6, 0.4, 0.7]),
        end=np.array([0.5, 0.6, 0.35, 0.6]),
    ),
)


@pytest.mark.parametrize(
    ("rule", "run"),
    [
        ("lowest measured", 2),
        ("the same, with what those that went on from there rose", 0),
        ("lowest measured of those that came furthest", 0),
        ("best finished, else lowest measured", 0),
        ("predicted", 3),
        ("predicted, not where another measured less with less training", 2),
        ("halfway", 2),
    ],
)
def test_a_rule_names_a_run(rule: str, run: int) -> None:
    losses = RULES[rule](RUNS)
    assert losses is not None
    assert np.argmin(losses) == run


def test_nothing_is_asked_where_all_that_is_stored_is_the_limit() -> None:
    record = {"problem": "lcbench/3945", "regret": 0.5, "tried": [0, 2, 1, 2], "finals": [500, 700]}
    assert regrets({**record, "measured": [1500, 1500]}) == {}
    assert regrets({**record, "measured": [1500, 1400]})["lowest measured"] == 0.7


def test_the_order_of_equal_predictions_says_nothing() -> None:
    ends = np.array([1.0, 2.0, 3.0])
    assert agreement(np.array([5.0, 6.0, 9.0]), ends) == pytest.approx(1.0)
    assert agreement(np.array([9.0, 6.0, 5.0]), ends) == pytest.approx(-1.0)
    assert agreement(np.zeros(3), ends) == 0.0
