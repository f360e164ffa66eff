"""Several processes on one database: no trial is claimed twice, no number is given twice, nobody is turned away."""

import multiprocessing
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from farthing.errors import HistoryMoved, StudyExists
from farthing.space import Float, Space
from farthing.storage import StudyRecord
from farthing.storage.sql import SqlStorage
from farthing.trials import Attempt, Measurement, Outcome, Problem, State, Suggestion

PROBLEM = Problem(Space({"x": Float(0.0, 1.0)}))
SUGGESTION = Suggestion({"x": 0.5})
PROCESSES = 4

Work = Callable[[SqlStorage], Any]


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/study.db"
    return str(request.getfixturevalue("postgres_url"))


def in_processes(work: Work, address: str) -> list[Any]:
    """What each process returns from `work`; all begin at once."""
    context = multiprocessing.get_context("spawn")
    answers: Any = context.Queue()
    barrier = context.Barrier(PROCESSES)
    processes = [context.Process(target=_run, args=(work, address, barrier, answers)) for _ in range(PROCESSES)]
    for process in processes:
        process.start()
    collected = [answers.get(timeout=1200) for _ in processes]
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * PROCESSES
    return collected


def _run(work: Work, address: str, barrier: Barrier, answers: "Queue[Any]") -> None:
    barrier.wait()
    storage = SqlStorage(address)
    answers.put(work(storage))
    storage.close()


def create(storage: SqlStorage) -> bool:
    try:
        storage.create_study(StudyRecord("study", PROBLEM))
    except StudyExists:
        return False
    return True


def claim_and_finish(storage: SqlStorage) -> list[int]:
    claimed = []
    while (trial := storage.claim_trial("study", owner="ada", lease=60)) is not None:
        storage.close_trial("study", Attempt(trial.number, trial.attempt), Outcome(State.DONE, value=0.5))
        claimed.append(trial.number)
    return claimed


def full_trials(storage: SqlStorage) -> list[int]:
    """Ten trials, each for the history as it was read."""
    opened: list[int] = []
    while len(opened) < 10:
        known = len(storage.history("study").trials)
        try:
            (trial,) = storage.open_trials("study", [SUGGESTION], owner="ada", lease=60, expected_trials=known)
        except HistoryMoved:
            continue
        attempt = Attempt(trial.number, trial.attempt)
        storage.record("study", attempt, [Measurement(0.5)], lease=60)
        storage.close_trial("study", attempt, Outcome(State.DONE, value=0.5))
        opened.append(trial.number)
    return opened


def test_a_database_and_its_study_are_created_once(address: str) -> None:
    assert sorted(in_processes(create, address)) == [False] * (PROCESSES - 1) + [True]


def test_every_queued_trial_is_claimed_once(address: str) -> None:
    storage = SqlStorage(address)
    create(storage)
    for _ in range(40):
        storage.enqueue_trial("study", SUGGESTION)
    claimed = in_processes(claim_and_finish, address)
    assert sorted(number for numbers in claimed for number in numbers) == list(range(40))
    assert storage.check() == []
    storage.close()


def test_every_number_is_given_once(address: str) -> None:
    storage = SqlStorage(address)
    create(storage)
    opened = in_processes(full_trials, address)
    assert sorted(number for numbers in opened for number in numbers) == list(range(10 * PROCESSES))
    changes = storage.history("study")
    assert changes.version == 3 * 10 * PROCESSES
    assert {trial.state for trial in changes.trials} == {State.DONE}
    assert storage.check() == []
    storage.close()
