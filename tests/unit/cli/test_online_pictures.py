"""The demo of online tuning, and the picture of a run."""

from pathlib import Path

import pytest

from farthing.cli.demo_online import train
from farthing.cli.plots.online import draw_online, is_online, last_run, replayed
from farthing.errors import NoResult
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
    draw_online(study, tmp_path / "stream.png")
    assert (tmp_path / "stream.png").stat().st_size > 10_000
    study.close()


def test_arms_without_a_model_are_drawn_too(tmp_path: Path) -> None:
    storage = MemoryStorage()
    space = Space({"arm": Choice("a", "b")})
    tuner = OnlineTuner(space, rounds=10, maximize="score", strategy=UCB1(rule=Bernoulli(0.5)), storage=storage)
    for _ in range(10):
        decision = tuner.decide()
        if decision.measure:
            tuner.observe(1.0 if decision.params["arm"] == "a" else 0.0)
    draw_online(Study.load("online", storage), tmp_path / "arms.png")
    assert (tmp_path / "arms.png").exists()


def test_nothing_measured_is_nothing_to_draw(tmp_path: Path) -> None:
    storage = MemoryStorage()
    Study(Space({"arm": Choice("a", "b")}), maximize="score", storage=storage, name="empty")
    with pytest.raises(NoResult, match="measured"):
        draw_online(Study.load("empty", storage), tmp_path / "none.png")
