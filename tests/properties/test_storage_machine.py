"""Whatever is done in whatever order, every storage behaves as the one in memory does."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from farthing.costs import FakeClock
from farthing.errors import FarthingError
from farthing.space import Float, Space
from farthing.storage import MemoryStorage, Storage, StudyRecord
from farthing.storage.sql import SqlStorage
from farthing.trials import Attempt, Failure, History, Measurement, Outcome, Problem, State, Suggestion, Trial

LEASE = 60.0
PROBLEM = Problem(Space({"x": Float(0.0, 1.0)}))

owners = st.sampled_from(["ada", "bob"])
picks = st.integers(0, 9)
retries = st.integers(0, 2)
amounts = st.sampled_from([0.0, 0.1, 1.0, 7.5])
points = st.builds(
    Measurement,
    value=st.none() | st.floats(-1, 1),
    cost=st.just({}) | st.builds(lambda amount: {"training": amount}, amounts),
    charged=st.booleans(),
    sequence=st.integers(0, 3),
)
outcomes = st.builds(
    Outcome,
    state=st.sampled_from([State.DONE, State.DONE, State.FAILED, State.PRUNED, State.LOST]),
    value=st.floats(-1, 1),
    measurements=st.lists(points, max_size=2),
    failure=st.none() | st.just(Failure("it broke", "line 1")),
    checkpoint=st.none() | st.sampled_from(["red", "blue"]),
    retry=st.booleans(),
)
suggestions = st.builds(
    Suggestion,
    params=st.builds(lambda x: {"x": x}, st.floats(0, 1)),
    resume_from=st.none() | st.integers(0, 3),
    note=st.none() | st.just({"why": [1, 2.5, None]}),
)

names = (f"study {count}" for count in itertools.count())


class StorageMachine(RuleBasedStateMachine):
    """Does the same to every storage and compares what comes of it. `attempts` has all that were ever given out."""

    storages: tuple[Storage, ...]
    clock: FakeClock

    @initialize()
    def create(self) -> None:
        self.study = next(names)
        self.attempts: list[Attempt] = []
        self.histories = [History(PROBLEM) for _ in self.storages]
        self.each(lambda storage: storage.create_study(StudyRecord(self.study, PROBLEM)))

    def each(self, call: Callable[[Storage], Any]) -> Any:
        answers = [_answer(call, storage) for storage in self.storages]
        assert all(answer == answers[0] for answer in answers), answers
        return answers[0]

    def hold(self, trials: Any) -> None:
        if isinstance(trials, list):
            self.attempts += [Attempt(trial.number, trial.attempt) for trial in trials if isinstance(trial, Trial)]

    def attempt(self, pick: int) -> Attempt:
        return self.attempts[pick % len(self.attempts)]

    @rule(
        proposals=st.lists(suggestions, min_size=1, max_size=2),
        owner=owners,
        retries=retries,
        expected=st.integers(0, 9),
    )
    def open(self, proposals: list[Suggestion], owner: str, retries: int, expected: int) -> None:
        known = expected if expected < 3 else None
        self.hold(
            self.each(
                lambda storage: storage.open_trials(
                    self.study,
                    proposals,
                    owner=owner,
                    lease=LEASE,
                    retries=retries,
                    expected_trials=known,
                    overhead=0.5,
                )
            )
        )

    @rule(proposal=suggestions, retries=retries)
    def enqueue(self, proposal: Suggestion, retries: int) -> None:
        self.each(lambda storage: storage.enqueue_trial(self.study, proposal, retries=retries, tags=["queued"]))

    @rule(proposal=suggestions, outcome=outcomes)
    def add(self, proposal: Suggestion, outcome: Outcome) -> None:
        self.each(lambda storage: storage.add_trial(self.study, proposal, outcome))

    @precondition(lambda self: len(self.histories[0]) > 0)
    @rule(pick=picks, owner=owners, outcome=outcomes, times=st.integers(1, 3))
    def repeat(self, pick: int, owner: str, outcome: Outcome, times: int) -> None:
        """The very suggestion of an earlier trial again, in every way there is: each time it is a trial of its own."""
        before = self.histories[0]
        proposal = before[pick % len(before)].suggestion
        self.hold(
            self.each(lambda storage: storage.open_trials(self.study, [proposal] * times, owner=owner, lease=LEASE))
        )
        self.each(lambda storage: storage.enqueue_trial(self.study, proposal))
        added = self.each(lambda storage: storage.add_trial(self.study, proposal, outcome))
        trials = self.each(_whole_history(self.study))[1]
        expected = times + 1 + isinstance(added, Trial)
        assert [trial.suggestion for trial in trials[len(before) :]] == [proposal] * expected

    @precondition(lambda self: self.attempts)
    @rule(pick=picks, points=st.lists(points, min_size=1, max_size=3, unique_by=lambda point: point.sequence))
    def record_twice(self, pick: int, points: list[Measurement]) -> None:
        """What is said again word for word, as after a broken connection, changes nothing."""
        answer = self.each(lambda storage: storage.record(self.study, self.attempt(pick), points, lease=LEASE))
        before = self.each(_measurements(self.study))
        again = self.each(lambda storage: storage.record(self.study, self.attempt(pick), points, lease=LEASE))
        assert (again, self.each(_measurements(self.study))) == (answer, before)

    @rule(owner=owners, number=st.none() | st.integers(0, 5))
    def claim(self, owner: str, number: int | None) -> None:
        self.hold([self.each(lambda storage: storage.claim_trial(self.study, owner=owner, lease=LEASE, number=number))])

    @precondition(lambda self: self.attempts)
    @rule(pick=picks, points=st.lists(points, max_size=3))
    def record(self, pick: int, points: list[Measurement]) -> None:
        self.each(lambda storage: storage.record(self.study, self.attempt(pick), points, lease=LEASE))

    @rule(picked=st.lists(picks, max_size=3, unique=True))
    def renew(self, picked: list[int]) -> None:
        asked = [Attempt(9, 1), *(self.attempt(pick) for pick in picked if self.attempts)]
        self.each(lambda storage: storage.renew(self.study, asked, lease=LEASE))

    @precondition(lambda self: self.attempts)
    @rule(pick=picks, outcome=outcomes)
    def close(self, pick: int, outcome: Outcome) -> None:
        self.each(lambda storage: storage.close_trial(self.study, self.attempt(pick), outcome))

    @precondition(lambda self: self.attempts)
    @rule(pick=picks, point=points)
    def release(self, pick: int, point: Measurement) -> None:
        self.each(lambda storage: storage.release_trial(self.study, self.attempt(pick), measurements=[point]))

    @rule(seconds=st.sampled_from([1.0, LEASE / 2, LEASE]))
    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule(dead=st.lists(owners, max_size=1))
    def sweep(self, dead: list[str]) -> None:
        self.each(lambda storage: storage.sweep(self.study, dead=dead))

    @precondition(lambda self: self.attempts)
    @rule(pick=picks)
    def save_checkpoint(self, pick: int) -> None:
        self.each(lambda storage: storage.save_checkpoint(self.study, self.attempt(pick), "on the way"))

    @rule(number=st.integers(0, 4))
    def retire_checkpoint(self, number: int) -> None:
        self.each(lambda storage: storage.retire_checkpoint(self.study, number))

    @rule(number=st.integers(0, 4), comment=st.text(max_size=3))
    def annotate(self, number: int, comment: str) -> None:
        self.each(lambda storage: storage.annotate(self.study, number, tags=["seen"], comment=comment))

    @rule()
    def log_event(self) -> None:
        self.each(lambda storage: storage.log_event(self.study, "evicted", {"stage": 1}))

    @invariant()
    def histories_are_the_same_whole_or_bit_by_bit(self) -> None:
        for place, storage in enumerate(self.storages):
            changes = storage.history(self.study, since=self.histories[place].version)
            later = self.histories[place].updated(changes.trials, events=changes.events, version=changes.version)
            self.histories[place] = later
        version, trials, events = self.each(_whole_history(self.study))
        for history in self.histories:
            assert (history.version, list(history), list(history.events)) == (version, trials, events)

    @invariant()
    def listings_are_the_same(self) -> None:
        lines = [
            next(line for line in storage.list_studies() if line.record.name == self.study) for storage in self.storages
        ]
        for line in lines[1:]:
            assert (dict(line.trials), line.best_value) == (dict(lines[0].trials), lines[0].best_value)
            assert line.cost == pytest.approx(lines[0].cost, abs=1e-9)  # databases add up in an order of their own

    def teardown(self) -> None:
        for storage in self.storages:
            assert storage.check() == []
            storage.delete_study(self.study)


def _answer(call: Callable[[Storage], Any], storage: Storage) -> Any:
    try:
        return call(storage)
    except FarthingError as error:
        return type(error)


def _whole_history(study: str) -> Callable[[Storage], Any]:
    def read(storage: Storage) -> Any:
        changes = storage.history(study)
        return changes.version, list(changes.trials), list(changes.events)

    return read


def _measurements(study: str) -> Callable[[Storage], Any]:
    return lambda storage: [tuple(trial.measurements) for trial in storage.history(study).trials]


@pytest.mark.parametrize("examples", [15, pytest.param(200, marks=[pytest.mark.long, pytest.mark.timeout(36_000)])])
def test_every_storage_behaves_as_memory_does(tmp_path: Path, postgres_url: str, examples: int) -> None:
    class Machine(StorageMachine):
        clock = FakeClock()
        storages = (
            MemoryStorage(clock),
            SqlStorage(f"sqlite:///{tmp_path}/study.db?synchronous=off", clock=clock),
            SqlStorage(postgres_url, clock=clock),
        )

    run_state_machine_as_test(
        Machine,
        settings=settings(max_examples=examples, stateful_step_count=40, suppress_health_check=list(HealthCheck)),
    )
    for storage in Machine.storages:
        storage.close()
