"""Leases are kept, renewed and lost."""

import pytest

from farthing.storage import StudyRecord
from farthing.testing.storage_contract.using import LEASE, OWNER, SPACE, STUDY, Using, attempt_of, point, suggestion
from farthing.trials import (
    Attempt,
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
