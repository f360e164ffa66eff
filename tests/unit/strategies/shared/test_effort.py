"""How much a strategy may think: from counts, and the stored power of ten of a trial's seconds."""

from dataclasses import replace

import pytest

import farthing as ft
from farthing.costs import EffortLevel, Remaining
from farthing.extending import Strategy
from farthing.strategies.shared.effort import (
    allowed_effort,
    can_pay_for_model,
    effort_level,
    seconds_of_a_trial,
)
from farthing.trials import History, Measurement, Problem, State, Suggestion, Trial
from farthing.trials.events import BUDGET, DURATION, budget_event
from farthing.trials.history import Event

PROBLEM = Problem(ft.Space({"x": ft.Float(0, 1)}))
CURVES = Problem(ft.Space({"x": ft.Float(0, 1)}, fidelities={"epochs": ft.Fidelity(1, 10, integer=True, trace=True)}))
LONG = 1000
"""Trials by which nothing is free any more."""


class Thinker(ft.LogEI):
    """Takes a fiftieth of a second for a suggestion."""

    thinking = 0.02


class Slow(ft.LogEI):
    """Takes twenty seconds, beside which the two that are free count little."""

    thinking = 20.0


class Hasty(Thinker):
    """Can do with a seventh of it."""

    haste = 0.15


class Free(ft.LogEI):
    thinking = 0.0


def trial(number: int, *, state: State = State.DONE, of_model: bool = False, epochs: int | None = None) -> Trial:
    fidelity = {} if epochs is None else {"epochs": epochs}
    suggestion = Suggestion({"x": 0.5}, fidelity, note={"theta": [0.0]} if of_model else {})
    if state is not State.DONE:
        return Trial(number, suggestion, state)
    measured = Measurement(value=1.0, cost={"training": 1.0}, fidelity=fidelity)
    return Trial(number, suggestion, state, value=1.0, measurements=(measured,))


def history(trials: int, *, decade: int | None, budget: ft.Budget | None = None) -> History:
    events = [] if decade is None else [Event(DURATION, {"decade": decade, "results": 5, "trials": 5})]
    if budget is not None:
        events.append(Event(BUDGET, budget_event(budget.to_json(), trials=0, given=True)))
    return History(PROBLEM, [trial(number) for number in range(trials)], events=events)


def test_all_effort_is_allowed_while_nothing_is_decided() -> None:
    assert allowed_effort(Thinker(), history(LONG, decade=None), workers=64) == "ordinary"
    assert seconds_of_a_trial(history(LONG, decade=None)) is None


@pytest.mark.parametrize(
    ("decade", "workers", "effort"),
    [(1, 8, "ordinary"), (0, 1, "ordinary"), (0, 2, "screen"), (0, 8, "several"), (-1, 1, "several")],
)
def test_suggesting_for_all_workers_may_take_a_tenth_of_a_trial(decade: int, workers: int, effort: str) -> None:
    """After a thousand trials a suggestion takes a tenth of a second, five times as long as at the start."""
    assert allowed_effort(Thinker(), history(LONG, decade=decade), workers=workers) == effort


def test_a_strategy_that_takes_no_time_has_all_effort() -> None:
    assert allowed_effort(Free(), history(LONG, decade=-3), workers=64) == "ordinary"


@pytest.mark.parametrize(("trials", "effort"), [(100, "ordinary"), (101, "several")])
def test_the_first_two_seconds_of_suggesting_are_free(trials: int, effort: str) -> None:
    assert allowed_effort(Thinker(), history(trials, decade=-1), workers=1) == effort


@pytest.mark.parametrize(
    ("budget", "free"),
    [
        (ft.Budget(trials=320), 20),
        (ft.Budget(cost=32.0), 20),
        (ft.Budget(seconds=4.0), 20),
        (ft.Budget(trials=100_000), 100),
    ],
)
def test_several_workers_wait_for_a_tenth_of_a_short_budget_at_most(budget: ft.Budget, free: int) -> None:
    """Eight workers with trials of a tenth of a second: 320 trials last four seconds."""
    assert allowed_effort(Thinker(), history(free, decade=-1, budget=budget), workers=8) == "ordinary"
    assert allowed_effort(Thinker(), history(free + 1, decade=-1, budget=budget), workers=8) == "several"


@pytest.mark.parametrize("budget", [ft.Budget(trials=40), ft.Budget(cost=4.0), ft.Budget(seconds=4.0)])
def test_where_haste_saves_most_one_worker_too_waits_for_a_tenth_of_a_short_budget_at_most(budget: ft.Budget) -> None:
    """Trials of a tenth of a second for four seconds, and twenty suggestions take .4 seconds."""
    assert allowed_effort(Hasty(), history(20, decade=-1, budget=budget), workers=1) == "ordinary"
    assert allowed_effort(Hasty(), history(21, decade=-1, budget=budget), workers=1) == "screen"
    assert allowed_effort(Thinker(), history(21, decade=-1, budget=budget), workers=1) == "ordinary"


