"""What a trial is taken to cost that nothing predicts, and what a trial in flight holds back."""

import pytest

from farthing import Budget, Fidelity, Float, Space, State, Trial
from farthing.costs.expected import expected_cost
from farthing.extending import History, Measurement, Prediction, Suggestion
from farthing.trials import Problem

PLAIN = Problem(Space({"x": Float(0, 1)}))
EPOCHS = {"epochs": Fidelity(1, 10, integer=True, trace=True)}
TRACED = Problem(Space({"x": Float(0, 1)}, fidelities=EPOCHS))


def trial(number: int, state: State, *costs: float, epochs: int | None = None, source: int | None = None) -> Trial:
    """One that reports every epoch, from that after its source's on, at these costs."""
    before = 0 if source is None else 1
    points = tuple(
        Measurement(
            value=1.0,
            cost={"training": cost},
            fidelity={"epochs": before + place + 1} if epochs else {},
            sequence=place,
        )
        for place, cost in enumerate(costs)
    )
    fidelity = {} if epochs is None else {"epochs": epochs}
    suggestion = Suggestion({"x": 0.5}, fidelity, resume_from=source)
    start = None if source is None else "c"
    return Trial(number, suggestion, state, measurements=points, checkpoint="c", resume_checkpoint=start)


def mean(history: History, suggestion: Suggestion) -> float:
    expected = expected_cost(history, suggestion)
    assert expected is not None
    return expected.mean


def test_nothing_is_expected_while_nothing_was_seen() -> None:
    history = History(PLAIN, [trial(0, State.RUNNING, 2.0), trial(1, State.FAILED, 3.0)])
    assert expected_cost(history, Suggestion({"x": 0.1})) is None


def test_a_trial_is_expected_to_cost_what_those_before_it_did() -> None:
    history = History(PLAIN, [trial(0, State.DONE, 2.0), trial(1, State.DONE, 4.0), trial(2, State.FAILED, 90.0)])
    assert expected_cost(history, Suggestion({"x": 0.1})) == Prediction(3.0)


def test_it_is_in_proportion_to_the_share_of_a_training() -> None:
    history = History(TRACED, [trial(0, State.DONE, 4.0, epochs=1), trial(1, State.DONE, 1.0, 1.0, 1.0, epochs=3)])
    pace = 7.0 / 4  # an epoch
    assert mean(history, Suggestion({"x": 0.1}, {"epochs": 10})) == pytest.approx(10 * pace)
    continued = Suggestion({"x": 0.5}, {"epochs": 10}, resume_from=1)
    assert mean(history, continued) == pytest.approx(7 * pace)


def test_a_continuation_is_seen_to_pay_for_its_new_part_only() -> None:
    first, second = trial(0, State.DONE, 2.0, epochs=1), trial(1, State.DONE, 2.0, 2.0, epochs=3, source=0)
    history = History(TRACED, [first, second])
    assert mean(history, Suggestion({"x": 0.1}, {"epochs": 10})) == pytest.approx(20.0)


def test_results_from_elsewhere_that_were_free_tell_nothing() -> None:
    history = History(PLAIN, [trial(0, State.DONE, 0.0), trial(1, State.DONE, 4.0)])
    assert expected_cost(history, Suggestion({"x": 0.1})) == Prediction(4.0)


def test_what_the_strategy_predicted_is_taken() -> None:
    history = History(PLAIN, [trial(0, State.DONE, 2.0)])
    suggestion = Suggestion({"x": 0.1}, predicted_cost=Prediction(7.0, 1.0))
    assert expected_cost(history, suggestion) == Prediction(7.0, 1.0)


def test_trials_in_flight_without_a_prediction_hold_back_what_others_cost() -> None:
    history = History(PLAIN, [trial(0, State.DONE, 3.0), trial(1, State.RUNNING, 1.0), trial(2, State.PENDING)])
    assert Budget(cost=10.0).remaining(history, seconds=0.0).cost == 10.0 - 3.0 - 3.0 - 3.0
    assert Budget(cost=10.0).remaining_for_waiting(history, seconds=0.0).cost == 10.0 - 3.0 - 3.0


def test_one_that_goes_slowly_holds_back_what_its_own_pace_says() -> None:
    """A straggler: it has cost more than was predicted, and has most of its epochs to go."""
    straggler = trial(0, State.RUNNING, 9.0, 2.0, 2.0, epochs=10)
    history = History(TRACED, [straggler])
    assert Budget(cost=100.0).remaining(history, seconds=0.0).cost == pytest.approx(100.0 - 13.0 - 7 * 2.0)


def test_one_that_has_reported_all_of_it_holds_nothing_back() -> None:
    history = History(TRACED, [trial(0, State.RUNNING, 1.0, 2.0, 2.0, epochs=3)])
    assert Budget(cost=100.0).remaining(history, seconds=0.0).cost == 95.0
