"""Fronts and choices, for all results: against brute force, and whatever the order and the units."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import farthing as ft
from farthing.acquisition.hypervolume import hypervolume
from farthing.analysis.front import Front, knee, volume_of
from farthing.trials import Problem
from farthing.trials.objectives import MeasuredFront, Objective, dominates, losses_of, values_of

SPACE = ft.Space({"x": ft.Float(0.0, 1.0)})
NUMBERS = st.integers(-6, 6).map(float)
NAMES = ("error", "latency", "size")


@st.composite
def results(draw: Any) -> tuple[list[bool], list[tuple[float, ...]]]:
    """Whether each objective is minimised, and rows of values with ties among them."""
    count = draw(st.integers(2, 3))
    minimized = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    return minimized, draw(st.lists(st.tuples(*[NUMBERS] * count), min_size=1, max_size=12))


def study_of(minimized: list[bool], rows: list[tuple[float, ...]], **constraints: Any) -> ft.Study:
    names = NAMES[: len(minimized)]
    study = ft.Study(
        SPACE,
        minimize=[name for name, is_less in zip(names, minimized, strict=True) if is_less] or None,
        maximize=[name for name, is_less in zip(names, minimized, strict=True) if not is_less] or None,
        constraints=constraints,
        noise=False,
        strategy="Random",
    )
    for place, row in enumerate(rows):
        study.add({"x": place / 20}, dict(zip(names, row, strict=True)))
    return study


def losses(study: ft.Study) -> list[tuple[float, ...]]:
    return [losses_of(study.problem, values_of(study.problem, trial) or {}) for trial in study.trials]


@given(results())
@settings(max_examples=60)
def test_the_front_is_what_brute_force_finds(drawn: Any) -> None:
    study = study_of(*drawn)
    every = losses(study)
    expected = {i for i, one in enumerate(every) if not any(dominates(other, one) for other in every)}
    assert {point.trial.number for point in study.front} == expected
    measured = {every[trial.number] for trial in MeasuredFront.of(study.history).trials}
    assert measured == {every[i] for i in expected}


@given(results(), st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_the_order_of_results_changes_no_front(drawn: Any, random: Any) -> None:
    minimized, rows = drawn
    shuffled = rows.copy()
    random.shuffle(shuffled)
    one, other = study_of(minimized, rows), study_of(minimized, shuffled)
    assert sorted(tuple(point.values.values()) for point in one.front) == sorted(
        tuple(point.values.values()) for point in other.front
    )
    assert one.front.hypervolume == pytest.approx(other.front.hypervolume)


@given(results(), st.sampled_from([2.0**k for k in range(-20, 21)]))
@settings(max_examples=40)
def test_the_units_of_an_objective_change_neither_front_nor_knee(drawn: Any, factor: float) -> None:
    """Powers of two, for which arithmetic is exact."""
    minimized, rows = drawn
    scaled = [(row[0], factor * row[1], *row[2:]) for row in rows]
    one, other = study_of(minimized, rows).front, study_of(minimized, scaled).front
    assert [point.trial.number for point in one] == [point.trial.number for point in other]
    assert knee(one).trial.number == knee(other).trial.number


@given(results(), st.lists(st.integers(1, 5), min_size=3, max_size=3))
@settings(max_examples=40)
def test_what_weights_pick_is_on_the_front_and_the_least(drawn: Any, weights: list[int]) -> None:
    study = study_of(*drawn)
    chosen = dict(zip(NAMES, map(float, weights), strict=False))
    wishes = {one.name: chosen[one.name] for one in study.problem.objectives}

    def total(values: Any) -> float:
        return sum(one.loss(wishes[one.name] * values[one.name]) for one in study.problem.objectives)

    best = study.pick(**wishes)
    assert best.trial.number in {point.trial.number for point in study.front}
    assert total(best.values) == min(total(values_of(study.problem, trial)) for trial in study.trials)


@given(results(), NUMBERS)
@settings(max_examples=40)
def test_limits_are_kept_by_all_of_the_front(drawn: Any, bound: float) -> None:
    study = study_of(*drawn, latency=ft.AtMost(bound))
    assert all(point.values["latency"] <= bound for point in study.front)
    kept = [trial for trial in study.trials if (values_of(study.problem, trial) or {})["latency"] <= bound]
    assert bool(len(study.front)) == bool(kept)
    assert (study.best.values["latency"] <= bound) == bool(kept)


# ---- one objective without limits: as it always was ---------------------------------------------------------------


@given(st.booleans(), st.integers(0, 9), st.sampled_from(["seconds", "dollars"]), st.booleans())
def test_a_problem_of_one_value_is_stored_as_before(minimize: bool, seed: int, unit: str, measures: bool) -> None:
    problem = Problem(SPACE, value="f1", minimize=minimize, seed=seed, cost_unit=unit, measures_cost=measures)
    form = problem.to_json()
    assert list(form) == ["space", "value", "minimize", "seed", "cost_unit", "measures_cost"]
    assert Problem.from_json(form) == problem


LIMITS = st.one_of(NUMBERS.map(ft.AtMost), NUMBERS.map(ft.AtLeast), st.just(ft.Succeeds()))


@given(st.lists(st.booleans(), max_size=2), st.dictionaries(st.sampled_from(["memory", "error", "recall"]), LIMITS))
def test_a_problem_of_several_is_stored_whole(further: list[bool], limits: Any) -> None:
    others = tuple(Objective(name, minimize=is_less) for name, is_less in zip(NAMES[1:], further, strict=False))
    problem = Problem(SPACE, value="error", further=others, constraints=limits)
    assert Problem.from_json(problem.to_json()) == problem
    assert list(Problem.from_json(problem.to_json()).constraints) == list(limits)


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=10))
@settings(max_examples=40)
def test_metrics_of_a_study_with_one_value_change_nothing(rows: list[tuple[float, float]]) -> None:
    """A study that logs a latency and one that does not have the same best, order and texts but for the column."""
    plain, logs = (ft.Study(SPACE, minimize="error", strategy="Random") for _ in range(2))
    for place, (error, latency) in enumerate(rows):
        plain.tell(plain.ask(), error, cost=1.0 + place)
        logs.tell(logs.ask(), {"error": error, "latency": latency}, cost=1.0 + place)
    assert plain.best.to_json() == logs.best.to_json()
    assert repr(plain.best) == repr(logs.best)
    assert repr(plain.top(5)) == repr(logs.top(5))
    assert plain.best.values == {"error": plain.best.value}
    assert isinstance(Front.of(plain.history).points, tuple)


def test_the_hypervolume_of_many_objectives_is_estimated() -> None:
    """The exact volume of five and six objectives, which takes seconds to minutes of larger fronts."""
    rng = np.random.default_rng(0)
    for m in (5, 6):
        rows = rng.random((20, m))
        reference = np.full(m, 1.1)
        box = float(np.prod(reference - rows.min(axis=0)))
        assert volume_of(rows, reference) == pytest.approx(hypervolume(rows, reference), abs=0.02 * box)
