"""Correct uses of all that `mistakes.py` gets wrong. Type checkers must find nothing here.

This file is read by type checkers only; it is never run.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import farthing as ft
from farthing.analysis.runs import Lineage
from farthing.extending import (
    Executor,
    History,
    OnlineStrategy,
    QueryRule,
    Randomness,
    Remaining,
    Storage,
    Strategy,
    Suggestion,
)
from farthing.session.studies import Deleted

SPACE = ft.Space(
    {"x": ft.Float(1e-3, 1, log=True), "layers": ft.Int(1, 4, cheap="low"), "optimizer": ft.Choice("adam", "sgd")},
    fidelities={"epochs": ft.Fidelity(1, 27, integer=True, trace=True)},
)
BUDGET = ft.Budget(trials=3, seconds=60)


def work(trial: ft.RunningTrial) -> float:
    return abs(trial.params["x"] - 0.3)


def returns_a_mapping(trial: ft.RunningTrial) -> dict[str, float]:
    return {"error": 0.5, "size": 3}


def returns_single_precision(trial: ft.RunningTrial) -> np.float32:
    return np.float32(0.5)


def reports(trial: ft.RunningTrial) -> None:
    with trial.timing("validation"):
        trial.report(0.5, epochs=1, metrics={"loss": 0.1}, gradient={"x": np.float64(0.2)})
    trial.charge(3.0, "training")
    with trial.checkpoint() as folder:
        (folder / "weights").write_text("…")


def without_types(trial):
    return trial.params["x"]


class Agent(ft.Trainable):
    def setup(self, params: Mapping[str, Any]) -> None:
        self.total = 0.0

    def step(self) -> float:
        return self.total

    def save(self, folder: Path) -> None: ...

    def load(self, folder: Path) -> None: ...


def sees_both(study: ft.Study, trial: ft.Trial) -> None:
    if trial.value is not None and trial.value < 0.1:
        study.stop()


# ---- studies and runs

ft.Study(SPACE, minimize="error", strategy=ft.ASHA(reduction=3), seed=1, storage="study.db")
ft.Study(SPACE, maximize="score", storage=Path("study.db"), cost=lambda params, fidelity: fidelity["epochs"])

with ft.Study(SPACE, minimize="error") as study:
    stopped = study.run(work, budget=BUDGET, workers=2, time_limit=60, callbacks=[sees_both], on_interrupt="return")
    if stopped.reason is ft.StopReason.INTERRUPTED:
        print(stopped.sentence, str(stopped))
    study.run(lambda trial: trial.params["x"], budget=BUDGET, executor="inline")
    for any_work in (work, returns_a_mapping, returns_single_precision, reports, without_types):
        study.run(any_work, budget=BUDGET)
    study.run(Agent, budget=BUDGET)
    study.run(ft.Command("python train.py --x {x}"), budget=BUDGET)
    study.run(ft.Pipeline(cache_limit="2 GB", denoise=ft.Stage(lambda previous: previous)), budget=BUDGET)
    trial: ft.Trial = study.verify(work, executor="inline")

tuned = ft.minimize(work, SPACE, budget=BUDGET, strategy=ft.Random(), workers=2, executor="inline", name="tuned")
ft.maximize(returns_a_mapping, SPACE, budget=BUDGET, value="score", seed=3)

# ---- results

asked: ft.RunningTrial = tuned.ask()
several: list[ft.RunningTrial] = tuned.ask(2)
tuned.tell(asked, 0.5, cost=2.0)
tuned.tell(3, failure="out of memory")
tuned.add({"x": 0.5}, 0.1)
tuned.export("study.csv")
best: float | None = tuned.best.value
params: Mapping[str, Any] = tuned.best.params
lineage: Lineage = tuned.lineage
diagnosis: ft.Diagnosis = tuned.diagnose()
names: list[str] = [summary.record.name for summary in ft.studies("study.db")]
deleted: Deleted = ft.delete_study("study", "study.db")
freed: int = deleted.freed

# ---- online

tuner = ft.OnlineTuner(SPACE, rounds=100, strategy=ft.CEGPUCB(rule=ft.rules.Capped(ft.rules.Every(5), most=10)))
decision: ft.Decision = next(tuner)
if decision.measure:
    decision.observe(0.5, cost=2.0)


# ---- of one's own


class Constant(Strategy):
    def suggest(self, history: History, budget: Remaining, count: int, rng: Randomness) -> list[Suggestion]:
        return [Suggestion({"x": 0.5})]


def with_all(executor: Executor, storage: Storage, strategy: OnlineStrategy, rule: QueryRule) -> None:
    ft.Study(SPACE, minimize="error", storage=storage, strategy=Constant()).run(work, executor=executor)
    ft.OnlineTuner(SPACE, rounds=10, strategy=strategy)
    ft.CEGPUCB(rule=rule)


def uses_several_values() -> None:
    several = ft.Study(
        SPACE,
        minimize=["error", "latency"],
        maximize="recall",
        constraints={"memory": ft.AtMost(8e9), "runs": ft.Succeeds()},
    )
    several.run(returns_a_mapping, budget=BUDGET)
    several.tell(several.ask(), {"error": 0.1, "latency": 2, "recall": 0.9, "memory": 1e9})
    hypervolume: float = several.front.hypervolume
    numbers: list[int] = [point.trial.number for point in several.front]
    values: dict[str, float] = several.pick(error=1, latency=ft.AtMost(5)).values
    several.plot("front")
    several.importance("latency")
    print(hypervolume, numbers, values)


async def waits(trial: ft.RunningTrial) -> float:
    return 0.5


def uses_a_coroutine() -> None:
    ft.Study(SPACE, minimize="error").run(waits, budget=BUDGET, executor="async", workers=32)
