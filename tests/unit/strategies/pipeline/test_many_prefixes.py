"""However many prefixes were computed, a bounded number is searched: counted in the rows that are looked at."""

import random

import numpy as np
import pytest

import farthing as ft
from farthing.acquisition.expected_improvement import LogAugmentedImprovement
from farthing.acquisition.prefix_classes import NewPrefixes
from farthing.costs import Remaining
from farthing.models.linalg import Array
from farthing.strategies import Randomness
from farthing.strategies.pipeline import prefix_ei
from farthing.trials import History, Measurement, Problem, State, Suggestion, Trial

SPACE = ft.Space(
    stages={"prepare": {"a": ft.Float(0, 1)}, "train": {"b": ft.Float(0, 1)}, "finish": {"c": ft.Float(0, 1)}}
)


def history_of(count: int) -> History:
    """Every trial has stages of its own."""
    rng, trials = random.Random(0), []
    for number in range(count):
        params = {name: rng.random() for name in "abc"}
        points = tuple(Measurement(cost={"stage": 4.0 - step}, step=step, sequence=step) for step in range(3))
        value = sum((each - 0.3) ** 2 for each in params.values())
        last = Measurement(value=value, sequence=3)
        trials.append(Trial(number, Suggestion(params), State.DONE, value=value, measurements=(*points, last)))
    return History(Problem(SPACE, measures_cost=False), trials)


def rows_searched(count: int, monkeypatch: pytest.MonkeyPatch) -> int:
    seen = 0
    score = LogAugmentedImprovement.__call__

    def counting(self: LogAugmentedImprovement, X: Array) -> Array:
        nonlocal seen
        seen += len(X)
        return score(self, X)

    with monkeypatch.context() as patched:
        patched.setattr(LogAugmentedImprovement, "__call__", counting)
        ft.PrefixEI().suggest(history_of(count), Remaining(), 1, Randomness(0))
    return seen


def test_beyond_a_bound_no_more_prefixes_are_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefix_ei, "MOST_PREFIXES", 16)
    few, many = rows_searched(40, monkeypatch), rows_searched(160, monkeypatch)

    assert many <= 1.1 * few


def test_the_most_promising_prefixes_are_those_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    history = history_of(60)
    whole = ft.PrefixEI().suggest(history, Remaining(), 1, Randomness(0))
    monkeypatch.setattr(prefix_ei, "MOST_PREFIXES", 59)
    assert ft.PrefixEI().suggest(history, Remaining(), 1, Randomness(0))[0].note["kept"] == whole[0].note["kept"]


def test_a_prefix_that_is_there_is_known_also_with_inactive_values_and_a_negative_zero() -> None:
    known = np.array([[0.0, np.nan, 0.5], [1.0, 0.25, 0.5]])
    columns = [np.array([True, True, False])]
    acquisition = NewPrefixes(lambda X: np.zeros(len(X)), columns, [known])  # type: ignore[arg-type]
    rows = np.array([[-0.0, np.nan, 0.9, 0.0], [1.0, 0.25, 0.1, 0.0], [1.0, 0.3, 0.1, 0.0], [1.0, 0.25, 0.1, 1.0]])

    np.testing.assert_array_equal(acquisition(rows), [-np.inf, -np.inf, 0.0, 0.0])
