"""Reading gives back exactly the data that was written."""

from collections.abc import Callable

import pytest

from farthing.storage import StudyRecord
from farthing.testing.storage_contract.using import LEASE, OWNER, SPACE, STUDY, Using, done, point, suggestion
from farthing.trials import (
    Attempt,
    History,
    Problem,
    State,
)


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
