"""How far a run suggests ahead, from counts and the stored power of ten of a trial's seconds."""

import pytest

import farthing as ft
from farthing.running.suggestions import is_long_to_wait, queued_ahead, suggested_together
from farthing.trials import History, Measurement, Problem, State, Suggestion, Trial
from farthing.trials.events import DURATION
from farthing.trials.history import Event

PROBLEM = Problem(ft.Space({"x": ft.Float(0, 1)}))


class Thinker(ft.LogEI):
    thinking = 0.02


class Slow(ft.LogEI):
    thinking = 9.0


def history(done: int, *, decade: int | None = 0, running: int = 0) -> History:
    measured = (Measurement(value=1.0, cost={"training": 1.0}),)
    trials = [Trial(i, Suggestion({"x": 0.5}), State.DONE, measurements=measured, value=1.0) for i in range(done)]
    trials += [Trial(done + i, Suggestion({"x": 0.5}), State.RUNNING) for i in range(running)]
    events = [] if decade is None else [Event(DURATION, {"decade": decade, "results": 5, "trials": 5})]
    return History(PROBLEM, trials, events=events)


def test_a_worker_may_wait_for_a_fiftieth_of_a_trial() -> None:
    assert not is_long_to_wait(Thinker(), history(0), "ordinary")
    assert is_long_to_wait(Thinker(), history(1), "ordinary")
    assert not is_long_to_wait(Thinker(), history(100), "several")
    assert not is_long_to_wait(Slow(), history(5, decade=None), "ordinary"), "nothing is known yet"


@pytest.mark.parametrize(("decade", "together"), [(1, 1), (0, 2), (-1, 8)])
def test_as_many_are_made_together_as_bring_the_time_of_each_to_its_share(decade: int, together: int) -> None:
    """In haste a suggestion takes some 20 ms after 320 trials, and there are eight workers."""
    assert suggested_together(Thinker(), history(320, decade=decade), workers=8) == together


@pytest.mark.parametrize(("known", "together"), [(1, 1), (79, 1), (80, 2), (200, 5), (320, 8), (1000, 8)])
def test_what_is_made_together_misses_few_results_beside_those_it_knows(known: int, together: int) -> None:
    assert suggested_together(Slow(), history(known), workers=8) == together


def test_idle_workers_have_a_suggestion_each_in_the_queue() -> None:
    assert queued_ahead(Thinker(), history(0), workers=6) == 6
    assert queued_ahead(Thinker(), history(0, running=4), workers=6) == 2
    assert queued_ahead(Thinker(), history(0, running=8), workers=6) == 0


@pytest.mark.parametrize(("known", "ahead"), [(39, 0), (40, 1), (80, 1), (200, 1)])
def test_busy_workers_find_as_many_as_will_end_unless_they_would_miss_too_much(known: int, ahead: int) -> None:
    """Of eight workers whose trials take ten seconds one ends before the next look."""
    assert queued_ahead(Thinker(), history(known, decade=1, running=8), workers=8) == ahead


def test_one_worker_has_nothing_suggested_ahead() -> None:
    assert queued_ahead(Thinker(), history(200, decade=-2, running=1), workers=1) == 0
    assert queued_ahead(Thinker(), history(200, decade=-2), workers=1) == 1
