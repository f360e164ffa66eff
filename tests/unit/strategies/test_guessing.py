"""Guesses: the first start, the centre of others, and a weight in the acquisition that evidence fades."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

import farthing as ft
from benchmarks.baselines.curve_guided import BOCA
from farthing.errors import InvalidSpace
from farthing.extending import History, Randomness, Remaining, Strategy, Suggestion
from farthing.strategies.shared.guessing import believed, is_discredited
from farthing.testing import check_replay

SPACE = ft.Space(
    {
        "rate": ft.Float(1e-5, 1e-1, log=True, guess=1e-3),
        "units": ft.Int(1, 64, log=True, guess=(8, 16)),
        "kind": ft.Choice("a", "b", "c", guess="b"),
        "free": ft.Float(0.0, 1.0),
    }
)
CURVES = ft.Space(SPACE.parameters, fidelities={"epochs": ft.Fidelity(1, 27, integer=True, trace=True)})
STAGED = ft.Space(stages={"one": {"rate": SPACE.parameters["rate"]}, "two": {"kind": SPACE.parameters["kind"]}})


def told(study: ft.Study, count: int, *, at: float) -> ft.Study:
    for _ in range(count):
        trial = study.ask()
        study.tell(trial, abs(trial.params["rate"] / at - 1.0) ** 0.3, cost=1.0)
    return study


def test_a_space_with_guesses_is_read_back_from_json_and_toml() -> None:
    assert ft.Space.from_json(SPACE.to_json()) == SPACE
    assert ft.Space.from_toml(SPACE.to_toml()) == SPACE
    tuples = ft.Space({"shape": ft.Choice((1, 2), (3, 4), guess=[(1, 2)])})
    assert ft.Space.from_json(tuples.to_json()) == tuples
    assert "guess=0.001" in repr(SPACE)
    assert ft.Float(0, 1) != ft.Float(0, 1, guess=0.5)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ft.Float(0, 1, guess=2.0), "guess="),
        (lambda: ft.Float(0, 1, guess=(0.8, 0.2)), "a number or a pair"),
        (lambda: ft.Int(1, 5, guess=[1, 2, 3]), "a number or a pair"),
        (lambda: ft.Int(1, 5, guess=2.5), "whole number"),
        (lambda: ft.Choice("a", "b", guess="d"), "must be one of"),
    ],
)
def test_a_guess_outside_of_its_parameter_is_refused(make, words) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidSpace, match=words):
        make()


@pytest.mark.parametrize(
    ("strategy", "space"),
    [
        (ft.LogEI(), SPACE),
        (ft.EIPerCost(), SPACE),
        (ft.Random(), SPACE),
        (ft.Sobol(), SPACE),
        (ft.TraceKG(), CURVES),
        (ft.BOHB(), CURVES),
        (ft.ASHA(), CURVES),
        (BOCA(), CURVES),
        (ft.PB2(population=4, interval=9), CURVES),
        (ft.PrefixEI(), STAGED),
    ],
    ids=lambda one: type(one).__name__,
)
def test_the_guess_is_the_first_start_and_the_centre_of_some_others(strategy: Strategy, space: ft.Space) -> None:
    study = told(ft.Study(space, minimize="error", strategy=strategy, seed=1), 8, at=1e-3)
    first = study.trials[0]
    assert first.note["guess"] == "centre"
    assert first.params["rate"] == pytest.approx(1e-3)
    assert first.params["kind"] == "b"
    assert first.params.get("units", 8) in range(8, 17)
    kinds = [trial.note.get("guess") for trial in study.trials if trial.note]
    assert "near" in kinds
    assert "random" in kinds
    assert check_replay(study) == []


def test_a_guess_that_is_wrong_counts_no_more_once_its_starts_are_worse() -> None:
    wrong = told(ft.Study(SPACE, minimize="error", strategy=ft.Random(), seed=1), 8, at=1e-5)
    right = told(ft.Study(SPACE, minimize="error", strategy=ft.Random(), seed=1), 8, at=1e-3)
    assert is_discredited(wrong.history)
    assert not is_discredited(right.history)
    plain = object()
    assert believed(plain, wrong.history, results=8) is plain  # type: ignore[arg-type, comparison-overlap]
    assert believed(plain, right.history, results=8).weight == 3.0 / 8  # type: ignore[arg-type, attr-defined]


def test_a_guess_whose_starts_are_as_good_as_others_still_counts() -> None:
    study = ft.Study(SPACE, minimize="error", strategy=ft.Random(), seed=1)
    for _ in range(8):
        study.tell(study.ask(), 0.5, cost=1.0)
    assert {trial.note["guess"] for trial in study.trials} == {"centre", "near", "random"}
    assert not is_discredited(study.history)


@dataclass(frozen=True)
class Given(Strategy):
    """Suggests starts of these kinds, each trained so far."""

    kinds: Sequence[str] = ()
    epochs: Sequence[int] = ()

    def suggest(self, history: History, budget: Remaining, count: int, rng: Randomness) -> Sequence[Suggestion]:
        params = {"rate": 1e-3, "units": 8, "kind": "b", "free": 0.5}
        place = len(history)
        return [Suggestion(params, {"epochs": self.epochs[place]}, note={"guess": self.kinds[place]})]


@pytest.mark.parametrize(("epochs", "expected"), [((1, 1, 27, 27), False), ((27, 27, 27, 27), True)])
def test_starts_near_the_guess_are_compared_with_others_trained_as_far(epochs: tuple[int, ...], expected: bool) -> None:
    strategy = Given(("near", "near", "random", "random"), epochs)
    study = ft.Study(CURVES, minimize="error", strategy=strategy, seed=0)
    for value in (0.9, 0.9, 0.1, 0.1):
        study.tell(study.ask(), value, cost=1.0)
    assert is_discredited(study.history) is expected


def test_starts_near_a_wrong_guess_are_made_up_for() -> None:
    wrong = ft.Study(SPACE, minimize="error", strategy=ft.LogEI(initial=4), seed=1)
    for _ in range(9):
        trial = wrong.ask()
        wrong.tell(trial, -abs(math.log10(trial.params["rate"]) + 3.0), cost=1.0)  # worst at the guess
    kinds = [trial.note.get("guess") for trial in wrong.trials]
    assert is_discredited(wrong.history)
    assert kinds.count("random") == 4
    assert check_replay(wrong) == []


def test_after_its_starts_the_model_searches_where_the_user_believes() -> None:
    study = told(ft.Study(SPACE, minimize="error", strategy=ft.LogEI(initial=4), seed=0), 4, at=1e-3)
    for trial in study.ask(count=3):
        assert 1e-4 < trial.params["rate"] < 1e-2


def test_guesses_and_earlier_studies_go_together() -> None:
    earlier = told(ft.Study(SPACE, minimize="error", name="may", seed=3), 8, at=1e-2)
    study = ft.Study(SPACE, minimize="error", learn_from=earlier, name="june")
    told(study, 3, at=1e-2)
    assert study.trials[0].note["guess"] == "centre"
    assert study.trials[1].note["learned"] == [0, "may"]
