"""What a trial tells the study about itself."""

import dataclasses
import math

import numpy as np
import pytest

from farthing.errors import InvalidArgument
from farthing.execution import Job, RunningTrial
from farthing.trials import Attempt, Failure, State, Suggestion, Trial


class Tensor:
    """Like a torch tensor of one element that still has its gradient: `item` works, `float` would warn."""

    def item(self) -> float:
        return 0.25


def costs_of(outcome, recorder, *, attempt=2):
    points = (*recorder.measurements, *outcome.measurements)
    return Trial(3, Suggestion({}), outcome.state, attempt=attempt, measurements=points).costs


def test_a_report_carries_the_seconds_since_the_last_one(plain, make_trial, recorder, clock):
    trial = make_trial(plain)
    clock.advance(2)
    trial.report(0.4)
    clock.advance(3)
    trial.report(0.3)
    assert [point.cost for point in recorder.measurements] == [{"training": 2.0}, {"training": 3.0}]
    assert trial.spent == 5.0


def test_waiting_for_a_report_to_be_written_costs_nothing(plain, make_trial, recorder, clock):
    trial = make_trial(plain)
    recorder.report = lambda measurement: clock.advance(100)
    trial.report(0.4)
    assert trial.spent == 0.0


def test_measurements_are_numbered_within_their_attempt(plain, make_trial, recorder):
    trial = make_trial(plain)
    trial.report(0.4)
    trial.report(0.3)
    closing = trial._finish(0.3).measurements[-1]
    assert [point.sequence for point in (*recorder.measurements, closing)] == [0, 1, 2]
    assert {point.attempt for point in (*recorder.measurements, closing)} == {2}


def test_steps_count_from_one_where_the_space_has_no_fidelities(plain, make_trial, recorder):
    trial = make_trial(plain)
    trial.report(0.4)
    trial.report(0.3, step=5)
    trial.report(0.2)
    assert [point.step for point in recorder.measurements] == [1, 5, 6]


def test_a_report_names_its_place_on_the_trace(traced, make_trial, recorder):
    trial = make_trial(traced, fidelity={"epochs": 5, "data": 0.5})
    trial.report(0.4, epochs=1.0)
    trial.report(0.4, epochs=2, data=1.0)
    places = [point.fidelity for point in recorder.measurements]
    assert places == [{"epochs": 1, "data": 0.5}, {"epochs": 2, "data": 1.0}]
    assert type(places[0]["epochs"]) is int


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ({}, "trial.report(value, epochs=...)"),
        ({"epoch": 3}, "Did you mean 'epochs'?"),
        ({"epochs": 6}, "at most the trial's own 5, got 6"),
        ({"epochs": 0}, "got 0. Count from 1"),
        ({"epochs": 1.5}, "must be a whole number, got 1.5"),
        ({"epochs": 3, "data": 2.0}, "data"),
        ({"epochs": 3, "step": -1}, "A step must be a whole number"),
    ],
)
def test_a_report_from_nowhere_is_refused_in_one_line(traced, make_trial, recorder, place, message):
    trial = make_trial(traced, fidelity={"epochs": 5})
    with pytest.raises(InvalidArgument) as refusal:
        trial.report(0.4, **place)
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert recorder.measurements == []


@pytest.mark.parametrize("value", [1, np.float32(1.0), np.int64(1), np.array(1.0), np.array([[1.0]])])
def test_a_value_may_be_any_one_number(plain, make_trial, recorder, value):
    make_trial(plain).report(value)
    assert recorder.measurements[0].value == 1.0
    assert type(recorder.measurements[0].value) is float


def test_a_tensor_gives_its_item(plain, make_trial):
    assert make_trial(plain)._finish(Tensor()).value == 0.25


@pytest.mark.parametrize("value", [math.nan, math.inf, "0.4", None, True, [0.4], np.array([1.0, 2.0])])
def test_what_is_no_finite_number_is_refused(plain, make_trial, value):
    with pytest.raises(InvalidArgument, match="The value 'error' must be"):
        make_trial(plain).report(value)


