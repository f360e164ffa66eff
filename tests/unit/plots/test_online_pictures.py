"""The demo of online tuning, and the picture of a run."""

from pathlib import Path

import pytest

from farthing.cli.demo_online import train
from farthing.errors import NoResult
from farthing.online import CEGPUCB
from farthing.online.bandits import UCB1
from farthing.online.tuner import OnlineTuner
from farthing.plots.online import is_online, last_run, online_figure, replayed
from farthing.rules import Bernoulli, Every
from farthing.space import Choice, Space
from farthing.storage import MemoryStorage
from farthing.study import Study


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
    tuner = OnlineTuner(
        space, rounds=10, maximize="score", strategy=UCB1(rule=Bernoulli(0.5)), storage=storage, overhead=None
    )
    for decision in tuner:
        if decision.measure:
            decision.observe(1.0 if decision.params["arm"] == "a" else 0.0)
    assert len(Study.load("online", storage).plot().axes) == 3


def test_no_line_is_drawn_across_rounds_that_were_not_measured() -> None:
    storage = MemoryStorage()
    space = Space({"arm": Choice("a", "b")})
    tuner = OnlineTuner(
        space, rounds=12, maximize="score", strategy=UCB1(rule=Every(4)), storage=storage, overhead=None
    )
    for decision in tuner:
        decision.observe(lambda: float("nan") if tuner.round == 9 else 1.0)
    study = Study.load("online", storage)
    values, *_ = study.plot().axes
    lines = [line.get_xdata() for line in values.get_lines() if line.get_linestyle() == "-"]
    assert [list(rounds) for rounds in lines] == [[1, 2], [5]]
    (crosses,) = [line.get_xdata() for line in values.get_lines() if line.get_marker() == "x"]
    assert list(crosses) == [9]


def test_nothing_measured_is_nothing_to_draw() -> None:
    storage = MemoryStorage()
    study = Study(Space({"arm": Choice("a", "b")}), maximize="score", storage=storage, name="empty")
    with pytest.raises(NoResult, match="measured"):
        online_figure(study)
