"""Measurements are recorded."""

from collections.abc import Callable

import pytest

from farthing.errors import (
    InvalidArgument,
    StaleAttempt,
    TrialFinished,
    TrialNotFound,
)
from farthing.testing.storage_contract.using import LEASE, STUDY, Using, attempt_of, done, failed, point, suggestion
from farthing.trials import (
    Attempt,
    Measurement,
    Outcome,
    State,
    Trial,
)


class Recording(Using):
    def test_a_measurement_comes_back_as_it_was(self) -> None:
        trial = self.open_one()
        measured = Measurement(
            value=0.5,
            cost={"training": 1.5, "validation": 0.25},
            charged=True,
            fidelity={"epochs": 3},
            step=7,
            metrics={"recall": 0.75, "unknown": None},
            saved={"cache": 2.0},
            params={"x": 0.25},
            gradient={"x": -1.0},
            sequence=4,
        )
        self.record(trial, measured)
        (stored,) = self.read().measurements
        assert stored == Measurement(
            **{name: getattr(measured, name) for name in Measurement.__slots__ if name not in ("attempt", "time")},
            attempt=1,
            time=stored.time,
        )
        assert stored.time == pytest.approx(self.store.now(), abs=5)

    def test_measurements_are_in_the_order_of_their_sequence(self) -> None:
        trial = self.open_one()
        for sequence in (0, 2, 1):
            self.record(trial, point(sequence, float(sequence)))
        assert [measured.sequence for measured in self.read().measurements] == [0, 1, 2]

    def test_recording_twice_changes_nothing_but_the_lease(self) -> None:
        trial = self.open_one()
        self.record(trial, point(0, 0.5))
        before = self.version()
        self.time.advance(1)
        self.record(trial, point(0, 0.75))
        assert self.version() == before
        assert [measured.value for measured in self.read().measurements] == [0.5]
        assert self.read().lease_until == pytest.approx(self.store.now() + LEASE, abs=5)

    def test_measurements_recorded_together_are_one_change(self) -> None:
        trial = self.open_one()
        before = self.version()
        self.record(trial, point(0, 0.5), point(1, None), point(2, 0.25))
        assert self.version() == before + 1
        assert [measured.value for measured in self.read().measurements] == [0.5, None, 0.25]

    def test_of_measurements_recorded_together_only_the_new_ones_are_added(self) -> None:
        trial = self.open_one()
        self.record(trial, point(0, 0.5), point(1, 0.25))
        self.time.advance(LEASE / 2)
        self.record(trial, point(1, 0.75), point(2, 0.125))
        assert [measured.value for measured in self.read().measurements] == [0.5, 0.25, 0.125]
        self.time.advance(LEASE / 2)
        assert self.read().state is State.RUNNING

    def test_recording_no_measurement_renews_the_lease_only(self) -> None:
        trial = self.open_one()
        before = self.version()
        self.time.advance(LEASE / 2)
        self.store.record(STUDY, attempt_of(trial), [], lease=LEASE)
        self.time.advance(LEASE / 2)
        assert self.read().state is State.RUNNING
        assert self.version() == before

    def test_measurements_of_which_one_is_wrong_are_not_recorded(self) -> None:
        trial = self.open_one()
        for wrong in (point(1, float("nan")), point(-1), point(0, 0.25)):
            with pytest.raises(InvalidArgument):
                self.record(trial, point(0, 0.5), wrong)
        assert self.read() == trial

    def test_recording_renews_the_lease(self) -> None:
        trial = self.open_one()
        self.time.advance(LEASE / 2)
        self.record(trial)
        self.time.advance(LEASE / 2)
        assert self.read().state is State.RUNNING

    def test_a_sequence_must_not_be_negative(self) -> None:
        trial = self.open_one()
        with pytest.raises(InvalidArgument):
            self.record(trial, point(-1))

    def test_a_value_must_be_finite(self) -> None:
        trial = self.open_one()
        for value in (float("nan"), float("inf")):
            with pytest.raises(InvalidArgument):
                self.record(trial, point(0, value))
            with pytest.raises(InvalidArgument):
                self.close(trial, done(value))
        assert self.read() == trial

    def test_nothing_is_recorded_for_a_trial_that_does_not_run(self) -> None:
        queued = self.store.enqueue_trial(STUDY, suggestion())
        with pytest.raises(StaleAttempt):
            self.record(queued)
        trial = self.close(self.claim_some())
        with pytest.raises(TrialFinished):
            self.record(trial)
        with pytest.raises(TrialNotFound):
            self.store.record(STUDY, Attempt(7, 1), [point()], lease=LEASE)
        assert self.trials() == [trial]


# ------------------------------------------------------------
# Checkpoints are announced and retired.


