"""A trial under test: its news are written down, its clock stands still until it is told to go on."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from farthing.costs import FakeClock
from farthing.execution import Checkpoints, Job, RunningTrial
from farthing.execution.executor import Checkpointed, News
from farthing.space import Fidelity, Float, Space
from farthing.trials import Attempt, Measurement, Problem
from farthing.trials.prefixes import Eviction

EPOCHS = {"epochs": Fidelity(2, 10, integer=True, trace=True), "data": Fidelity(0.1, 1.0)}


class Recorder:
    def __init__(self) -> None:
        self.measurements: list[Measurement] = []
        self.checkpoints: list[str] = []
        self.evictions: list[Eviction] = []

    def send(self, news: News) -> None:
        match news:
            case Measurement():
                self.measurements.append(news)
            case Checkpointed(checkpoint):
                self.checkpoints.append(checkpoint)
            case Eviction():
                self.evictions.append(news)


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def checkpoints(tmp_path: Path) -> Checkpoints:
    return Checkpoints(tmp_path / "checkpoints")


@pytest.fixture
def plain() -> Problem:
    return Problem(Space({"lr": Float(0.0, 1.0)}), value="error")


@pytest.fixture
def traced() -> Problem:
    return Problem(Space({"lr": Float(0.0, 1.0)}, fidelities=EPOCHS), value="error")


MakeTrial = Callable[..., RunningTrial]


@pytest.fixture
def make_trial(recorder: Recorder, clock: FakeClock, checkpoints: Checkpoints) -> MakeTrial:
    def make(
        problem: Problem,
        *,
        params: Mapping[str, Any] | None = None,
        fidelity: Mapping[str, float] | None = None,
        resume_dir: Path | None = None,
    ) -> RunningTrial:
        chosen = {"lr": 0.5} if params is None else params
        job = Job(Attempt(3, 2), chosen, problem.space.check_fidelity(fidelity), resume_dir=resume_dir)
        return RunningTrial(job, problem, send=recorder.send, checkpoints=checkpoints, clock=clock)

    return make
