"""Trials are opened and claimed."""

import threading

import pytest

from farthing.errors import (
    FarthingError,
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
    Attempt,
    Failure,
    Prediction,
    State,
    Suggestion,
)


class OpeningTests(Using):
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


# ------------------------------------------------------------
# Seconds of running are counted.


class RunTests(Using):
    def test_time_counts_while_a_run_gives_signs_of_life(self) -> None:
        run = self.store.start_run(STUDY, lease=LEASE)
        self.time.advance(10)
        self.store.touch_run(STUDY, run)
        self.time.advance(100)
        assert self.store.seconds_run(STUDY) == pytest.approx(10, abs=0.5)

    def test_runs_at_the_same_time_count_once(self) -> None:
        first = self.store.start_run(STUDY, lease=LEASE)
        self.time.advance(5)
        second = self.store.start_run(STUDY, lease=LEASE)
        self.time.advance(5)
        self.store.touch_run(STUDY, first)
        self.time.advance(5)
        self.store.touch_run(STUDY, second)
        self.time.advance(100)
        self.store.touch_run(STUDY, self.store.start_run(STUDY, lease=LEASE))
        assert first != second
        assert self.store.seconds_run(STUDY) == pytest.approx(15, abs=0.5)

    def test_time_between_runs_does_not_count(self) -> None:
        for _ in range(3):
            run = self.store.start_run(STUDY, lease=LEASE)
            self.time.advance(4)
            self.store.touch_run(STUDY, run, ends=True)
            self.time.advance(LEASE / 4)
        assert self.store.seconds_run(STUDY) == pytest.approx(12, abs=0.5)

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


# ------------------------------------------------------------
# One process at a time has the right to suggest for all, and pending trials are opened ahead for the others.


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

    def test_each_attempt_has_the_label_of_its_worker_and_costs_what_it_says(self) -> None:
        self.store.open_trials(STUDY, [suggestion()] * 2, owner=OWNER, lease=LEASE)
        self.store.release_trial(STUDY, Attempt(0, 1))
        self.store.claim_trial(STUDY, owner=OWNER, lease=LEASE, label="spot", rate=lambda params: 2.0)
        self.time.advance(3.0)
        self.store.release_trial(STUDY, Attempt(0, 2))
        self.store.claim_trial(STUDY, owner=OWNER, lease=LEASE)
        assert self.read(0).labels == (None, "spot", None)
        assert [(point.attempt, point.rate) for point in self.read(0).measurements if point.rate] == [(2, 2.0)]
        assert self.read(0).costs_by_label["spot"] == pytest.approx(6.0, abs=0.5)
        assert self.read(1).labels == ()

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
