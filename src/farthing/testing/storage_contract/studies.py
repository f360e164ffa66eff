"""Studies: created, found, listed, deleted."""

import threading
from collections.abc import Callable

import pytest

from farthing.errors import (
    InvalidArgument,
    StudyExists,
    StudyNotFound,
)
from farthing.storage import StudyRecord
from farthing.storage.storage import CreatesInTurn
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
    History,
    Problem,
    State,
)


class Studies(Using):
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

    def test_a_study_that_is_created_in_turn_begins_with_its_event(self) -> None:
        if not isinstance(self.store, CreatesInTurn):
            pytest.skip("This storage leaves it to the quicker.")
        record = StudyRecord("granted", Problem(SPACE), settings={"a": 1})
        created = self.store.create_in_turn(record, "begun", {"with": 5}, admit=lambda: None)
        assert created == self.store.load_study("granted")
        assert [(event.kind, event.payload) for event in self.store.history("granted").events] == [
            ("begun", {"with": 5})
        ]
        with pytest.raises(StudyExists):
            self.store.create_in_turn(record, "begun", None, admit=lambda: None)
        assert len(self.store.history("granted").events) == 1

    def test_a_study_that_is_not_admitted_is_not_created(self) -> None:
        if not isinstance(self.store, CreatesInTurn):
            pytest.skip("This storage leaves it to the quicker.")

        def refuse() -> None:
            raise InvalidArgument("There is no room for it.")

        with pytest.raises(InvalidArgument, match="no room"):
            self.store.create_in_turn(StudyRecord("granted", Problem(SPACE)), "begun", None, admit=refuse)
        with pytest.raises(StudyNotFound):
            self.store.load_study("granted")

    def test_who_creates_in_turn_sees_all_that_were_created_so(self) -> None:
        if not isinstance(self.store, CreatesInTurn):
            pytest.skip("This storage leaves it to the quicker.")
        store, seen = self.store, list[list[str]]()

        def create(place: int) -> None:
            def admit() -> None:
                seen.append([one.record.name for one in store.list_studies() if one.record.name.startswith("turn")])
                store.history(STUDY)  # it may read a whole study

            store.create_in_turn(StudyRecord(f"turn-{place}", Problem(SPACE)), "begun", None, admit=admit)

        threads = [threading.Thread(target=create, args=(place,)) for place in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [len(names) for names in seen] == [1, 2, 3, 4], "each sees itself and those before it"

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
            lambda: self.store.start_run("nobody", lease=LEASE),
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
        self.store.start_run(STUDY, lease=LEASE)
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
        self.expire_and_sweep()
        (listed,) = self.store.list_studies()
        assert listed.cost == pytest.approx(self.read().cost) == pytest.approx(3.0 + 1.5 + 10.0)
        assert dict(listed.trials) == {State.LOST: 1}

    def test_an_empty_study_has_no_best_value(self) -> None:
        (listed,) = self.store.list_studies()
        assert (listed.best_value, listed.cost, dict(listed.trials)) == (None, 0.0, {})


# ------------------------------------------------------------
# Reading gives back exactly the data that was written.


class Histories(Using):
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

    def test_a_reader_that_does_not_ask_for_running_trials_gets_those_that_changed(self) -> None:
        first, second = self.open(suggestion(), suggestion())
        seen = self.version()
        assert self.store.history(STUDY, since=seen, running=False).trials == []
        self.record(second, point(0, 0.5))
        self.store.enqueue_trial(STUDY, suggestion())
        (changed, new) = self.store.history(STUDY, since=seen, running=False).trials
        assert (changed.number, len(changed.measurements), new.number) == (second.number, 1, 2)
        self.record(first, point(0, 0.25))
        whole = self.store.history(STUDY, since=seen).trials
        assert [len(trial.measurements) for trial in whole] == [1, 1, 0]

    def test_leases_end_for_readers_that_seldom_ask_for_running_trials(self) -> None:
        self.open_one(retries=1)
        seen = self.version()
        self.expire()
        assert self.store.history(STUDY, since=seen, running=False).trials == []
        (waiting,) = self.store.history(STUDY, since=seen).trials
        assert (waiting.state, waiting.attempt) == (State.PENDING, 2)

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

    def test_an_event_may_say_how_many_trials_there_were(self) -> None:
        self.open(suggestion(), suggestion())
        self.store.log_event(STUDY, "counted", lambda trials: {"trials": trials})
        (event,) = self.store.history(STUDY).events
        assert event.payload == {"trials": 2}

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
