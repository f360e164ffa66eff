"""The demo of online tuning, and the picture of a run."""

from pathlib import Path

import pytest

from farthing.cli.demo_online import train
from farthing.errors import NoResult
from farthing.plots.online import is_online, last_run, online_figure, replayed
from farthing.rules import Bernoulli
from farthing.space import Choice, Space
from farthing.storage import MemoryStorage
from farthing.strategies.online import CEGPUCB
from farthing.strategies.online.bandits import UCB1
from farthing.study import Study
from farthing.study.online import OnlineTuner


def test_a_run_is_drawn_with_what_was_believed(tmp_path: Path) -> None:
    storage = tmp_path / "online.db"
    _, tuner = train(CEGPUCB(), seed=1, storage=storage, name="stream", rounds=25)
    study = Study.load("stream", storage)
    assert is_online(study)
    player = replayed(study, last_run(study))
    assert player is not None
    assert player.hyperparameters == tuner._run.player.hyperparameters  # type: ignore[attr-defined]
    assert len(study.plot().axes) == 5
    study.close()


def test_arms_without_a_model_are_drawn_too() -> None:
    storage = MemoryStorage()
    space = Space({"arm": Choice("a", "b")})
    tuner = OnlineTuner(space, rounds=10, maximize="score", strategy=UCB1(rule=Bernoulli(0.5)), storage=storage)
    for decision in tuner:
        if decision.measure:
            decision.observe(1.0 if decision.params["arm"] == "a" else 0.0)
    assert len(Study.load("online", storage).plot().axes) == 3


def test_nothing_measured_is_nothing_to_draw() -> None:
    storage = MemoryStorage()
    study = Study(Space({"arm": Choice("a", "b")}), maximize="score", storage=storage, name="empty")
    with pytest.raises(NoResult, match="measured"):
        online_figure(study)
