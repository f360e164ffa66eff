"""Long series and long studies, thinned."""

from dataclasses import replace
from itertools import pairwise

import pytest

import farthing as ft
from farthing.analysis.lines import Lines
from farthing.analysis.outlook import promising_runs, renumbered
from farthing.analysis.sampling import steady_places

SPACE = ft.Space({"x": ft.Float(0, 1)}, fidelities={"epochs": ft.Fidelity(1, 9, integer=True, trace=True)})


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 100, 1000])
def test_steady_places_are_few_and_even(count: int) -> None:
    places = steady_places(count, 8).tolist()

    assert len(places) <= 8
    assert len({b - a for a, b in pairwise(places)}) <= 1
    assert places[:1] == [0][:count]


def test_steady_places_stay_while_a_study_grows() -> None:
    """What was read of trials that have ended is read once: a longer study shows some of the same trials."""
    for count in range(8, 200):
        assert set(steady_places(count + 1, 8).tolist()) - {count} <= set(steady_places(count, 8).tolist())


@pytest.fixture
def study():
    """Ten short runs, of which the last two were continued."""
    made = ft.Study(SPACE, minimize="loss", strategy=ft.Hyperband(), seed=1)
    for place in range(10):
        made.add({"x": place / 10}, place / 10, fidelity={"epochs": 1}, cost=1.0)
    for source in (8, 9):
        trial = made.add({"x": source / 10}, source / 20, fidelity={"epochs": 9}, cost=8.0)
        assert trial.number == source + 2
    yield made
    made.close()


def continued(study: ft.Study) -> Lines:
    lines = Lines.of(study.history)
    lines.resume_from[10], lines.resume_from[11] = 8, 9
    return lines


def test_promising_runs_went_furthest_and_come_with_what_they_continue(study) -> None:
    lines = continued(study)

    numbers = promising_runs(lines, study.problem, most=4)

    assert {8, 9, 10, 11} <= set(numbers)
    assert len(numbers) <= 6
    assert numbers == sorted(numbers)


def test_trials_are_renumbered_with_what_they_continue(study) -> None:
    trials = [study.trials[number] for number in (3, 8, 10)]
    trials[2] = replace(trials[2], suggestion=replace(trials[2].suggestion, resume_from=8))

    found = renumbered(trials)

    assert [trial.number for trial in found] == [0, 1, 2]
    assert [trial.resume_from for trial in found] == [None, None, 1]
    assert [trial.value for trial in found] == [trial.value for trial in trials]
