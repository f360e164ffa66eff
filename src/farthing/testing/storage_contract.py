"""What every storage must do, as a test suite to inherit from.

    class TestMine(StorageContract):
        @pytest.fixture
        def storage(self, clock):
            return MyStorage(clock=clock)

`clock` is a `FakeClock`. A storage whose clock cannot be injected overrides that fixture with a clock whose `advance`
waits.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from farthing.costs import FakeClock
from farthing.errors import (
    FarthingError,
    HistoryMoved,
    InvalidArgument,
    StaleAttempt,
    StudyExists,
    StudyNotFound,
    TrialFinished,
    TrialNotFound,
)
from farthing.space import Float, Space
from farthing.storage import Storage, StudyRecord
from farthing.trials import (
    Attempt,
    Failure,
    History,
    Measurement,
    Outcome,
    Prediction,
    Problem,
    State,
    Suggestion,
    Trial,
)

SPACE = Space({"x": Float(0.0, 1.0)})
STUDY = "study"
OWNER = "owner"
LEASE = 60.0


def suggestion(x: float = 0.5, **more: Any) -> Suggestion:
    return Suggestion(params={"x": x}, **more)


def done(value: float = 0.25, **more: Any) -> Outcome:
    return Outcome(State.DONE, value=value, **more)


def failed(reason: str = "it broke", **more: Any) -> Outcome:
    return Outcome(State.FAILED, failure=Failure(reason), **more)


def point(sequence: int = 0, value: float | None = 0.5, **more: Any) -> Measurement:
    return Measurement(value=value, sequence=sequence, **more)


def attempt_of(trial: Trial) -> Attempt:
    return Attempt(trial.number, trial.attempt)


class _Using:
    """A storage with one study in it, and short ways to use it."""

    @pytest.fixture
    def clock(self) -> FakeClock:
        return FakeClock()

    @pytest.fixture
    def storage(self, clock: FakeClock) -> Iterator[Storage]:
        raise NotImplementedError("A suite must say which storage it is about. Define a fixture `storage`.")

    @pytest.fixture(autouse=True)
    def _with_study(self, storage: Storage, clock: FakeClock) -> Iterator[None]:
        self.store = storage
        self.time = clock
        storage.create_study(StudyRecord(STUDY, Problem(SPACE)))
        yield
        storage.close()

    def open(self, *suggestions: Suggestion, **more: Any) -> list[Trial]:
        arguments = {"owner": OWNER, "lease": LEASE, **more}
        return self.store.open_trials(STUDY, suggestions or [suggestion()], **arguments)

    def open_one(self, proposal: Suggestion | None = None, **more: Any) -> Trial:
        return self.open(proposal or suggestion(), **more)[0]

    def claim(self, owner: str = OWNER) -> Trial | None:
        return self.store.claim_trial(STUDY, owner=owner, lease=LEASE)

    def claim_some(self, owner: str = OWNER) -> Trial:
        trial = self.claim(owner)
        assert trial is not None
        return trial

    def record(self, trial: Trial, *measurements: Measurement) -> None:
        self.store.record(STUDY, attempt_of(trial), measurements or [point()], lease=LEASE)

    def close(self, trial: Trial, outcome: Outcome | None = None) -> Trial:
        return self.store.close_trial(STUDY, attempt_of(trial), outcome or done())

    def expire(self) -> None:
        self.time.advance(LEASE)

    def expire_and_sweep(self) -> list[int]:
        self.expire()
        return self.store.sweep(STUDY)

    def read(self, number: int = 0) -> Trial:
        return self.trials()[number]

    def trials(self) -> Sequence[Trial]:
        return self.store.history(STUDY).trials

    def version(self) -> int:
        return self.store.history(STUDY).version


class _Studies(_Using):
    def test_a_new_study_is_stored_with_its_time(self) -> None:
        record = StudyRecord("other", Problem(SPACE, minimize=False), {"name": "Random"}, {"lease": 60})
        created = self.store.create_study(record)
        assert created == self.store.load_study("other")
        assert created.created_at == pytest.approx(self.store.now(), abs=5)
        assert (created.problem, created.strategy, created.settings) == (
            record.problem,
            {"name": "Random"},
            {"lease": 60},
        )

    def test_a_name_is_given_once(self) -> None:
        with pytest.raises(StudyExists):
            self.store.create_study(StudyRecord(STUDY, Problem(SPACE)))

    def test_a_name_must_be_printable(self) -> None:
        with pytest.raises(InvalidArgument):
            StudyRecord("two\nlines", Problem(SPACE))

    def test_an_unknown_study_is_not_found_by_anything(self) -> None:
        attempt = Attempt(0, 1)
        calls: list[Callable[[], object]] = [
            lambda: self.store.load_study("nobody"),
            lambda: self.store.update_study("nobody", strategy={}),
            lambda: self.store.delete_study("nobody"),
            lambda: self.store.open_trials("nobody", [suggestion()], owner=OWNER, lease=LEASE),
            lambda: self.store.enqueue_trial("nobody", suggestion()),
            lambda: self.store.claim_trial("nobody", owner=OWNER, lease=LEASE),
            lambda: self.store.record("nobody", attempt, [point()], lease=LEASE),
            lambda: self.store.renew("nobody", [attempt], lease=LEASE),
            lambda: self.store.close_trial("nobody", attempt, done()),
            lambda: self.store.sweep("nobody"),
            lambda: self.store.log_event("nobody", "kind", 1),
            lambda: self.store.history("nobody"),
            lambda: self.store.start_run("nobody"),
            lambda: self.store.touch_run("nobody", 1),
            lambda: self.store.seconds_run("nobody"),
        ]
        for call in calls:
            with pytest.raises(StudyNotFound):
                call()

    def test_updating_replaces_only_what_is_named(self) -> None:
        self.store.update_study(STUDY, settings={"a": 1, "b": 2})
        self.store.update_study(STUDY, strategy={"name": "Sobol"}, settings={"b": 3})
        self.store.update_study(STUDY)
        stored = self.store.load_study(STUDY)
        assert stored.strategy == {"name": "Sobol"}
        assert stored.settings == {"a": 1, "b": 3}

    def test_updating_a_study_is_no_change_of_its_history(self) -> None:
        before = self.version()
        self.store.update_study(STUDY, settings={"a": 1})
        assert self.version() == before

    def test_a_deleted_study_takes_its_trials_along(self) -> None:
        self.close(self.open_one())
        self.store.log_event(STUDY, "kind", {})
        self.store.start_run(STUDY)
        self.store.delete_study(STUDY)
        assert self.store.list_studies() == []
        self.store.create_study(StudyRecord(STUDY, Problem(SPACE)))
        assert self.trials() == []
        assert self.store.seconds_run(STUDY) == 0

    def test_studies_are_listed_by_name_with_states_best_value_and_cost(self) -> None:
        self.store.create_study(StudyRecord("a", Problem(SPACE, minimize=False)))
        for value in (0.3, 0.1, 0.2):
            self.close(self.open_one(), done(value, measurements=[point(value=value, cost={"training": 2.0})]))
            self.store.add_trial("a", suggestion(), done(value))
        self.close(self.open_one(), failed())
        self.open_one()
        first, second = self.store.list_studies()
        assert (first.record.name, second.record.name) == ("a", STUDY)
        assert (first.best_value, second.best_value) == (0.3, 0.1)
        assert dict(second.trials) == {State.DONE: 3, State.FAILED: 1, State.RUNNING: 1}
        assert [first.cost, second.cost] == pytest.approx([0.0, 6.0])

    def test_a_listing_counts_cost_as_the_trials_do(self) -> None:
        trial = self.open_one(retries=1)
        self.record(trial, point(0, cost={"training": 5.0}))
        self.record(trial, point(1, cost={"training": 3.0}, charged=True))
        self.expire()
        retried = self.claim_some()
        self.record(retried, point(0, cost={"training": 1.0, "validation": 0.5}))
        self.time.advance(10)
        self.store.renew(STUDY, [attempt_of(retried)], lease=LEASE)
        self.expire()
        (listed,) = self.store.list_studies()
        assert listed.cost == pytest.approx(self.read().cost) == pytest.approx(3.0 + 1.5 + 10.0)
        assert dict(listed.trials) == {State.LOST: 1}

    def test_an_empty_study_has_no_best_value(self) -> None:
        (listed,) = self.store.list_studies()
        assert (listed.best_value, listed.cost, dict(listed.trials)) == (None, 0.0, {})


class _Opening(_Using):
    def test_trials_are_numbered_without_gaps(self) -> None:
        self.open(suggestion(), suggestion())
        self.store.enqueue_trial(STUDY, suggestion())
        self.store.add_trial(STUDY, suggestion(), done())
        self.open_one()
        assert [trial.number for trial in self.trials()] == [0, 1, 2, 3, 4]

    def test_an_opened_trial_runs_for_its_owner(self) -> None:
        trial = self.open_one()
        assert (trial.state, trial.owner, trial.attempt) == (State.RUNNING, OWNER, 1)
        assert trial.lease_until == pytest.approx(trial.opened_at + LEASE)
        assert self.trials() == [trial]

    def test_a_suggestion_comes_back_as_it_was(self) -> None:
        proposal = Suggestion(
            params={"x": 0.1 + 0.2, "name": "ü\x00\ud800", "flag": True, "many": [1, 2.5, None]},
            fidelity={"epochs": 3.0},
            predicted_cost=Prediction(1.5, 0.1),
            predicted_value=Prediction(-2.0),
            note={"rung": 2, "fit": [1e-300, 1.7976931348623157e308], "why": {"nested": None}},
        )
        trial = self.open_one(proposal)
        assert trial.suggestion == proposal
        assert self.read().suggestion == proposal

    def test_what_json_cannot_hold_is_refused_and_leaves_nothing(self) -> None:
        for note in ({1, 2}, object()):
            with pytest.raises(InvalidArgument):
                self.open_one(suggestion(note=note))
        assert self.trials() == []

    def test_the_overhead_is_shared(self) -> None:
        trials = self.open(suggestion(), suggestion(), overhead=3.0)
        assert [trial.overhead for trial in trials] == [1.5, 1.5]

    def test_suggestions_for_an_older_history_are_refused(self) -> None:
        self.open_one(expected_trials=0)
        with pytest.raises(HistoryMoved):
            self.open_one(expected_trials=0)
        self.open_one(expected_trials=1)
        assert len(self.trials()) == 2

    def test_opening_nothing_changes_nothing(self) -> None:
        before = self.version()
        assert self.store.open_trials(STUDY, [], owner=OWNER, lease=LEASE) == []
        assert self.version() == before

    def test_an_enqueued_trial_waits_for_whoever_claims_it(self) -> None:
        queued = self.store.enqueue_trial(STUDY, suggestion(0.1), tags=["mine"])
        assert (queued.state, queued.owner, queued.lease_until, queued.tags) == (State.PENDING, None, None, ("mine",))
        claimed = self.claim_some("other")
        assert (claimed.number, claimed.state, claimed.owner, claimed.attempt) == (0, State.RUNNING, "other", 1)
        assert self.trials() == [claimed]

    def test_the_oldest_pending_trial_is_claimed_first(self) -> None:
        for _ in range(3):
            self.store.enqueue_trial(STUDY, suggestion())
        assert [self.claim_some().number for _ in range(3)] == [0, 1, 2]
        assert self.claim() is None

    def test_a_pending_trial_may_be_claimed_by_its_number(self) -> None:
        for _ in range(3):
            self.store.enqueue_trial(STUDY, suggestion())
        claimed = self.store.claim_trial(STUDY, owner=OWNER, lease=LEASE, number=1)
        assert claimed is not None
        assert (claimed.number, claimed.state) == (1, State.RUNNING)
        assert self.store.claim_trial(STUDY, owner=OWNER, lease=LEASE, number=1) is None
        assert self.store.claim_trial(STUDY, owner=OWNER, lease=LEASE, number=7) is None
        assert [trial.state for trial in self.trials()] == [State.PENDING, State.RUNNING, State.PENDING]

    def test_claiming_nothing_changes_nothing(self) -> None:
        before = self.version()
        assert self.claim() is None
        assert self.version() == before

    def test_two_claims_never_get_the_same_trial(self) -> None:
        for _ in range(12):
            self.store.enqueue_trial(STUDY, suggestion())
        claimed: list[int] = []

        def claim_all() -> None:
            while (trial := self.claim(threading.current_thread().name)) is not None:
                claimed.append(trial.number)

        threads = [threading.Thread(target=claim_all) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(claimed) == list(range(12))

    def test_a_result_from_elsewhere_is_added_whole(self) -> None:
        outcome = done(0.5, measurements=[point(0, 0.5, cost={"training": 3.0})])
        added = self.store.add_trial(STUDY, suggestion(), outcome, tags=["paper"])
        assert (added.state, added.value, added.cost, added.tags) == (State.DONE, 0.5, 3.0, ("paper",))
        assert added.finished_at == added.opened_at
        assert self.trials() == [added]

    def test_a_failure_from_elsewhere_is_added_too(self) -> None:
        added = self.store.add_trial(STUDY, suggestion(), failed("no memory"))
        assert (added.state, added.failure) == (State.FAILED, Failure("no memory"))


class _Recording(_Using):
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


class _Closing(_Using):
    def test_a_closed_trial_has_its_result(self) -> None:
        trial = self.open_one()
        self.record(trial, point(0, 0.5))
        closed = self.close(trial, done(0.25, measurements=[point(1, 0.25)], checkpoint="trial-0"))
        assert (closed.state, closed.value, closed.checkpoint) == (State.DONE, 0.25, "trial-0")
        assert [measured.value for measured in closed.measurements] == [0.5, 0.25]
        assert closed.lease_until is None
        assert closed.finished_at is not None
        assert self.trials() == [closed]

    @pytest.mark.parametrize("state", [State.DONE, State.FAILED, State.PRUNED])
    def test_a_trial_has_one_result(self, state: State) -> None:
        trial = self.open_one()
        closed = self.close(trial, Outcome(state, value=0.5))
        for again in (done(0.75), failed(), Outcome(state, value=0.5)):
            with pytest.raises(TrialFinished):
                self.close(trial, again)
        assert self.trials() == [closed]

    def test_an_unknown_trial_is_not_found(self) -> None:
        calls: list[Callable[[], object]] = [
            lambda: self.store.close_trial(STUDY, Attempt(0, 1), done()),
            lambda: self.store.release_trial(STUDY, Attempt(0, 1)),
            lambda: self.store.save_checkpoint(STUDY, Attempt(0, 1), "c"),
            lambda: self.store.retire_checkpoint(STUDY, 0),
            lambda: self.store.annotate(STUDY, -1, comment=""),
        ]
        for call in calls:
            with pytest.raises(TrialNotFound):
                call()

    @pytest.mark.parametrize("state", [State.RUNNING, State.PENDING, State.LOST])
    def test_a_trial_ends_as_done_failed_or_pruned(self, state: State) -> None:
        trial = self.open_one()
        with pytest.raises(InvalidArgument):
            self.close(trial, Outcome(state))
        with pytest.raises(InvalidArgument):
            self.store.add_trial(STUDY, suggestion(), Outcome(state))
        assert self.trials() == [trial]

    def test_only_a_failure_is_tried_again(self) -> None:
        with pytest.raises(InvalidArgument):
            self.close(self.open_one(), done(retry=True))

    def test_a_failed_attempt_can_be_tried_again(self) -> None:
        trial = self.open_one(retries=1)
        again = self.close(trial, failed(retry=True, measurements=[point(0, None, cost={"training": 4.0})]))
        assert (again.state, again.attempt, again.owner) == (State.PENDING, 2, None)
        claimed = self.claim_some()
        assert (claimed.number, claimed.attempt) == (0, 2)
        finished = self.close(claimed, done(measurements=[point(0, 0.25, cost={"training": 1.0})]))
        assert finished.costs == {"failed": 4.0, "training": 1.0}
        assert finished.failure is None

    def test_trying_again_uses_up_a_retry(self) -> None:
        self.close(self.open_one(retries=1), failed(retry=True))
        self.claim_some()
        self.expire()
        assert self.read().state is State.LOST

    def test_measurements_of_an_outcome_have_sequences_of_their_own(self) -> None:
        trial = self.open_one()
        with pytest.raises(InvalidArgument):
            self.close(trial, done(measurements=[point(0), point(0)]))

    def test_a_released_trial_waits_for_the_next_owner(self) -> None:
        trial = self.open_one()
        self.record(trial, point(0))
        self.store.release_trial(STUDY, attempt_of(trial), measurements=[point(1, None, cost={"training": 2.0})])
        waiting = self.read()
        assert (waiting.state, waiting.attempt, waiting.owner, waiting.lease_until) == (State.PENDING, 2, None, None)
        assert waiting.costs == {"failed": 2.0}
        with pytest.raises(StaleAttempt):
            self.store.release_trial(STUDY, attempt_of(trial))
        assert self.claim_some().attempt == 2

    def test_releasing_uses_up_no_retry(self) -> None:
        trial = self.open_one(retries=1)
        self.store.release_trial(STUDY, attempt_of(trial))
        self.claim_some()
        self.expire()
        assert self.read().state is State.PENDING


class _Leases(_Using):
    def test_a_renewed_lease_does_not_end(self) -> None:
        trial = self.open_one()
        for _ in range(3):
            self.time.advance(LEASE * 0.9)
            assert self.store.renew(STUDY, [attempt_of(trial)], lease=LEASE) == [attempt_of(trial)]
        assert self.read().state is State.RUNNING

    def test_renewing_is_no_change_of_the_history(self) -> None:
        trial = self.open_one()
        before = self.version()
        self.store.renew(STUDY, [attempt_of(trial)], lease=2 * LEASE)
        assert self.version() == before
        (running,) = self.store.history(STUDY, since=before).trials
        assert running.lease_until == pytest.approx(self.store.now() + 2 * LEASE, abs=5)

    def test_renewing_tells_which_attempts_are_still_current(self) -> None:
        current, finished = self.open(suggestion(), suggestion())
        self.close(finished)
        asked = [Attempt(9, 1), attempt_of(finished), attempt_of(current), Attempt(current.number, 2)]
        assert self.store.renew(STUDY, asked, lease=LEASE) == [attempt_of(current)]
        assert self.store.renew(STUDY, [], lease=LEASE) == []

    def test_a_trial_whose_lease_has_ended_is_read_as_lost(self) -> None:
        self.open_one()
        self.expire()
        lost = self.read()
        assert (lost.state, lost.attempt, lost.lease_until) == (State.LOST, 1, None)
        assert lost.failure is not None

    def test_with_retries_left_it_is_read_as_pending_again(self) -> None:
        self.open_one(retries=1)
        self.expire()
        waiting = self.read()
        assert (waiting.state, waiting.attempt, waiting.owner) == (State.PENDING, 2, None)

    def test_sweeping_makes_lasting_what_was_read(self) -> None:
        self.open(suggestion(), suggestion())
        self.store.enqueue_trial(STUDY, suggestion(), retries=2)
        self.claim()
        self.time.advance(5)
        self.store.renew(STUDY, [Attempt(1, 1)], lease=LEASE)
        self.expire()
        read = self.trials()
        assert self.store.sweep(STUDY) == [0, 1, 2]
        assert self.trials() == read
        assert self.store.sweep(STUDY) == []

    def test_sweeping_spares_those_who_are_in_time(self) -> None:
        late, on_time = self.open(suggestion(), suggestion())
        self.time.advance(LEASE / 2)
        self.record(on_time)
        self.time.advance(LEASE / 2)
        assert self.store.sweep(STUDY) == [late.number]
        assert self.read(on_time.number).state is State.RUNNING

    def test_sweeping_nothing_changes_nothing(self) -> None:
        self.open_one()
        before = self.version()
        assert self.store.sweep(STUDY) == []
        assert self.version() == before

    def test_the_leases_of_dead_owners_end_at_once(self) -> None:
        self.open_one(owner="dead", retries=1)
        self.open_one(owner="alive")
        self.time.advance(1)
        assert self.store.sweep(STUDY, dead=["dead", "unknown"]) == [0]
        assert [trial.state for trial in self.trials()] == [State.PENDING, State.RUNNING]

    def test_a_dead_owners_trial_ends_when_that_is_known(self) -> None:
        trial = self.open_one(owner="dead")
        self.time.advance(1)
        self.store.sweep(STUDY, dead=["dead"])
        assert self.read().finished_at == pytest.approx(trial.opened_at + 1, abs=0.5)

    def test_a_trial_is_lost_when_its_retries_run_out(self) -> None:
        self.open_one(retries=2)
        seen = []
        for _ in range(3):
            self.expire()
            self.store.sweep(STUDY)
            seen.append(self.read().state)
            self.claim()
        assert seen == [State.PENDING, State.PENDING, State.LOST]

    def test_a_claim_finds_a_trial_whose_lease_has_ended(self) -> None:
        self.open_one(retries=1)
        self.expire()
        claimed = self.claim_some("other")
        assert (claimed.number, claimed.attempt, claimed.owner) == (0, 2, "other")

    def test_lost_work_is_charged_up_to_its_last_sign_of_life(self) -> None:
        trial = self.open_one()
        self.time.advance(10)
        self.record(trial, point(0, cost={"training": 10.0}))
        self.time.advance(7)
        self.store.renew(STUDY, [attempt_of(trial)], lease=LEASE)
        self.store.annotate(STUDY, trial.number, comment="written by somebody else: no sign of the owner's life")
        self.expire()
        assert self.read().costs == {"failed": pytest.approx(17.0)}
        self.store.sweep(STUDY)
        assert self.read().costs == {"failed": pytest.approx(17.0)}

    def test_lost_work_costs_nothing_where_cost_is_not_measured(self) -> None:
        self.store.create_study(StudyRecord("dollars", Problem(SPACE, measures_cost=False)))
        (trial,) = self.store.open_trials("dollars", [suggestion()], owner=OWNER, lease=LEASE)
        self.time.advance(10)
        self.store.renew("dollars", [attempt_of(trial)], lease=LEASE)
        self.expire()
        self.store.sweep("dollars")
        (lost,) = self.store.history("dollars").trials
        assert (lost.state, lost.cost) == (State.LOST, 0.0)

    def test_a_late_owner_may_go_on_until_somebody_has_noticed(self) -> None:
        trial = self.open_one()
        self.expire()
        self.record(trial)
        assert self.read().state is State.RUNNING
        self.expire()
        assert self.store.renew(STUDY, [attempt_of(trial)], lease=LEASE) == [attempt_of(trial)]
        assert self.read().state is State.RUNNING


class _Fencing(_Using):
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


class _Checkpoints(_Using):
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


class _Histories(_Using):
    def test_every_change_raises_the_version_by_one(self) -> None:
        changes: list[Callable[[], object]] = [
            lambda: self.open(suggestion(), suggestion(), suggestion()),
            lambda: self.store.enqueue_trial(STUDY, suggestion(), retries=1),
            self.claim,
            lambda: self.store.record(STUDY, Attempt(0, 1), [point()], lease=LEASE),
            lambda: self.store.save_checkpoint(STUDY, Attempt(0, 1), "c"),
            lambda: self.store.close_trial(STUDY, Attempt(0, 1), done()),
            lambda: self.store.retire_checkpoint(STUDY, 0),
            lambda: self.store.annotate(STUDY, 0, comment="good"),
            lambda: self.store.release_trial(STUDY, Attempt(1, 1)),
            lambda: self.store.log_event(STUDY, "kind", {}),
            lambda: self.store.add_trial(STUDY, suggestion(), done()),
            self.expire_and_sweep,
        ]
        assert self.version() == 0
        for change in changes:
            before = self.version()
            change()
            assert self.version() == before + 1

    def test_a_claim_that_sweeps_is_one_change(self) -> None:
        self.open(suggestion(), suggestion(), retries=1)
        self.expire()
        before = self.version()
        self.claim()
        assert self.version() == before + 1

    def test_a_reader_gets_what_is_new(self) -> None:
        first, second = self.open(suggestion(), suggestion())
        self.close(first)
        self.close(second)
        seen = self.version()
        assert self.store.history(STUDY, since=seen).trials == []
        self.store.annotate(STUDY, 1, tags=["a", "b"], comment="look at this")
        changes = self.store.history(STUDY, since=seen)
        (changed,) = changes.trials
        assert (changed.number, changed.tags, changed.comment) == (1, ("a", "b"), "look at this")
        assert changes.version == seen + 1

    def test_every_running_trial_is_always_told(self) -> None:
        self.open(suggestion(), suggestion())
        self.store.enqueue_trial(STUDY, suggestion())
        told = self.store.history(STUDY, since=self.version()).trials
        assert [trial.number for trial in told] == [0, 1]

    def test_changed_trials_come_whole_and_by_number(self) -> None:
        trials = self.open(suggestion(), suggestion(), suggestion())
        for trial in trials:
            self.record(trial, point(0, 0.5))
        seen = self.version()
        for trial in reversed(trials):
            self.record(trial, point(1, 0.25))
            self.close(trial)
        assert self.store.history(STUDY, since=seen).trials == self.trials()

    def test_reading_bit_by_bit_gives_the_whole(self) -> None:
        history = History(Problem(SPACE))
        for step in range(3):
            trial = self.open_one(retries=1)
            for sequence in range(step):
                self.record(trial, point(sequence, float(sequence)))
                history = self._refreshed(history)
            self.store.log_event(STUDY, "step", step)
            history = self._refreshed(history)
            self.expire()
            self.store.sweep(STUDY)
            history = self._refreshed(history)
        whole = self.store.history(STUDY)
        assert list(history) == whole.trials
        assert list(history.events) == whole.events

    def _refreshed(self, history: History) -> History:
        changes = self.store.history(STUDY, since=history.version)
        return history.updated(changes.trials, events=changes.events, version=changes.version)

    def test_events_come_in_order_with_their_time(self) -> None:
        for count in range(3):
            self.store.log_event(STUDY, "evicted", {"stage": count})
        events = self.store.history(STUDY, since=1).events
        assert [(event.kind, event.payload) for event in events] == [
            ("evicted", {"stage": 1}),
            ("evicted", {"stage": 2}),
        ]
        assert events[0].time == pytest.approx(self.store.now(), abs=5)

    def test_annotating_replaces_only_what_is_named(self) -> None:
        self.open_one()
        self.store.annotate(STUDY, 0, tags=["a"], comment="first")
        self.store.annotate(STUDY, 0, comment="second")
        assert (self.read().tags, self.read().comment) == (("a",), "second")
        self.store.annotate(STUDY, 0, tags=[])
        assert (self.read().tags, self.read().comment) == ((), "second")

    def test_studies_do_not_see_each_other(self) -> None:
        self.store.create_study(StudyRecord("other", Problem(SPACE)))
        self.open_one()
        self.store.log_event(STUDY, "kind", 1)
        other = self.store.history("other")
        assert (other.version, list(other.trials), list(other.events)) == (0, [], [])
        assert self.store.claim_trial("other", owner=OWNER, lease=LEASE) is None


class _Running(_Using):
    def test_time_counts_while_a_run_gives_signs_of_life(self) -> None:
        run = self.store.start_run(STUDY)
        self.time.advance(10)
        self.store.touch_run(STUDY, run)
        self.time.advance(100)
        assert self.store.seconds_run(STUDY) == pytest.approx(10, abs=0.5)

    def test_runs_at_the_same_time_count_once(self) -> None:
        first = self.store.start_run(STUDY)
        self.time.advance(5)
        second = self.store.start_run(STUDY)
        self.time.advance(5)
        self.store.touch_run(STUDY, first)
        self.time.advance(5)
        self.store.touch_run(STUDY, second)
        self.time.advance(100)
        self.store.touch_run(STUDY, self.store.start_run(STUDY))
        assert first != second
        assert self.store.seconds_run(STUDY) == pytest.approx(15, abs=0.5)

    def test_an_unknown_run_is_refused(self) -> None:
        with pytest.raises(FarthingError):
            self.store.touch_run(STUDY, 1)

    def test_the_clock_goes_on(self) -> None:
        before = self.store.now()
        self.time.advance(1)
        assert self.store.now() >= before + 1

    def test_a_sound_storage_has_nothing_wrong_with_it(self) -> None:
        self.open(suggestion(), suggestion(), retries=1)
        self.store.add_trial(STUDY, suggestion(), failed())
        self.close(self.read(0))
        self.expire()
        self.store.sweep(STUDY)
        assert self.store.check() == []


class StorageContract(_Studies, _Opening, _Recording, _Closing, _Leases, _Fencing, _Checkpoints, _Histories, _Running):
    """Inherit from this and define the fixture `storage`."""
