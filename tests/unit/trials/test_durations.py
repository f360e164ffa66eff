"""How long a full trial takes, decided once and stored."""

from dataclasses import replace

import pytest

import farthing as ft
from farthing.trials import History, Measurement, Problem, State, Suggestion, Trial
from farthing.trials.events import DURATION, decade_of, duration_due, share_trained
from farthing.trials.history import Event

PLAIN = Problem(ft.Space({"x": ft.Float(0, 1)}))
CURVES = Problem(ft.Space({"x": ft.Float(0, 1)}, fidelities={"epochs": ft.Fidelity(1, 10, integer=True, trace=True)}))


def done(number: int, seconds: float, *, epochs: int | None = None, resume_from: int | None = None) -> Trial:
    fidelity = {} if epochs is None else {"epochs": epochs}
    return Trial(
        number,
        Suggestion({"x": 0.5}, fidelity, resume_from=resume_from),
        State.DONE,
        measurements=(Measurement(value=1.0, cost={"training": seconds}, fidelity=fidelity),),
        value=1.0,
        opened_at=100.0,
        finished_at=100.0 + seconds,
    )


def history(seconds: list[float], problem: Problem = PLAIN, *, events: tuple[Event, ...] = ()) -> History:
    return History(problem, [done(number, one) for number, one in enumerate(seconds)], events=events)


def decided(decade: int, results: int) -> Event:
    return Event(DURATION, {"decade": decade, "results": results, "trials": results})


@pytest.mark.parametrize(
    ("seconds", "decade"), [(0.001, -3), (0.03, -2), (0.033, -1), (0.3, -1), (0.33, 0), (3.0, 0), (40.0, 2)]
)
def test_seconds_are_rounded_to_a_power_of_ten(seconds: float, decade: int) -> None:
    due = duration_due(history([seconds] * 5))
    assert due == {"decade": decade, "results": 5, "trials": 5}


def test_nothing_is_decided_before_the_fifth_result() -> None:
    assert duration_due(history([1.0] * 4)) is None
    assert decade_of(history([1.0] * 4).events) is None


def test_it_is_decided_once_and_again_at_fixed_numbers_of_results() -> None:
    once = (decided(0, 5),)
    assert duration_due(history([1.0] * 49, events=once)) is None
    assert duration_due(history([1.0] * 50, events=once)) == {"decade": 0, "results": 50, "trials": 50}
    assert duration_due(history([1.0] * 51, events=(*once, decided(0, 50)))) is None


def test_a_decade_stays_unless_it_is_clearly_another() -> None:
    once = (decided(0, 5),)
    hardly, clearly = history([5.0] * 50, events=once), history([6.0] * 50, events=once)
    assert (duration_due(hardly) or {})["decade"] == 0
    assert (duration_due(clearly) or {})["decade"] == 1


def test_of_two_decisions_at_once_the_first_counts() -> None:
    assert decade_of((decided(0, 5), decided(1, 5))) == 0
    assert decade_of((decided(0, 5), decided(1, 50), decided(2, 50))) == 1


def test_costs_that_no_clock_measured_decide_nothing() -> None:
    dollars = replace(PLAIN, cost_unit="dollars", measures_cost=False)
    assert duration_due(history([1.0] * 5, dollars)) is None


def test_with_prices_the_clock_of_the_storage_decides() -> None:
    assert duration_due(history([1.0] * 5, replace(PLAIN, cost_unit="dollars"))) is not None


def test_a_tenth_of_the_training_stands_for_ten_times_its_seconds() -> None:
    starts = History(CURVES, [done(number, 0.1, epochs=1) for number in range(5)])
    assert (duration_due(starts) or {})["decade"] == 0


def test_a_continued_run_trains_the_difference() -> None:
    run = History(CURVES, [done(0, 0.2, epochs=2), done(1, 0.6, epochs=8, resume_from=0)])
    assert [share_trained(run, trial) for trial in run] == pytest.approx([0.2, 0.6])
