from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

import farthing as ft
from farthing.costs import Remaining
from farthing.errors import InvalidArgument
from farthing.extending import History, Suggestion
from farthing.strategies import Randomness, Strategy, strategy_from_json

SPACE = ft.Space({"x": ft.Float(0, 1), "n": ft.Int(1, 8)})


@dataclass(frozen=True)
class Fixed(Strategy):
    x: float = 0.5

    def suggest(self, history: History, budget: Remaining, count: int, rng: Randomness) -> Sequence[Suggestion]:
        return [Suggestion({"x": self.x, "n": 1})] * (count + (self.x > 0.9))


def test_random_numbers_depend_on_their_key_only() -> None:
    first, other = Randomness(1).at("trial", 4), Randomness(1).at("trial", 5)
    again = Randomness(1).at("trial", 4)
    drawn = first.random(3)
    assert np.array_equal(drawn, again.random(3))
    assert not np.array_equal(drawn, other.random(3))
    assert not np.array_equal(drawn, Randomness(2).at("trial", 4).random(3))


def test_sobol_covers_each_half_quarter_and_eighth_evenly() -> None:
    study = ft.Study(SPACE, minimize="error", strategy=ft.Sobol())
    x = [trial.params["x"] for trial in study.ask(count=32)]
    n = [trial.params["n"] for trial in study.ask(count=32)]
    assert np.histogram(x, bins=8, range=(0, 1))[0].tolist() == [4] * 8
    assert [n.count(value) for value in range(1, 9)] == [4] * 8


def test_sobol_gives_the_same_points_one_by_one_and_at_once() -> None:
    alone, together = (ft.Study(SPACE, minimize="error", strategy=ft.Sobol(), seed=4) for _ in range(2))
    singles = [alone.ask().params for _ in range(11)]
    assert singles == [trial.params for trial in together.ask(count=11)]


def test_a_users_strategy_is_stored_by_its_path_and_found_again() -> None:
    form = Fixed(0.25).to_json()
    assert form == {"name": f"{__name__}:Fixed", "arguments": {"x": 0.25}}


def test_a_strategy_that_suggests_too_much_is_told_so() -> None:
    with pytest.raises(InvalidArgument, match="at most as many trials as asked, got 2 for 1 from Fixed"):
        ft.Study(SPACE, minimize="error", strategy=Fixed(0.95)).ask()


def test_the_default_recommendation_prefers_the_highest_fidelity_to_the_best_value() -> None:
    space = ft.Space({"x": ft.Float(0, 1)}, fidelities={"epochs": ft.Fidelity(1, 9, integer=True)})
    study = ft.Study(space, maximize="accuracy", strategy=ft.Random())
    study.add({"x": 0.1}, 0.99, fidelity={"epochs": 1})
    study.add({"x": 0.2}, 0.70, fidelity={"epochs": 9})
    study.add({"x": 0.3}, 0.80, fidelity={"epochs": 9})
    assert study.best.params == {"x": 0.3}


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"name": "Hyperbnad"}, "Did you mean 'Hyperband'"),
        ({"name": "ASHA", "arguments": {"reductoin": 3}}, "Did you mean 'reduction'"),
        ({"name": "no.such.module:Thing"}, "must be importable"),
        ({"name": "farthing.costs:Budget"}, "must be a class with suggest"),
        ({"arguments": {}}, "must be named"),
        ("ASHA", "must be named"),
    ],
)
def test_a_strategy_that_cannot_be_found_is_a_clear_error(form: object, words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        strategy_from_json(form)
