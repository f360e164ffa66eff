"""Common to every part of the contract: a storage with one study in it, and short ways to use it."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from farthing.costs import FakeClock
from farthing.space import Float, Space
from farthing.storage import Storage, StudyRecord
from farthing.trials import (
    Attempt,
    Failure,
    Measurement,
    Outcome,
    Problem,
    State,
    Suggestion,
    Trial,
)

SPACE = Space({"x": Float(0.0, 1.0)})
STUDY = "study"
OWNER = "owner"
LEASE = 60.0


def suggestion(x: float = 0.5, **more: Any) -> Suggestion:
    return Suggestion(params={"x": x}, **more)


def done(value: float = 0.25, **more: Any) -> Outcome:
    return Outcome(State.DONE, value=value, **more)


def failed(reason: str = "it broke", **more: Any) -> Outcome:
    return Outcome(State.FAILED, failure=Failure(reason), **more)


def point(sequence: int = 0, value: float | None = 0.5, **more: Any) -> Measurement:
    return Measurement(value=value, sequence=sequence, **more)


def attempt_of(trial: Trial) -> Attempt:
    return Attempt(trial.number, trial.attempt)


class Using:
    """A storage with one study in it, and short ways to use it."""

    @pytest.fixture
    def clock(self) -> FakeClock:
        return FakeClock()

    @pytest.fixture
    def storage(self, clock: FakeClock) -> Iterator[Storage]:
        pytest.fail("A suite must say which storage it is about. Define a fixture `storage`.")

    @pytest.fixture(autouse=True)
    def _with_study(self, storage: Storage, clock: FakeClock) -> Iterator[None]:
        self.store = storage
        self.time = clock
        storage.create_study(StudyRecord(STUDY, Problem(SPACE)))
        yield
        storage.close()

    def open(self, *suggestions: Suggestion, **more: Any) -> list[Trial]:
        arguments = {"owner": OWNER, "lease": LEASE, **more}
        return self.store.open_trials(STUDY, suggestions or [suggestion()], **arguments)

    def open_one(self, proposal: Suggestion | None = None, **more: Any) -> Trial:
        return self.open(proposal or suggestion(), **more)[0]

    def claim(self, owner: str = OWNER) -> Trial | None:
        return self.store.claim_trial(STUDY, owner=owner, lease=LEASE)

    def claim_some(self, owner: str = OWNER) -> Trial:
        trial = self.claim(owner)
        assert trial is not None
        return trial

    def record(self, trial: Trial, *measurements: Measurement) -> None:
        self.store.record(STUDY, attempt_of(trial), measurements or [point()], lease=LEASE)

    def close(self, trial: Trial, outcome: Outcome | None = None) -> Trial:
        return self.store.close_trial(STUDY, attempt_of(trial), outcome or done())

    def expire(self) -> None:
        self.time.advance(LEASE)

    def expire_and_sweep(self) -> list[int]:
        self.expire()
        return self.store.sweep(STUDY)

    def read(self, number: int = 0) -> Trial:
        return self.trials()[number]

    def trials(self) -> Sequence[Trial]:
        return self.store.history(STUDY).trials

    def version(self) -> int:
        return self.store.history(STUDY).version
