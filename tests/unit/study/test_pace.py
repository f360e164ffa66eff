"""How much a run may think, from what is stored with its trials."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

import farthing as ft
from farthing.costs import EFFORT_LEVELS, EffortLevel
from farthing.strategies.shared.effort import seconds_of_a_trial
from farthing.study.knowledge import KNEW
from farthing.study.pace import (
    PROBED_AFTER,
    allowed_effort,
    is_long_to_wait,
    queued_ahead,
    suggested_together,
)
from farthing.trials import History, Measurement, Problem, State, Suggestion, Trial

SPACE = ft.Space({"x": ft.Float(0, 1)})
IN_SECONDS = Problem(SPACE)
IN_DOLLARS = Problem(SPACE, cost_unit="dollars", measures_cost=False)


def suggested(
    *, took: float, seconds: float, effort: EffortLevel | None = None, asked: int = 1, charged: float | None = None
) -> Trial:
    """A trial of that many seconds, whose suggestion took so long; its number is set by `history`."""
    knew = {"trials": 0, "running": [], "left": {}, "asked": asked, **({"effort": effort} if effort else {})}
    cost = Measurement(
        value=1.0, cost={"training": seconds if charged is None else charged}, charged=charged is not None
    )
    return Trial(
        0,
        Suggestion({"x": 0.5}, note={KNEW: knew}),
        State.DONE,
        measurements=(cost,),
        value=1.0,
        overhead=took,
        opened_at=100.0,
        finished_at=100.0 + seconds,
    )


def history(trials: Sequence[Trial], problem: Problem = IN_SECONDS) -> History:
    return History(problem, [replace(trial, number=number) for number, trial in enumerate(trials)])


def test_nothing_is_known_at_the_beginning() -> None:
    assert allowed_effort(history([]), workers=8) == "ordinary"
    assert not is_long_to_wait(history([]), "ordinary")
    assert seconds_of_a_trial(history([])) is None


@pytest.mark.parametrize(("workers", "effort"), [(1, "ordinary"), (2, "ordinary"), (3, "frugal"), (8, "frugal")])
def test_suggesting_for_all_workers_may_take_a_tenth_of_a_trial(workers: int, effort: str) -> None:
    assert allowed_effort(history([suggested(took=0.05, seconds=1.0)] * 60), workers=workers) == effort


@pytest.mark.parametrize(("suggestions", "effort"), [(19, "ordinary"), (21, "frugal")])
def test_the_first_two_seconds_of_suggesting_are_free(suggestions: int, effort: str) -> None:
    assert allowed_effort(history([suggested(took=0.1, seconds=0.01)] * suggestions), workers=8) == effort


def test_effort_steps_down_level_by_level_as_far_as_it_must() -> None:
    trials: list[Trial] = []
    for level, following in zip(EFFORT_LEVELS, [*EFFORT_LEVELS[1:], EFFORT_LEVELS[-1]], strict=True):
        trials += [suggested(took=0.5, seconds=1.0, effort=level)] * 5
        assert allowed_effort(history(trials), workers=1) == following


def test_effort_comes_back_when_trials_get_longer() -> None:
    short = [suggested(took=0.2, seconds=1.0, effort=level) for level in EFFORT_LEVELS for _ in range(5)]
    longer = [suggested(took=0.2, seconds=100.0, effort="several")] * 5
    assert allowed_effort(history(short), workers=1) == "several"
    assert allowed_effort(history([*short, *longer]), workers=1) == "ordinary"


def test_a_level_that_hardly_took_too_long_is_tried_again_after_a_while() -> None:
    """The machine may have been busy; a level that took ten times too long is not tried again."""
    quick = [suggested(took=0.01, seconds=1.0, effort="frugal")] * (PROBED_AFTER + 1)
    hardly = [suggested(took=0.3, seconds=1.0)] * 7
    by_far = [suggested(took=1.0, seconds=1.0)] * 5
    assert allowed_effort(history([*hardly, *quick[:-2]]), workers=1) == "frugal"
    assert allowed_effort(history([*hardly, *quick]), workers=1) == "ordinary"
    assert allowed_effort(history([*by_far, *quick]), workers=1) == "frugal"


def test_one_slow_suggestion_changes_nothing() -> None:
    """The first one of a process imports what the others use."""
    trials = [suggested(took=5.0, seconds=1.0), *[suggested(took=0.01, seconds=1.0)] * 4]
    assert allowed_effort(history(trials), workers=2) == "ordinary"


def test_seconds_count_whatever_the_unit_of_cost() -> None:
    """Dollars say nothing of time: the storage's clock does, and it does for seconds that were charged."""
    trials = [suggested(took=0.5, seconds=1.0, charged=1000.0)] * 5
    for problem in (IN_SECONDS, IN_DOLLARS):
        assert seconds_of_a_trial(history(trials, problem)) == 1.0
        assert allowed_effort(history(trials, problem), workers=1) == "frugal"


