"""Studies: created, found, listed, deleted."""

from collections.abc import Callable

import pytest

from farthing.errors import (
    InvalidArgument,
    StudyExists,
    StudyNotFound,
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