class CheckpointTests(Using):
    def test_a_trial_carries_on_from_its_parents_checkpoint(self) -> None:
        parent = self.close(self.open_one(), done(checkpoint="trial-0"))
        resumed = self.open_one(suggestion(resume_from=parent.number))
        queued = self.store.enqueue_trial(STUDY, suggestion(resume_from=parent.number))
        assert (resumed.resume_from, resumed.resume_checkpoint) == (parent.number, "trial-0")
        assert queued.resume_checkpoint == "trial-0"

    def test_a_parent_without_a_checkpoint_hands_on_nothing(self) -> None:
        parent = self.close(self.open_one())
        assert self.open_one(suggestion(resume_from=parent.number)).resume_checkpoint is None

    @pytest.mark.parametrize("number", [-1, 1, 2])
    def test_only_a_trial_that_exists_can_be_resumed(self, number: int) -> None:
        self.open_one()
        with pytest.raises(InvalidArgument):
            self.open(suggestion(), suggestion(resume_from=number))
        with pytest.raises(InvalidArgument):
            self.store.enqueue_trial(STUDY, suggestion(resume_from=number))
        assert len(self.trials()) == 1

    def test_a_checkpoint_saved_on_the_way_outlives_its_attempt(self) -> None:
        trial = self.open_one(retries=1)
        self.store.save_checkpoint(STUDY, attempt_of(trial), "trial-0")
        self.expire()
        assert self.claim_some().checkpoint == "trial-0"

    def test_a_result_keeps_the_checkpoint_saved_on_the_way(self) -> None:
        trial = self.open_one()
        self.store.save_checkpoint(STUDY, attempt_of(trial), "trial-0")
        assert self.close(trial).checkpoint == "trial-0"

    def test_a_checkpoint_is_retired_when_nobody_needs_it(self) -> None:
        self.close(self.open_one(), done(checkpoint="trial-0"))
        assert self.store.retire_checkpoint(STUDY, 0)
        assert self.read().checkpoint is None
        before = self.version()
        assert self.store.retire_checkpoint(STUDY, 0)
        assert self.version() == before

    def test_a_running_trial_keeps_its_own_checkpoint(self) -> None:
        trial = self.open_one()
        self.store.save_checkpoint(STUDY, attempt_of(trial), "trial-0")
        assert not self.store.retire_checkpoint(STUDY, 0)
        assert self.read().checkpoint == "trial-0"

    def test_a_trial_in_flight_holds_its_parents_checkpoint(self) -> None:
        self.close(self.open_one(), done(checkpoint="trial-0"))
        self.store.enqueue_trial(STUDY, suggestion(resume_from=0))
        assert not self.store.retire_checkpoint(STUDY, 0)
        heir = self.claim_some()
        assert not self.store.retire_checkpoint(STUDY, 0)
        self.close(heir)
        assert self.store.retire_checkpoint(STUDY, 0)


# ------------------------------------------------------------
# Only the latest attempt writes.


class Fencing(Using):
    def two_attempts(self) -> tuple[Trial, Trial]:
        """One trial twice: as the zombie has it, which holds the first attempt, and as its heir has it."""
        zombie = self.open_one(retries=1)
        self.expire()
        self.store.sweep(STUDY)
        return zombie, self.claim_some("heir")

    def test_an_older_attempt_cannot_write(self) -> None:
        zombie, heir = self.two_attempts()
        calls: list[Callable[[], object]] = [
            lambda: self.record(zombie),
            lambda: self.close(zombie, failed()),
            lambda: self.close(zombie, Outcome(State.PRUNED)),
            lambda: self.store.release_trial(STUDY, attempt_of(zombie)),
            lambda: self.store.save_checkpoint(STUDY, attempt_of(zombie), "c"),
        ]
        for call in calls:
            with pytest.raises(StaleAttempt):
                call()
        assert self.trials() == [heir]

    def test_an_older_attempt_cannot_renew(self) -> None:
        zombie, heir = self.two_attempts()
        attempts = [attempt_of(zombie), attempt_of(heir)]
        assert self.store.renew(STUDY, attempts, lease=LEASE) == [attempt_of(heir)]

    def test_the_first_result_wins_even_from_an_older_attempt(self) -> None:
        zombie, heir = self.two_attempts()
        closed = self.close(zombie, done(0.125))
        assert (closed.state, closed.attempt, closed.value) == (State.DONE, 1, 0.125)
        with pytest.raises(TrialFinished):
            self.close(heir, done(0.5))
        with pytest.raises(TrialFinished):
            self.record(heir)
        assert self.read().value == 0.125

    def test_the_result_of_the_current_attempt_shuts_the_older_one_out(self) -> None:
        zombie, heir = self.two_attempts()
        self.close(heir, done(0.5))
        with pytest.raises(TrialFinished):
            self.close(zombie, done(0.125))
        assert (self.read().value, self.read().attempt) == (0.5, 2)

    def test_an_attempt_that_was_never_started_cannot_write(self) -> None:
        self.two_attempts()
        with pytest.raises(StaleAttempt):
            self.store.close_trial(STUDY, Attempt(0, 3), done())

    def test_a_result_is_welcome_while_the_trial_waits_for_its_next_attempt(self) -> None:
        zombie, heir = self.two_attempts()
        self.store.release_trial(STUDY, attempt_of(heir))
        assert self.close(zombie, done(0.125)).value == 0.125

    def test_a_result_is_welcome_even_after_the_trial_was_lost(self) -> None:
        _, heir = self.two_attempts()
        self.expire()
        self.store.sweep(STUDY)
        assert self.read().state is State.LOST
        with pytest.raises(TrialFinished):
            self.close(heir, failed())
        assert self.close(heir, done(0.5)).state is State.DONE

    def test_both_attempts_keep_their_measurements(self) -> None:
        zombie, heir = self.two_attempts()
        self.record(heir, point(0, 0.5))
        closed = self.close(zombie, done(0.125, measurements=[point(0, 0.125)]))
        assert [(measured.attempt, measured.value) for measured in closed.measurements] == [(1, 0.125), (2, 0.5)]
