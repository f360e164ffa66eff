"""Only the latest attempt writes."""

from collections.abc import Callable

import pytest

from farthing.errors import (
    StaleAttempt,
    TrialFinished,
)
from farthing.testing.storage_contract.using import LEASE, STUDY, Using, attempt_of, done, failed, point
from farthing.trials import (
    Attempt,
    Outcome,
    State,
    Trial,
)


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
