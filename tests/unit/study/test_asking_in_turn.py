"""A process that asks gets a trial, however quickly others add theirs: after some tries the others wait for it."""

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import farthing as ft
from farthing.costs import Remaining
from farthing.storage import MemoryStorage, Storage, StudyRecord, open_storage
from farthing.study.records import TRIES_BEFORE_A_TURN, Records
from farthing.trials import History, Outcome, Problem, State, Suggestion

SPACE = ft.Space({"x": ft.Float(0, 1)})


@dataclass
class Adder:
    """Adds results to a study without a pause."""

    storage: Storage
    added: int = 0
    is_over: threading.Event = field(default_factory=threading.Event)

    def __call__(self) -> None:
        while not self.is_over.is_set():
            self.storage.add_trial("study", Suggestion({"x": 0.5}), Outcome(State.DONE, value=0.5))
            self.added += 1

    def is_quicker(self) -> None:
        """Waits until it has added one more, if it can."""
        before, began = self.added, time.monotonic()
        while self.added < before + 2 and time.monotonic() - began < 0.3:
            time.sleep(0.001)


@dataclass
class Overtaken:
    """Suggests the number of trials that it saw, slower than others add theirs."""

    adder: Adder

    def suggest(self, history: History, budget: Remaining, count: int, rng: ft.Randomness) -> Sequence[Suggestion]:
        self.adder.is_quicker()
        return [Suggestion({"x": 1 / (1 + len(history))})] * count


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    if request.param == "memory":
        yield MemoryStorage()
        return
    address = request.getfixturevalue("postgres_url") if request.param == "postgresql" else str(tmp_path / "study.db")
    opened = open_storage(address)
    yield opened
    opened.close()


def test_an_ask_does_not_starve_beside_results_that_are_added(storage: Storage) -> None:
    record = storage.create_study(StudyRecord("study", Problem(SPACE)))
    records, adder = Records(storage, record, lease=60.0, retries=0), Adder(storage)
    thread = threading.Thread(target=adder)
    thread.start()
    try:
        opened = records.open(Overtaken(adder), lambda history: (Remaining(), 3), taken={}).trials  # type: ignore[arg-type]
    finally:
        adder.is_over.set()
        thread.join()
        records.leases.close()
    first = opened[0].number
    assert [trial.number for trial in opened] == [first, first + 1, first + 2]
    assert [trial.params["x"] for trial in opened] == [1 / (1 + first)] * 3
    assert first >= 2 * (TRIES_BEFORE_A_TURN - 1)
    assert storage.check() == []
