"""A declared cheap end: the first starts are near it, whatever the strategy, and nothing else changes."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

import farthing as ft
from benchmarks.baselines.curve_guided import BOCA
from farthing.errors import InvalidSpace
from farthing.extending import Strategy
from farthing.strategies.shared.starts import CHEAP_STARTS, is_drawn
from farthing.testing import check_replay

SPACE = ft.Space(
    {
        "rate": ft.Float(1e-5, 1e-1, log=True),
        "units": ft.Int(16, 512, log=True, cheap="low"),
        "batch": ft.Float(0.0, 100.0, cheap="high"),
        "size": ft.Choice("tiny", "small", "medium", "large", ordered=True, cheap="tiny"),
        "layer": ft.Choice("wide", "slim", None, cheap=["slim", None]),
    }
)
CURVES = ft.Space(SPACE.parameters, fidelities={"epochs": ft.Fidelity(1, 27, integer=True, trace=True)})
STAGED = ft.Space(stages={"one": {"units": SPACE.parameters["units"]}, "two": {"rate": SPACE.parameters["rate"]}})


def is_cheap(params: Mapping[str, Any]) -> bool:
    """Within a quarter of the axis from the cheap end; the low quarter of log 16 to log 512 ends at 38."""
    return (
        params["units"] <= 38
        and params.get("batch", 100.0) >= 75.0
        and params.get("size", "tiny") == "tiny"
        and params.get("layer") in ("slim", None)
    )


def told(study: ft.Study, count: int) -> ft.Study:
    for _ in range(count):
        trial = study.ask()
        study.tell(trial, abs(trial.params["rate"] / 1e-3 - 1.0) ** 0.3, cost=float(trial.params["units"]))
    return study


@pytest.mark.parametrize(
    ("strategy", "space"),
    [
        (ft.EIPerCost(), SPACE),
        (ft.LogEI(), SPACE),
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
def test_the_first_new_configurations_are_at_the_cheap_end(strategy: Strategy, space: ft.Space) -> None:
    study = told(ft.Study(space, minimize="error", strategy=strategy, seed=1), 9)
    new = [trial for trial in study.trials if trial.resume_from is None]
    first, rest = new[:CHEAP_STARTS], new[CHEAP_STARTS:]
    assert [trial.note["cheap"] for trial in first] == [0, 1, 2]
    assert all(is_cheap(trial.params) for trial in first)
    assert not any("cheap" in (trial.note or {}) for trial in rest)
    assert check_replay(study) == []


def test_other_parameters_are_spread_over_their_range_and_cheap_ones_over_the_cheap_part() -> None:
    rates, units = [], []
    for seed in range(20):
        first = ft.Study(SPACE, minimize="error", strategy=ft.EIPerCost(), seed=seed).ask(count=CHEAP_STARTS)
        found = sorted(trial.params["rate"] for trial in first)
        assert found[0] < 1e-3 < found[-1]
        rates += found
        units += [trial.params["units"] for trial in first]
    assert min(rates) < 1e-4
    assert max(rates) > 1e-2
    assert min(units) == 16
    assert max(units) > 30


def test_several_workers_get_each_cheap_start_once() -> None:
    study = ft.Study(SPACE, minimize="error", strategy=ft.EIPerCost(), seed=2)
    asked = [*study.ask(count=2), *study.ask(count=3)]
    places = [(study.history[trial.number].note or {}).get("cheap") for trial in asked]
    assert places == [0, 1, 2, None, None]
    assert check_replay(study) == []


def test_a_guess_comes_first_and_what_was_learnt_before_the_cheap_end() -> None:
    guessed = ft.Space({**SPACE.parameters, "rate": ft.Float(1e-5, 1e-1, log=True, guess=1e-3)})
    earlier = told(ft.Study(guessed, minimize="error", name="may", seed=3), 8)
    study = told(ft.Study(guessed, minimize="error", learn_from=earlier, name="june"), 5)
    assert study.trials[0].note["guess"] == "centre"
    assert study.trials[1].note["learned"] == [0, "may"]
    assert study.trials[2].note["cheap"] == 0


def test_cheap_starts_are_not_taken_for_random_ones() -> None:
    study = told(ft.Study(SPACE, minimize="error", strategy=ft.Random(), seed=1), 5)
    assert [is_drawn(trial, added="added") for trial in study.history] == [False, False, False, True, True]


def test_a_cheap_option_in_the_middle_keeps_its_neighbours_out() -> None:
    space = ft.Space({"size": ft.Choice(*range(9), ordered=True, cheap=4), "rate": ft.Float(0.0, 1.0)})
    first = ft.Study(space, minimize="error", strategy=ft.Random(), seed=0).ask(count=CHEAP_STARTS)
    assert {trial.params["size"] for trial in first} <= {3, 4, 5}


def test_an_inactive_cheap_parameter_is_absent() -> None:
    space = ft.Space(
        {"kind": ft.Choice("a", "b", cheap="a"), "units": ft.Int(1, 64, cheap="low", when={"kind": "b"})},
    )
    first = ft.Study(space, minimize="error", strategy=ft.Random(), seed=0).ask()
    assert first.params == {"kind": "a"}


def test_cheap_starts_that_coincide_are_made_once() -> None:
    space = ft.Space({name: ft.Choice(*range(5), cheap=0) for name in "abc"})
    study = ft.Study(space, minimize="error", strategy=ft.EIPerCost(), seed=0)
    study.ask(count=2)
    study.ask(count=2)
    assert [trial.params == {"a": 0, "b": 0, "c": 0} for trial in study.trials] == [True, False, False, False]
    assert check_replay(study) == []


def test_a_space_with_a_cheap_end_is_read_back_from_json_and_toml() -> None:
    assert ft.Space.from_json(json.loads(json.dumps(SPACE.to_json()))) == SPACE
    without_none = ft.Space({**SPACE.parameters, "layer": ft.Choice("wide", "slim", cheap="slim")})
    assert ft.Space.from_toml(without_none.to_toml()) == without_none
    tuples = ft.Space({"shape": ft.Choice((1, 2), (3, 4), cheap=[(1, 2)])})
    assert ft.Space.from_json(json.loads(json.dumps(tuples.to_json()))) == tuples
    assert ft.Space.from_toml("[space]\nunits = {int = [16, 512], cheap = 'low'}").parameters["units"] == ft.Int(
        16, 512, cheap="low"
    )
    assert repr(SPACE.parameters["units"]) == "Int(16, 512, log=True, cheap='low')"
    assert ft.Int(1, 8) != ft.Int(1, 8, cheap="low")


def test_a_space_without_a_cheap_end_is_stored_as_before() -> None:
    plain = ft.Space({"rate": ft.Float(0.0, 1.0, guess=0.5), "kind": ft.Choice("a", "b", guess="a")})
    assert plain.to_json() == {
        "params": {"rate": {"float": [0.0, 1.0], "guess": 0.5}, "kind": {"choice": ["a", "b"], "guess": ["a"]}}
    }


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ft.Int(16, 512, cheap=16), r'must be "low" or "high", got 16'),  # type: ignore[arg-type]
        (lambda: ft.Float(0, 1, cheap="lo"), r'must be "low" or "high", got \'lo\''),  # type: ignore[arg-type]
        (lambda: ft.Choice("small", "large", cheap="smal"), r"cheap= must be one of .* Did you mean 'small'"),
        (lambda: ft.Space.from_toml("[space]\nx = {int = [1, 9], cheap = 1}"), r"In parameter 'x': The cheap end"),
    ],
)
def test_a_cheap_end_that_is_none_is_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(InvalidSpace, match=words):
        make()
