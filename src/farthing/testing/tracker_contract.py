"""The contract of every tracker, as a test suite to inherit from.

    class TestMine(TrackerContract):
        def tracker(self, folder):
            return MyTracker(folder)

A study does not notice a tracker that fails: here each failure fails a test.
"""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from farthing.costs import Budget
from farthing.errors import Pruned
from farthing.execution import RunningTrial
from farthing.running.tracking import StudyFacts, Tracker
from farthing.space import Choice, Fidelity, Float, Int, Space
from farthing.strategies.plain.random import Random
from farthing.study import Study
from farthing.trials import State

SPACE = Space(
    {
        "optimizer/lr": Float(1e-4, 1e-1, log=True),
        "model.layers": Int(1, 3),
        "batch": Choice(None, True, "ü, 32"),
    },
    fidelities={"epochs": Fidelity(1, 3, integer=True, trace=True)},
)


def curve(trial: RunningTrial) -> float:
    """Of every four trials one fails after a report, one before any, and one is pruned."""
    if trial.number % 4 == 1:
        raise ValueError("no data")
    for epoch in range(1, 4):
        trial.report(1.0 / epoch, epochs=epoch, metrics={"recall": 0.5, "size": float(epoch)})
        if trial.number % 4 == 2:
            raise Pruned
        if trial.number % 4 == 3:
            raise ValueError("diverged")
    return 0.25


class TrackerContract:
    """Inherit, and define `tracker`."""

    def tracker(self, folder: Path) -> Tracker:
        """A new tracker, which writes to that folder if it writes anywhere."""
        raise NotImplementedError

    @pytest.fixture(autouse=True)
    def _no_warnings(self, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
        with caplog.at_level(logging.WARNING, logger="farthing"):
            yield
        assert [record.message for record in caplog.records if record.name == "farthing"] == []

    def run(self, folder: Path, *, trials: int = 8, work: Any = curve, aims: Any = None, **settings: Any) -> Study:
        """A study in that folder, or the one that is there, which goes on; the tracker is a new one."""
        aims = aims or {"minimize": "error"}
        study = Study(SPACE, **aims, strategy=Random(), storage=folder / "study.db", name="study", seed=0)
        tracker = self.tracker(folder)
        study.run(work, budget=Budget(trials=trials), executor="inline", trackers=[tracker], **settings)
        return study

    def test_it_is_told_of_good_and_bad_trials(self, tmp_path: Path) -> None:
        states = [trial.state for trial in self.run(tmp_path).trials]
        assert states == [State.DONE, State.FAILED, State.PRUNED, State.FAILED] * 2

    def test_it_goes_on_with_a_study_that_is_resumed(self, tmp_path: Path) -> None:
        self.run(tmp_path, trials=4).close()
        assert len(self.run(tmp_path, trials=8).trials) == 8

    def test_one_tracker_may_be_told_of_two_runs(self, tmp_path: Path) -> None:
        tracker = self.tracker(tmp_path)
        study = Study(SPACE, minimize="error", strategy=Random(), seed=0)
        for trials in (2, 4):
            study.run(curve, budget=Budget(trials=trials), executor="inline", trackers=[tracker])
        assert len(study.trials) == 4

    def test_a_trial_may_be_tried_again(self, tmp_path: Path) -> None:
        def work(trial: RunningTrial) -> float:
            trial.report(1.0, epochs=1)
            if trial.attempt == 1:
                raise ValueError("try again")
            return 0.5

        assert [trial.attempt for trial in self.run(tmp_path, trials=2, work=work, retries=1).trials] == [2, 2]

    def test_a_study_may_have_several_objectives(self, tmp_path: Path) -> None:
        def work(trial: RunningTrial) -> dict[str, float]:
            return {"error": trial.params["optimizer/lr"], "latency": trial.params["model.layers"]}

        study = self.run(tmp_path, trials=4, work=work, aims={"minimize": ["error", "latency"]})
        assert all(trial.state is State.DONE for trial in study.trials)

    def test_work_reaches_its_own_trial_where_there_is_an_address(self, tmp_path: Path) -> None:
        kind = type(self.tracker(tmp_path))

        def work(trial: RunningTrial) -> float:
            with trial.tracker(kind.__name__):
                return 0.5

        study = self.run(tmp_path, trials=1)
        address = self.tracker(tmp_path).address(StudyFacts(study.name, "identity", "Random", study.problem))
        assert json.loads(json.dumps(address)) == address
        study.close()
        if address:
            assert self.run(tmp_path, trials=2, work=work).trials[1].value == 0.5
