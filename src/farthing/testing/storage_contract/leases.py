"""Leases are kept, renewed and lost."""

from collections.abc import Callable

import pytest

from farthing.errors import (
    InvalidArgument,
    StaleAttempt,
    TrialFinished,
    TrialNotFound,
)
from farthing.storage import StudyRecord
from farthing.testing.storage_contract.using import (
    LEASE,
    OWNER,
    SPACE,
    STUDY,
    Using,
    attempt_of,
    done,
    failed,
    point,
    suggestion,
)
from farthing.trials import (
    Attempt,
    Outcome,
    Problem,
    State,
)


class LeaseTests(Using):
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


# ------------------------------------------------------------
# Trials are closed.


class Closing(Using):
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
