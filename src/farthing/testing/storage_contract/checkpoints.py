"""Checkpoints are announced and retired."""

import pytest

from farthing.errors import (
    InvalidArgument,
)
from farthing.testing.storage_contract.using import (
    STUDY,
    Using,
    attempt_of,
    done,
    suggestion,
)


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
