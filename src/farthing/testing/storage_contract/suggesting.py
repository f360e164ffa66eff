"""One process at a time has the right to suggest for all, and pending trials are opened ahead for the others."""

import pytest

from farthing.errors import HistoryMoved
from farthing.testing.storage_contract.using import LEASE, OWNER, STUDY, Using, attempt_of, suggestion
from farthing.trials import State


class SuggestingTests(Using):
    def claim_right(self, owner: str, **settings: object) -> str:
        return self.store.claim_suggesting(STUDY, owner=owner, lease=LEASE, **settings)  # type: ignore[arg-type]

    def test_the_right_to_suggest_has_one_holder(self) -> None:
        assert self.claim_right("ada") == "ada"
        assert self.claim_right("grace") == "ada"
        assert self.claim_right("ada") == "ada"

    def test_the_right_is_free_once_it_was_given_back(self) -> None:
        self.claim_right("ada")
        self.store.yield_suggesting(STUDY, owner="grace")
        assert self.claim_right("grace") == "ada"
        self.store.yield_suggesting(STUDY, owner="ada")
        assert self.claim_right("grace") == "grace"

    def test_the_right_is_free_once_no_renewal_was_seen_for_a_lease(self) -> None:
        self.claim_right("ada")
        assert self.claim_right("grace") == "ada"
        self.time.advance(LEASE * 0.9)
        assert self.claim_right("ada") == "ada"
        assert self.claim_right("grace") == "ada"
        self.time.advance(LEASE * 0.9)
        assert self.claim_right("grace") == "ada"
        self.time.advance(LEASE * 1.1)
        assert self.claim_right("grace") == "grace"

    def test_the_right_of_the_dead_is_free_at_once(self) -> None:
        self.claim_right("ada")
        assert self.claim_right("grace", dead=["hopper"]) == "ada"
        assert self.claim_right("grace", dead=["ada"]) == "grace"

    def test_claiming_the_right_is_no_change_of_the_history(self) -> None:
        before = self.version()
        self.claim_right("ada")
        self.store.yield_suggesting(STUDY, owner="ada")
        assert self.version() == before

    def test_trials_that_are_opened_without_an_owner_wait_to_be_claimed(self) -> None:
        opened = self.store.open_trials(
            STUDY, [suggestion()] * 2, owner=None, lease=LEASE, expected_trials=0, overhead=3.0
        )
        assert [(trial.state, trial.owner, trial.overhead) for trial in opened] == [(State.PENDING, None, 1.5)] * 2
        claimed = self.store.claim_trial(STUDY, owner=OWNER, lease=LEASE, waited=2.5)
        assert claimed is not None
        assert (claimed.number, claimed.state, claimed.waited) == (0, State.RUNNING, 2.5)
        assert self.read(0).waited == 2.5

    def test_a_trial_begins_when_a_worker_takes_it(self) -> None:
        self.store.open_trials(STUDY, [suggestion()], owner=None, lease=LEASE)
        assert self.read(0).started_at is None
        self.time.advance(240.0)
        claimed = self.store.claim_trial(STUDY, owner=OWNER, lease=LEASE)
        assert claimed is not None
        assert self.read(0).started_at == claimed.started_at == pytest.approx(claimed.opened_at + 240.0, abs=0.5)

    def test_trials_that_wait_are_opened_for_their_numbers_only(self) -> None:
        self.open_one()
        with pytest.raises(HistoryMoved):
            self.store.open_trials(STUDY, [suggestion()], owner=None, lease=LEASE, expected_trials=0)

    def test_waiting_is_added_over_attempts(self) -> None:
        (trial,) = self.store.open_trials(STUDY, [suggestion()], owner=OWNER, lease=LEASE, waited=1.0)
        self.store.release_trial(STUDY, attempt_of(trial))
        again = self.store.claim_trial(STUDY, owner=OWNER, lease=LEASE, waited=0.5)
        assert again is not None
        assert again.waited == 1.5

    def test_runs_that_go_are_counted(self) -> None:
        assert self.store.runs_going(STUDY) == 0
        first = self.store.start_run(STUDY, lease=LEASE)
        self.store.start_run(STUDY, lease=LEASE)
        assert self.store.runs_going(STUDY) == 2
        self.store.touch_run(STUDY, first, ends=True)
        assert self.store.runs_going(STUDY) == 1
        self.time.advance(LEASE * 1.1)
        assert self.store.runs_going(STUDY) == 0
