"""Runs that are continued, by any strategy: two workers, two fidelities and a database."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import farthing as ft
from benchmarks.baselines.curve_guided import BOCA, FreezeThawEI
from farthing.extending import Strategy

SPACE = ft.Space(
    {"x": ft.Float(0, 1), "y": ft.Float(0, 1)},
    fidelities={"epochs": ft.Fidelity(1, 27, integer=True, trace=True), "data": ft.Fidelity(0.25, 1.0)},
)
STRATEGIES = [ft.Hyperband(fidelity="epochs"), ft.BOHB(fidelity="epochs"), ft.TraceKG(), BOCA(), FreezeThawEI()]


def train(trial: ft.RunningTrial) -> None:
    """The count of epochs goes on where the checkpoint stopped, which must be one of the same params and data."""
    mine = [*trial.params.values(), trial.fidelity["data"]]
    done = 0
    if trial.resume_dir:
        *theirs, saved = map(float, (trial.resume_dir / "state").read_text().split())
        assert theirs == mine
        done = int(saved)
    for epoch in range(done + 1, int(trial.fidelity["epochs"]) + 1):
        final = (trial.params["x"] - 0.3) ** 2 + trial.params["y"] ** 2
        trial.report(0.1 + final + 1 / (epoch * trial.fidelity["data"]), epochs=epoch)
    (trial.checkpoint_dir / "state").write_text(" ".join(map(repr, [*mine, int(trial.fidelity["epochs"])])))


def price(params: Mapping[str, Any], fidelity: Mapping[str, float]) -> float:
    return 1.0 + fidelity["epochs"] * fidelity["data"]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: type(strategy).__name__)
def test_every_strategy_that_pauses_runs_carries_them_on(strategy: Strategy, tmp_path: Path) -> None:
    study = ft.Study(SPACE, minimize="error", strategy=strategy, storage=tmp_path / "s.db", cost=price, cost_unit="e")
    study.run(train, budget=ft.Budget(trials=6), workers=2)

    assert {trial.state for trial in study.trials} == {ft.State.DONE}
    continued = [trial for trial in study.trials if trial.resume_from is not None]
    assert continued
    for trial in continued:
        source = study.trials[trial.resume_from or 0]
        assert trial.resume_checkpoint is not None
        assert trial.points[0].fidelity["epochs"] == source.fidelity["epochs"] + 1
        assert trial.cost == pytest.approx(price({}, trial.fidelity) - price({}, source.fidelity))
    saved = sum(price({}, study.trials[trial.resume_from or 0].fidelity) for trial in continued)
    assert study.ledger.saved == {"warm starts": pytest.approx(saved)}


class Watched(ft.Study):
    """A user's study, whose constructor does something of its own."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.seen: list[float] = []


def test_a_loaded_study_has_gone_through_the_constructor(tmp_path: Path) -> None:
    with Watched(SPACE, minimize="error", storage=tmp_path / "s.db") as begun:
        begun.add({"x": 0.5, "y": 0.5}, 1.0)
    with Watched.load("study", tmp_path / "s.db") as loaded:
        assert loaded.seen == []
        assert vars(loaded).keys() == vars(begun).keys()
        assert len(loaded.trials) == 1