def test_in_four_seconds_a_pipeline_gets_six_suggestions_with_all_effort() -> None:
    """As docs/guides/strategies.md says."""
    found = [
        allowed_effort(ft.PrefixEI(), history(trials, decade=-1, budget=ft.Budget(cost=4.0)), workers=1)
        for trials in range(8)
    ]
    assert found == ["ordinary"] * 6 + ["several"] * 2


def test_what_a_run_allows_is_taken_and_one_worker_is_assumed_without_a_run() -> None:
    long = history(LONG, decade=-1)
    assert effort_level(Thinker(), long, Remaining(effort="frugal")) == "frugal"
    assert effort_level(Thinker(), long, Remaining()) == allowed_effort(Thinker(), long, workers=1)


def test_a_trial_that_trains_a_tenth_takes_a_tenth_of_the_seconds() -> None:
    events = [Event(DURATION, {"decade": 1, "results": 5, "trials": 5})]
    short = History(CURVES, [trial(number, epochs=1) for number in range(10)], events=events)
    assert seconds_of_a_trial(short) == pytest.approx(1.0)


def is_of_model(one: Trial) -> bool:
    return "theta" in (one.note or {})


def can_pay(thinker: Strategy, history: History, *, effort: EffortLevel = "several") -> bool:
    return can_pay_for_model(thinker, history, is_of_model, effort=effort)


def asked(
    times: int, *, others: int, running: int = 0, epochs: int = 10, cost: float = 1e6, decade: int = 2
) -> History:
    """Suggestions of the model and others, some of them in flight; full trials take ten to the `decade` seconds."""
    limits = ft.Budget(cost=cost).to_json()
    events = [
        Event(DURATION, {"decade": decade, "results": 5, "trials": 5}),
        Event(BUDGET, budget_event(limits, trials=0, given=True)),
    ]
    ended = [trial(number, of_model=number < times, epochs=epochs) for number in range(times + others - running)]
    in_flight = [trial(len(ended) + place, state=State.RUNNING, epochs=epochs) for place in range(running)]
    return History(CURVES, [*ended, *in_flight], events=events)


@pytest.mark.parametrize(("running", "others"), [(0, 10), (1, 31), (3, 74)])
def test_a_model_keeps_to_a_twentieth_of_all_that_was_trained(running: int, others: int) -> None:
    """About 9 s in haste for each of running + 1 workers, of which each full trial may take 5 s."""
    assert not can_pay(Slow(), asked(10, others=others - 6, running=running))
    assert can_pay(Slow(), asked(10, others=others + 6, running=running))


def test_short_trials_of_late_do_not_say_that_the_model_is_too_expensive() -> None:
    """Halving buys trials of a tenth of the epochs: long ones before them have paid for the model all the same."""
    long = asked(0, others=100)
    short = [trial(100 + place, epochs=1) for place in range(50)]

    assert seconds_of_a_trial(long.updated(short, version=1)) == pytest.approx(10.0)
    assert can_pay(Slow(), long.updated(short, version=1))
    assert not can_pay(Slow(), asked(100, others=100))


@pytest.mark.parametrize(("cost", "times"), [(1.0, 1), (4.0, 7), (1e6, 150)])
def test_the_first_suggestions_of_a_model_are_paid_from_the_budget(cost: float, times: int) -> None:
    """A fiftieth of what it lasts, and two seconds at most; a suggestion takes a little longer after each."""
    assert can_pay(Thinker(), asked(times, others=0, epochs=1, cost=cost, decade=-1))
    assert not can_pay(Thinker(), asked(2 * times, others=0, epochs=1, cost=cost, decade=-1))


def test_a_model_never_takes_more_than_a_fiftieth_of_the_budget_however_much_was_trained() -> None:
    """Two hundred trainings have paid for a hundred seconds of thinking, and the budget lasts for a hundred of them."""
    assert can_pay(Slow(), asked(20, others=200, cost=1e5))
    assert not can_pay(Slow(), asked(20, others=200, cost=1e4))


def test_a_suggestion_with_all_effort_costs_more_of_the_share_than_one_in_haste() -> None:
    assert can_pay(Thinker(), asked(1, others=0, epochs=1, cost=1.0, decade=-1), effort="several")
    assert not can_pay(Thinker(), asked(1, others=0, epochs=1, cost=1.0, decade=-1), effort="ordinary")


def test_what_ran_or_failed_is_counted_as_it_is_in_the_end() -> None:
    running = asked(0, others=40, running=40)
    failed = [replace(one, state=State.FAILED) for one in running]
    events = running.events

    assert not can_pay(Slow(), running.updated(failed, version=1))
    assert can_pay(Slow(), History(CURVES, [trial(i, epochs=10) for i in range(40)], events=events))


def test_a_model_that_was_never_asked_may_be() -> None:
    assert can_pay(Thinker(), History(PROBLEM, []))
    assert can_pay(Thinker(), history(20, decade=-3))