def test_metrics_that_are_not_finite_are_unknown(plain, make_trial, recorder):
    make_trial(plain).report(0.4, metrics={"loss": math.nan, "auc": np.float64(0.9)})
    assert recorder.measurements[0].metrics == {"loss": None, "auc": 0.9}


def test_a_gradient_belongs_to_the_params(plain, make_trial, recorder):
    trial = make_trial(plain)
    trial.report(0.4, gradient={"lr": 2})
    assert recorder.measurements[0].gradient == {"lr": 2.0}
    with pytest.raises(InvalidArgument, match="Did you mean 'lr'"):
        trial.report(0.4, gradient={"l": 2})


def test_timing_puts_seconds_on_another_kind(plain, make_trial, recorder, clock):
    trial = make_trial(plain)
    clock.advance(1)
    with trial.timing("validation"):
        clock.advance(2)
    clock.advance(4)
    trial.report(0.4)
    assert recorder.measurements[0].cost == {"training": 5.0, "validation": 2.0}


def test_timing_may_hold_a_report(plain, make_trial, recorder, clock):
    trial = make_trial(plain)
    with trial.timing("validation"):
        clock.advance(2)
        trial.report(0.4)
        clock.advance(3)
    assert recorder.measurements[0].cost == {"validation": 2.0}
    assert trial._finish(0.4).measurements[0].cost == {"validation": 3.0}


def test_a_charge_replaces_the_measured_seconds_also_those_reported_before(plain, make_trial, recorder, clock):
    trial = make_trial(plain)
    clock.advance(7)
    trial.report(0.4)
    trial.charge(2.5)
    trial.charge(1.0, kind="validation")
    clock.advance(7)
    outcome = trial._finish(0.3)
    assert outcome.measurements[0].charged
    assert costs_of(outcome, recorder) == {"training": 2.5, "validation": 1.0}


@pytest.mark.parametrize(("amount", "kind"), [(-1, "training"), (math.nan, "training"), (1, "lunch")])
def test_a_charge_that_cannot_be_meant_is_refused(plain, make_trial, amount, kind):
    with pytest.raises(InvalidArgument):
        make_trial(plain).charge(amount, kind)


def test_seconds_are_no_cost_where_the_study_does_not_measure_it(plain, make_trial, clock):
    trial = make_trial(dataclasses.replace(plain, measures_cost=False, cost_unit="dollars"))
    clock.advance(7)
    assert trial._finish(0.3).measurements[0].cost == {}
    assert trial.spent == 7.0


def test_a_returned_number_is_the_value_at_the_trials_fidelity(traced, make_trial, clock):
    trial = make_trial(traced, fidelity={"epochs": 5})
    clock.advance(3)
    outcome = trial._finish(0.3)
    assert (outcome.state, outcome.value) == (State.DONE, 0.3)
    (closing,) = outcome.measurements
    assert (closing.value, closing.fidelity, closing.cost) == (0.3, {"epochs": 5, "data": 1.0}, {"training": 3.0})


def test_what_the_job_leaves_open_is_at_full_fidelity(traced, checkpoints, recorder):
    job = Job(Attempt(3, 2), {"lr": 0.5}, {"data": 0.5})
    trial = RunningTrial(job, traced, send=recorder.send, checkpoints=checkpoints)
    assert trial.fidelity == {"epochs": 10, "data": 0.5}


def test_a_returned_mapping_holds_the_value_and_metrics(plain, make_trial):
    outcome = make_trial(plain)._finish(
        {"error": np.float32(0.5), "size": 3, "name": "x", "loss": math.nan, "ok": True}
    )
    assert outcome.value == 0.5
    assert outcome.measurements[0].metrics == {"size": 3.0, "loss": None}


def test_without_a_returned_value_the_last_report_counts(plain, make_trial, clock):
    trial = make_trial(plain)
    trial.report(0.4)
    trial.report(0.3)
    clock.advance(2)
    outcome = trial._finish(None)
    assert outcome.value == 0.3
    assert [(point.value, point.cost) for point in outcome.measurements] == [(None, {"training": 2.0})]


def test_returning_what_was_just_reported_adds_no_point_to_the_curve(plain, make_trial, recorder):
    trial = make_trial(plain)
    trial.report(0.4)
    trial.report(0.3)
    again, other = trial._finish(0.3).measurements[0], trial._finish(0.2).measurements[0]
    assert (again.step, other.step) == (2, 3)


