"""Measurements are recorded."""

import pytest

from farthing.errors import (
    InvalidArgument,
    StaleAttempt,
    TrialFinished,
    TrialNotFound,
)
from farthing.testing.storage_contract.using import LEASE, STUDY, Using, attempt_of, done, point, suggestion
from farthing.trials import (
    Attempt,
    Measurement,
    State,
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
