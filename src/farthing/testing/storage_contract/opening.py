"""Trials are opened and claimed."""

import threading

import pytest

from farthing.errors import (
    HistoryMoved,
    InvalidArgument,
)
from farthing.storage import Changes
from farthing.storage.storage import OpensInTurn
from farthing.testing.storage_contract.using import (
    LEASE,
    OWNER,
    STUDY,
    Using,
    attempt_of,
    done,
    failed,
    point,
    suggestion,
)
from farthing.trials import (
    Failure,
    Prediction,
    State,
    Suggestion,
)


class Opening(Using):
    def test_trials_are_numbered_without_gaps(self) -> None:
        self.open(suggestion(), suggestion())
        self.store.enqueue_trial(STUDY, suggestion())
        self.store.add_trial(STUDY, suggestion(), done())
        self.open_one()
        assert [trial.number for trial in self.trials()] == [0, 1, 2, 3, 4]

    def test_the_same_suggestion_again_is_a_trial_of_its_own(self) -> None:
        same = suggestion(note={"why": 1})
        opened = self.open(same, same)
        self.store.enqueue_trial(STUDY, same)
        self.store.add_trial(STUDY, same, done(0.25))
        self.store.add_trial(STUDY, same, done(0.75))
        self.store.close_trial(STUDY, attempt_of(opened[1]), done(0.5))
        trials = self.trials()
        assert [trial.suggestion for trial in trials] == [same] * 5
        assert [trial.value for trial in trials] == [None, 0.5, None, 0.25, 0.75]

    def test_an_opened_trial_runs_for_its_owner(self) -> None:
        trial = self.open_one()
        assert (trial.state, trial.owner, trial.attempt) == (State.RUNNING, OWNER, 1)
        assert trial.lease_until == pytest.approx(trial.opened_at + LEASE)
        assert self.trials() == [trial]

    def test_a_suggestion_comes_back_as_it_was(self) -> None:
        proposal = Suggestion(
            params={"x": 0.1 + 0.2, "name": "ü\x00🙂", "flag": True, "many": [1, 2.5, None]},
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

    def test_suggestions_made_in_turn_are_for_the_history_as_it_is(self) -> None:
        if not isinstance(self.store, OpensInTurn):
            pytest.skip("This storage leaves it to the quicker.")
        known, seen = self.version(), list[int]()
        self.open(suggestion(), suggestion())

        def choose(changes: Changes) -> tuple[list[Suggestion], float]:
            seen.extend(trial.number for trial in changes.trials)
            return [suggestion(0.1), suggestion(0.2)][: 4 - len(seen)], 3.0

        opened = self.store.open_in_turn(STUDY, choose, since=known, owner=OWNER, lease=LEASE, retries=2)
        assert (seen, [trial.number for trial in opened]) == ([0, 1], [2, 3])
        assert [(trial.owner, trial.overhead) for trial in opened] == [(OWNER, 1.5)] * 2
        assert self.trials()[2:] == opened
        before = self.version()
        assert self.store.open_in_turn(STUDY, choose, since=known, owner=OWNER, lease=LEASE) == []
        assert self.version() == before
        (waiting,) = self.store.open_in_turn(
            STUDY, lambda changes: ([suggestion(0.3)], 1.0), since=known, owner=None, lease=LEASE
        )
        assert (waiting.number, waiting.state, waiting.owner) == (4, State.PENDING, None)

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