@pytest.mark.parametrize(
    ("returned", "reason"),
    [
        (None, "returned no value and reported none"),
        (math.nan, "must be finite, got nan"),
        (-math.inf, "must be finite, got -inf"),
        ("good", "must be a number, got 'good' (str)"),
        (object, "must be a number"),
        ({"loss": 1.0}, "must hold 'error', got 'loss'"),
        ({}, "an empty one"),
        ({"error": None}, "must be a number, got None"),
    ],
)
def test_a_result_that_is_none_is_a_failure_not_an_exception(plain, make_trial, clock, returned, reason):
    trial = make_trial(plain)
    clock.advance(2)
    outcome = trial._finish(returned)
    assert outcome.state is State.FAILED
    assert reason in outcome.failure.reason
    assert "\n" not in outcome.failure.reason
    assert outcome.measurements[0].cost == {"training": 2.0}


def test_a_pruned_trial_keeps_its_last_value(plain, make_trial, recorder):
    trial = make_trial(plain)
    trial.report(0.4)
    outcome = trial._prune()
    assert (outcome.state, outcome.value) == (State.PRUNED, 0.4)
    assert make_trial(plain)._prune().value is None


def test_no_folder_is_made_unless_it_is_asked_for(plain, make_trial, checkpoints):
    make_trial(plain)._finish(0.3)
    assert not checkpoints.root.exists()


def test_the_checkpoint_folder_is_committed_when_the_work_is_done(plain, make_trial, checkpoints):
    trial = make_trial(plain)
    (trial.checkpoint_dir / "weights").write_text("good")
    assert trial.checkpoint_dir == trial.checkpoint_dir
    name = trial._finish(0.3).checkpoint
    assert (checkpoints.path(name) / "weights").read_text() == "good"


def test_an_empty_checkpoint_folder_is_no_checkpoint(plain, make_trial, checkpoints):
    trial = make_trial(plain)
    folder = trial.checkpoint_dir
    assert trial._finish(0.3).checkpoint is None
    assert not folder.exists()


def test_a_failed_trial_leaves_no_unfinished_folder(plain, make_trial):
    trial = make_trial(plain)
    folder = trial.checkpoint_dir
    (folder / "weights").write_text("half")
    assert trial._fail(Failure("broken")).checkpoint is None
    assert not folder.exists()


def test_a_checkpoint_in_between_is_announced_once_complete(plain, make_trial, recorder, checkpoints):
    trial = make_trial(plain)
    with trial.checkpoint() as folder:
        (folder / "weights").write_text("good")
        assert recorder.checkpoints == []
    (name,) = recorder.checkpoints
    assert (checkpoints.path(name) / "weights").read_text() == "good"
    assert trial._fail(Failure("broken")).checkpoint == name


def test_a_checkpoint_that_raises_is_discarded(plain, make_trial, recorder, checkpoints):
    def save_half(folder):
        (folder / "weights").write_text("half")
        raise OSError("disk full")

    trial = make_trial(plain)
    with pytest.raises(OSError, match="disk full"), trial.checkpoint() as folder:
        save_half(folder)
    assert recorder.checkpoints == []
    assert checkpoints.disk_use() == 0


@pytest.mark.parametrize("returned", [object(), "model.txt", {"loss": 0.1}, [0.1, 0.2], np.zeros(3), True])
def test_a_report_counts_whatever_the_work_returns(plain, make_trial, returned):
    trial = make_trial(plain)
    trial.report(0.4)
    outcome = trial._finish(returned)
    assert (outcome.state, outcome.value) == (State.DONE, 0.4)
    assert make_trial(plain)._finish(returned).state is State.FAILED, "without a report there is no value"


@pytest.mark.parametrize("returned", [math.nan, {"error": math.nan}, {"error": "bad"}])
def test_a_returned_value_that_is_none_is_a_failure_also_after_a_report(plain, make_trial, returned):
    trial = make_trial(plain)
    trial.report(0.4)
    assert trial._finish(returned).state is State.FAILED
