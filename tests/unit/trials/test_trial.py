import pytest

from farthing import State, Trial
from farthing.errors import InvalidValue
from farthing.extending import Measurement, Suggestion
from farthing.trials import Failure
from farthing.trials.measurement import check_kind, cost_amount, finite_number


def trial_with(*measurements: Measurement, state: State = State.DONE, attempt: int = 1) -> Trial:
    return Trial(0, Suggestion({"x": 1.0}, {"epochs": 9}), state, attempt=attempt, measurements=measurements)


def at(epoch: int, value: float | None, seconds: float, *, attempt: int = 1, sequence: int = 0) -> Measurement:
    return Measurement(
        value=value, cost={"training": seconds}, fidelity={"epochs": epoch}, attempt=attempt, sequence=sequence
    )


def test_points_follow_the_curve_and_leave_out_measurements_without_a_value() -> None:
    trial = trial_with(at(3, 0.5, 1), at(1, 0.9, 1), Measurement(cost={"training": 1.0}))
    assert [(point.fidelity["epochs"], point.value) for point in trial.points] == [(1, 0.9), (3, 0.5)]


def test_a_retried_attempt_supersedes_points_at_equal_fidelity_and_both_costs_count() -> None:
    trial = trial_with(at(1, 0.9, 2), at(2, 0.8, 2), at(1, 0.7, 3, attempt=2), attempt=2)
    assert [point.value for point in trial.points] == [0.7, 0.8]
    assert trial.costs == {"failed": 4.0, "training": 3.0}
    assert trial.cost == 7.0


@pytest.mark.parametrize("state", [State.FAILED, State.LOST])
def test_all_that_a_trial_without_a_result_cost_is_failed_work(state: State) -> None:
    assert trial_with(at(1, 0.9, 2), state=state).costs == {"failed": 2.0}


def test_pruned_work_is_not_failed_work() -> None:
    assert trial_with(at(1, 0.9, 2), state=State.PRUNED).costs == {"training": 2.0}


def test_a_charge_replaces_the_measured_seconds_of_its_attempt_even_those_reported_before() -> None:
    charge = Measurement(cost={"training": 40.0}, charged=True, sequence=1)
    assert trial_with(at(1, 0.9, 2), charge).costs == {"training": 40.0}


def test_a_charge_leaves_the_seconds_of_other_attempts_alone() -> None:
    charge = Measurement(cost={"training": 40.0}, charged=True, attempt=2)
    assert trial_with(at(1, 0.9, 2), charge, attempt=2).costs == {"failed": 2.0, "training": 40.0}


def test_savings_are_summed_by_reason() -> None:
    saved = [Measurement(saved={"cache": 2.0}), Measurement(saved={"cache": 1.0, "validation": 5.0}, sequence=1)]
    assert trial_with(*saved).saved == {"cache": 3.0, "validation": 5.0}


def test_only_pending_and_running_trials_are_unfinished() -> None:
    assert [state for state in State if not state.is_finished] == [State.PENDING, State.RUNNING]


def test_a_trial_says_in_one_line_what_it_is() -> None:
    trial = Trial(7, Suggestion({"x": 1.0}), State.FAILED, failure=Failure("ValueError: no"))
    assert repr(trial) == "Trial(7, failed, cost=0, params={'x': 1.0})"


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), "0.3", None, True, [1.0, 2.0]])
def test_a_value_that_is_no_finite_number_is_refused_with_what_came(bad: object) -> None:
    with pytest.raises(InvalidValue, match="must be"):
        finite_number(bad, what="The value")


def test_numbers_of_other_libraries_become_plain_floats() -> None:
    import numpy as np

    assert type(finite_number(np.float32(0.5), what="The value")) is float


def test_a_negative_cost_is_refused_with_what_to_do() -> None:
    with pytest.raises(InvalidValue, match=r"must not be negative, got -0.3. Report seconds or dollars"):
        cost_amount(-0.3)


def test_an_unknown_kind_of_cost_is_refused() -> None:
    with pytest.raises(InvalidValue, match="must be one of training, validation"):
        check_kind("gpu")
