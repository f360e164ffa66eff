"""The picture of a run."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from benchmarks.baselines.bandits import UCB1
from farthing.errors import NoResult
from farthing.online import CEGPUCB
from farthing.online.tuner import OnlineTuner
from farthing.plots.online import is_online, last_run, online_figure, replayed
from farthing.rules import Bernoulli, Every
from farthing.space import Choice, Float, Space
from farthing.storage import MemoryStorage
from farthing.study import Study


def test_a_run_is_drawn_with_what_was_believed(tmp_path: Path) -> None:
    storage = tmp_path / "online.db"
    space = Space({"rate": Float(1e-2, 3.0, log=True), "decay": Float(1e-5, 1e-1, log=True)})
    tuner = OnlineTuner(space, rounds=25, strategy=CEGPUCB(), overhead=None, storage=storage, name="stream", seed=1)
    for decision in tuner:
        if decision.measure:
            decision.observe(-(np.log10(decision.params["rate"]) ** 2) - decision.params["decay"])
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


def drawn(figure: Figure) -> list[list[tuple[Any, ...]]]:
    """Every line of every panel."""
    return [
        [(*np.asarray(line.get_data()).tolist(), line.get_color()) for line in axes.get_lines()] for axes in figure.axes
    ]


@pytest.mark.parametrize("hold", [1, 3])
def test_a_tuner_draws_what_its_stored_run_would_show(hold: int) -> None:
    storage = MemoryStorage()
    tuners = [
        OnlineTuner(
            Space({"rate": Float(0.01, 1, log=True)}),
            rounds=31,
            hold=hold,
            strategy=CEGPUCB(rule=Every(3)),
            overhead=None,
            storage=place,
        )
        for place in (None, storage)
    ]
    for tuner in tuners:
        for decision in tuner:
            if decision.measure:
                decision.observe(float("nan") if decision.round > 20 else 1 - decision.params["rate"], cost=1)
            if decision.round == 19:
                title = tuner.plot().axes[0].get_title(loc="left")
                assert f" of {18 if tuner._run.is_open else 19} rounds measured" in title
    there = Study.load("online", storage).plot()
    assert drawn(tuners[0].plot()) == drawn(tuners[1].plot()) == drawn(there)
    values, schedule, _ = there.axes
    assert "bad ones by a cross" in values.get_title(loc="left")
    assert sum(np.size(line.get_xdata()) for line in schedule.get_lines()) == 31


def test_a_tuner_keeps_one_entry_for_rounds_in_which_nothing_changes() -> None:
    tuner = OnlineTuner(Space({"rate": Float(0, 1)}), rounds=4000, initial={"rate": 0.5})
    for decision in tuner:
        decision.observe(lambda: 0.5)
    assert tuner.summary["skipped"] > 3000
    assert len(tuner._played) < 300
    assert f"of {tuner.rounds} rounds" in tuner.plot().axes[0].get_title(loc="left")


def test_a_tuner_that_measured_nothing_has_nothing_to_draw() -> None:
    with pytest.raises(NoResult, match="measured"):
        OnlineTuner(Space({"rate": Float(0, 1)}), rounds=4).plot()


def test_nothing_measured_is_nothing_to_draw() -> None:
    storage = MemoryStorage()
    study = Study(Space({"arm": Choice("a", "b")}), maximize="score", storage=storage, name="empty")
    with pytest.raises(NoResult, match="measured"):
        online_figure(study)
