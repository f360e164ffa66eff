"""When a model may be asked."""

import pytest

import farthing as ft
from farthing.strategies.shared.effort import can_pay_for_model
from farthing.trials import History, Measurement, Problem, State, Suggestion, Trial

PROBLEM = Problem(ft.Space({"x": ft.Float(0, 1)}))


def trial(number: int, *, took: float, state: State = State.DONE, of_model: bool = False) -> Trial:
    suggestion = Suggestion({"x": 0.5}, note={"theta": [0.0]} if of_model else {})
    if state is not State.DONE:
        return Trial(number, suggestion, state, overhead=took)
    measured = Measurement(value=1.0, cost={"training": 1.0})
    return Trial(number, suggestion, state, value=1.0, measurements=(measured,), overhead=took)


def is_of_model(one: Trial) -> bool:
    return "theta" in (one.note or {})


def history(since: int, *, running: int) -> History:
    """One suggestion of the model that took 0.2 s of a trial's one second, and `since` others, some in flight."""
    others = [trial(i + 1, took=0.001) for i in range(since - running)]
    in_flight = [trial(since - running + 1 + i, took=0.001, state=State.RUNNING) for i in range(running)]
    return History(PROBLEM, [trial(0, took=0.2, of_model=True), *others, *in_flight])


@pytest.mark.parametrize(("running", "every"), [(0, 4), (1, 8), (7, 32)])
def test_the_model_is_asked_once_in_so_many_trials_that_it_keeps_to_a_twentieth(running: int, every: int) -> None:
    """0.2 s for each of running + 1 workers, of which each trial may take 0.05 s."""
    assert not can_pay_for_model(history(every - 2, running=running), is_of_model)
    assert can_pay_for_model(history(every - 1, running=running), is_of_model)


def test_a_model_that_was_never_asked_may_be() -> None:
    assert can_pay_for_model(History(PROBLEM, []), is_of_model)
    assert can_pay_for_model(History(PROBLEM, [trial(0, took=0.1)]), is_of_model)
