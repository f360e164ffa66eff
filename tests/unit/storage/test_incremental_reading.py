"""Reading a history costs what changed, counted in rows and in steps of the database, not in time."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from farthing.space import Float, Space
from farthing.storage import StudyRecord, rows
from farthing.storage.sql import SqlStorage
from farthing.trials import Attempt, Measurement, Outcome, Problem, State, Suggestion

PROBLEM = Problem(Space({"x": Float(0.0, 1.0)}))
SUGGESTION = Suggestion({"x": 0.5})


class Counts:
    def __init__(self) -> None:
        self.trials = 0
        self.measurements = 0


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counts:
    counts = Counts()
    entry, measurement = rows.entry, rows.measurement

    def counting_entry(*arguments: object, **named: bool) -> object:
        counts.trials += 1
        return entry(*arguments, **named)  # type: ignore[arg-type]

    def counting_measurement(row: object) -> object:
        counts.measurements += 1
        return measurement(row)  # type: ignore[arg-type]

    monkeypatch.setattr(rows, "entry", counting_entry)
    monkeypatch.setattr(rows, "measurement", counting_measurement)
    return counts


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[SqlStorage]:
    storage = SqlStorage(f"sqlite:///{tmp_path}/study.db?synchronous=off")
    storage.create_study(StudyRecord("study", PROBLEM))
    yield storage
    storage.close()


def add_trials(storage: SqlStorage, count: int) -> None:
    for _ in range(count):
        storage.add_trial("study", SUGGESTION, Outcome(State.DONE, value=0.5, measurements=[Measurement(0.5)]))


def test_a_reader_who_is_up_to_date_reads_only_what_runs(storage: SqlStorage, counts: Counts) -> None:
    add_trials(storage, 50)
    storage.open_trials("study", [SUGGESTION] * 2, owner="ada", lease=60)
    version = storage.history("study").version
    counts.trials = counts.measurements = 0
    storage.history("study", since=version)
    assert (counts.trials, counts.measurements) == (2, 0)


def test_a_reader_may_leave_out_what_runs_and_reads_only_what_changed(storage: SqlStorage, counts: Counts) -> None:
    storage.open_trials("study", [SUGGESTION] * 50, owner="ada", lease=60)
    for number in range(50):
        storage.record("study", Attempt(number, 1), [Measurement(0.5)], lease=60)
    version = storage.history("study").version
    counts.trials = counts.measurements = 0
    for sequence in (1, 2):
        storage.record("study", Attempt(7, 1), [Measurement(0.25, sequence=sequence)], lease=60)
        changes = storage.history("study", since=version, running=False)
        version = changes.version
    assert (counts.trials, counts.measurements) == (2, 2)
    assert [len(trial.measurements) for trial in changes.trials] == [3]


def test_a_reader_reads_each_measurement_of_a_long_trial_once(storage: SqlStorage, counts: Counts) -> None:
    storage.open_trials("study", [SUGGESTION], owner="ada", lease=60)
    version = storage.history("study").version
    for sequence in range(30):
        storage.record("study", Attempt(0, 1), [Measurement(0.5, sequence=sequence)], lease=60)
        changes = storage.history("study", since=version)
        version = changes.version
    assert len(changes.trials[0].measurements) == 30
    assert counts.measurements == 30


def test_two_readers_may_be_at_different_versions(storage: SqlStorage) -> None:
    storage.open_trials("study", [SUGGESTION], owner="ada", lease=60)
    for sequence in range(6):
        storage.record("study", Attempt(0, 1), [Measurement(0.5, sequence=sequence)], lease=60)
        for since in (0, 1, sequence):
            (trial,) = storage.history("study", since=since).trials
            assert len(trial.measurements) == sequence + 1


def test_the_databases_work_does_not_grow_with_the_study(storage: SqlStorage) -> None:
    add_trials(storage, 50)
    few = steps_of_one_change(storage)
    add_trials(storage, 1000)
    many = steps_of_one_change(storage)
    assert many < 1.2 * few + 100  # a search in a larger index takes a step or two more


def steps_of_one_change(storage: SqlStorage) -> int:
    """Instructions of SQLite's virtual machine for a change and the reads around it."""
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    version = storage.history("study").version
    with storage._database.engine.connect() as connection:
        driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    driver.set_progress_handler(count, 1)
    (trial,) = storage.open_trials("study", [SUGGESTION], owner="ada", lease=60)
    storage.history("study", since=version)
    storage.record("study", Attempt(trial.number, 1), [Measurement(0.5)], lease=60)
    storage.renew("study", [Attempt(trial.number, 1)], lease=60)
    storage.close_trial("study", Attempt(trial.number, 1), Outcome(State.DONE, value=0.5, checkpoint="c"))
    storage.retire_checkpoint("study", trial.number)
    storage.sweep("study", dead=["bob"])
    storage.claim_trial("study", owner="ada", lease=60)
    storage.history("study", since=version)
    driver.set_progress_handler(None, 1)
    return steps
