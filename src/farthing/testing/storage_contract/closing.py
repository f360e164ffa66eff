"""Trials are closed."""

from collections.abc import Callable

import pytest

from farthing.errors import (
    InvalidArgument,
    StaleAttempt,
    TrialFinished,
    TrialNotFound,
)
from farthing.testing.storage_contract.using import STUDY, Using, attempt_of, done, failed, point, suggestion
from farthing.trials import (
    Attempt,
    Outcome,
    State,
)


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