def test_a_worker_may_wait_for_a_fiftieth_of_a_trial() -> None:
    assert not is_long_to_wait(history([suggested(took=0.019, seconds=1.0)] * 5), "ordinary")
    assert is_long_to_wait(history([suggested(took=0.021, seconds=1.0)] * 5), "ordinary")
    together = history([suggested(took=0.006, seconds=1.0, effort="several", asked=4)] * 5)
    assert is_long_to_wait(together, "several"), "the seconds of a call are shared among its suggestions"


@pytest.mark.parametrize(("took", "together"), [(0.01, 1), (0.02, 2), (0.05, 4), (9.0, 8)])
def test_as_many_are_made_together_as_bring_the_time_of_each_to_its_share(took: float, together: int) -> None:
    """Eight workers with trials of a second: each suggestion may take an eighth of a tenth of a second."""
    made = history([suggested(took=took, seconds=1.0, effort="screen")] * 320)
    assert suggested_together(made, workers=8) == together


@pytest.mark.parametrize(("known", "together"), [(1, 1), (79, 1), (80, 2), (200, 5), (320, 8), (1000, 8)])
def test_what_is_made_together_misses_few_results_beside_those_it_knows(known: int, together: int) -> None:
    made = history([suggested(took=9.0, seconds=1.0, effort="screen")] * known)
    assert suggested_together(made, workers=8) == together


def test_what_users_enqueue_takes_no_time_to_suggest() -> None:
    trials = [suggested(took=0.5, seconds=1.0)] * 5 + [suggested(took=0.0, seconds=1.0)] * 5
    assert allowed_effort(history(trials), workers=1) == "frugal"


def test_idle_workers_have_a_suggestion_each_in_the_queue() -> None:
    assert queued_ahead(history([]), workers=6) == 6
    running = Trial(0, Suggestion({"x": 0.5}), State.RUNNING)
    assert queued_ahead(history([running] * 4), workers=6) == 2
    assert queued_ahead(history([running] * 8), workers=6) == 0


def test_busy_workers_find_as_many_as_will_end_unless_they_would_miss_too_much() -> None:
    """Eight workers whose trials take 4 s: two end before the next look, and with 80 results two may be missed."""
    running = [Trial(0, Suggestion({"x": 0.5}), State.RUNNING)] * 8
    assert queued_ahead(history([*[suggested(took=0.0, seconds=4.0)] * 200, *running]), workers=8) == 2
    assert queued_ahead(history([*[suggested(took=0.0, seconds=4.0)] * 40, *running]), workers=8) == 1
    assert queued_ahead(history([*[suggested(took=0.0, seconds=4.0)] * 39, *running]), workers=8) == 0


def test_a_history_that_grows_is_looked_through_once_with_the_same_result() -> None:
    """Efforts that were tried long ago count as if the whole history were looked through every time."""
    efforts: list[EffortLevel] = ["ordinary", "frugal", "screen", "several"]
    trials = [
        replace(suggested(took=0.1 + 0.3 * (i % 5), seconds=1.0, effort=efforts[(i * i // 7) % 4]), number=i)
        for i in range(60)
    ]
    histories = [History(IN_SECONDS)]
    for one in trials:
        histories.append(histories[-1].updated([one], version=one.number))
    grown = [(allowed_effort(one, workers=2), suggested_together(one, workers=8)) for one in histories]
    assert len({effort for effort, _ in grown}) > 1
    for grew, found in zip(histories, grown, strict=True):
        afresh = History(IN_SECONDS, grew)
        assert (allowed_effort(afresh, workers=2), suggested_together(afresh, workers=8)) == found


def test_another_history_is_not_taken_for_one_that_grew() -> None:
    slow = history([suggested(took=0.5, seconds=1.0)] * 5)
    quick = history([suggested(took=0.001, seconds=1.0)] * 9)
    assert allowed_effort(slow, workers=1) == "frugal"
    assert allowed_effort(quick, workers=1) == "ordinary"
    assert allowed_effort(slow, workers=1) == "frugal"
