import math

import pytest

from farthing import Budget, Float, Space, State, Trial
from farthing.costs import Remaining
from farthing.errors import InvalidArgument
from farthing.extending import History, Measurement, Prediction, Suggestion
from farthing.trials import Problem

PROBLEM = Problem(Space({"x": Float(0, 1)}))


def trial(
    number: int, state: State, *, paid: float = 0.0, predicted: float | None = None, resume_from: int | None = None
) -> Trial:
    suggestion = Suggestion(
        {"x": 0.5}, resume_from=resume_from, predicted_cost=None if predicted is None else Prediction(predicted)
    )
    return Trial(number, suggestion, state, measurements=(Measurement(cost={"training": paid}),))


def test_the_cost_of_failed_and_lost_trials_counts() -> None:
    history = History(
        PROBLEM, [trial(0, State.FAILED, paid=3), trial(1, State.LOST, paid=2), trial(2, State.DONE, paid=1)]
    )
    assert Budget(cost=10).remaining(history, seconds=0).cost == 4


def test_trials_in_flight_hold_back_what_they_are_predicted_to_cost_still() -> None:
    history = History(PROBLEM, [trial(0, State.RUNNING, paid=2, predicted=5)])
    assert Budget(cost=10).remaining(history, seconds=0).cost == 10 - 5


def test_trials_that_wait_hold_nothing_back_from_each_other() -> None:
    history = History(PROBLEM, [trial(0, State.RUNNING, paid=2, predicted=5), trial(1, State.PENDING, predicted=4)])
    budget = Budget(cost=10, seconds=60)
    assert budget.remaining_for_waiting(history, seconds=20) == Remaining(cost=10 - 5, seconds=40)
    assert budget.remaining(history, seconds=20) == Remaining(cost=10 - 5 - 4, seconds=40)


def test_continuations_do_not_count_as_trials() -> None:
    history = History(PROBLEM, [trial(0, State.DONE), trial(1, State.DONE, resume_from=0)])
    assert Budget(trials=5).remaining(history, seconds=0).trials == 4


def test_limits_that_were_not_set_never_run_out() -> None:
    left = Budget(trials=1).remaining(History(PROBLEM, [trial(0, State.DONE, paid=1e9)]), seconds=1e9)
    assert (left.cost, left.seconds) == (math.inf, math.inf)
    assert left.trials == 0


def test_a_predicted_cost_that_does_not_fit_is_not_covered() -> None:
    left = Remaining(cost=4.0)
    assert left.covers(Prediction(4.0), is_new=True, in_seconds=False)
    assert not left.covers(Prediction(4.1), is_new=True, in_seconds=False)


def test_the_last_trial_may_start() -> None:
    assert Remaining(trials=1).covers(None, is_new=True, in_seconds=False)
    assert not Remaining(trials=0).covers(None, is_new=True, in_seconds=False)


def test_a_cost_in_seconds_must_fit_the_wall_clock_too() -> None:
    left = Remaining(seconds=4.0)
    assert not left.covers(Prediction(5.0), is_new=True, in_seconds=True)
    assert left.covers(Prediction(5.0), is_new=True, in_seconds=False)


def test_a_cost_in_seconds_may_use_the_wall_clock_up() -> None:
    assert Remaining(seconds=4.0).covers(Prediction(4.0), is_new=True, in_seconds=True)


@pytest.mark.parametrize(("left", "covers"), [(0.5, True), (0.0, False), (-1.0, False)])
@pytest.mark.parametrize("limit", ["cost", "seconds"])
def test_without_a_prediction_anything_that_is_left_will_do(limit: str, left: float, covers: bool) -> None:
    assert Remaining(**{limit: left}).covers(None, is_new=True, in_seconds=False) is covers


def test_a_trial_that_started_takes_its_prediction_and_a_new_one_takes_a_trial() -> None:
    left = Remaining(cost=10.0, seconds=60.0, trials=3)
    assert left.less(Prediction(4.0), is_new=True) == Remaining(cost=6.0, seconds=60.0, trials=2)
    assert left.less(None, is_new=False) == left


def test_a_trial_that_has_overspent_holds_nothing_back() -> None:
    history = History(PROBLEM, [trial(0, State.RUNNING, paid=7, predicted=5)])
    assert Budget(cost=10).remaining(history, seconds=0).cost == 10 - 7


@pytest.mark.parametrize("limit", ["cost", "seconds", "trials"])
@pytest.mark.parametrize(("left", "is_spent"), [(-1, True), (0, True), (1, False)])
def test_what_is_left_is_spent_when_one_limit_is(limit: str, left: float, is_spent: bool) -> None:
    assert Remaining(**{limit: left}).is_spent is is_spent
    assert Remaining(**{limit: left}).pays_nothing is (is_spent and limit != "trials")


def test_the_clock_counts_against_seconds() -> None:
    assert Budget(seconds=60).remaining(History(PROBLEM), seconds=12.5).seconds == 47.5


def test_the_stored_form_has_the_limits_that_were_set() -> None:
    assert Budget(cost=2.5, trials=4).to_json() == {"cost": 2.5, "trials": 4}


def test_a_spent_count_of_trials_still_covers_continuations() -> None:
    left = Remaining(trials=0)
    assert left.covers(None, is_new=False, in_seconds=True)
    assert not left.covers(None, is_new=True, in_seconds=True)


@pytest.mark.parametrize(
    ("limits", "rule"),
    [
        ({}, "needs a limit"),
        ({"cost": -1}, "cost must be a number above 0 or None, got -1"),
        ({"seconds": 0}, "seconds must be a number above 0 or None, got 0"),
        ({"trials": 2.5}, "trials must be a whole number ≥ 1 or None, got 2.5"),
        ({"cost": math.nan}, "cost must be"),
        ({"seconds": "60"}, "seconds must be"),
        ({"trials": True}, "trials must be"),
    ],
)
def test_a_budget_that_cannot_be_meant_is_refused(limits: dict[str, object], rule: str) -> None:
    with pytest.raises(InvalidArgument, match=rule):
        Budget(**limits)  # type: ignore[arg-type]
