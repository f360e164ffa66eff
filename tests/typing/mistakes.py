"""Mistakes that users make, one to a line, each marked. Type checkers must find all of them, and nothing else.

This file is read by type checkers only; it is never run.
"""

from collections.abc import Mapping
from typing import Any

import farthing as ft

SPACE = ft.Space({"x": ft.Float(0, 1)})
BUDGET = ft.Budget(trials=3)


def work(trial: ft.RunningTrial) -> float:
    return abs(trial.params["x"] - 0.3)


# ---- names that are not there

ft.Buget(trials=3)  # mistake
ft.minimise(work, SPACE, budget=BUDGET)  # mistake
ft.Every(5)  # mistake
ft.Strategy  # mistake
ft.rules.Evry(5)  # mistake

# ---- budgets and spaces

ft.Budget(60)  # mistake
ft.Budget(trial=3)  # mistake
ft.Budget(seconds="60")  # mistake
ft.Budget(trials=2.5)  # mistake
ft.Float(0, "1")  # mistake
ft.Float(0, 1, logarithmic=True)  # mistake
ft.Int(1, 2.5)  # mistake
ft.Int(16, 512, cheap="lowest")  # mistake
ft.Choice(["adam", "sgd"])  # mistake
ft.Fidelity(1, 27, whole=True)  # mistake
ft.Space({"x": (0, 1)})  # mistake

# ---- studies

ft.Study({"x": ft.Float(0, 1)}, minimize="error")  # mistake
ft.Study(SPACE, minimise="error")  # mistake
ft.Study(SPACE, minimize="error", strategy=ft.ASHA)  # mistake
ft.Study(SPACE, minimize="error", strategy=ft.CEGPUCB())  # mistake
ft.Study(SPACE, minimize="error", seed="1")  # mistake
ft.Study(SPACE, minimize="error", storage=3)  # mistake
ft.Study(SPACE, minimize="error", cost=lambda params: 1.0)  # mistake
ft.ASHA(reduction="3")  # mistake
ft.ASHA(factor=3)  # mistake
ft.studies()  # mistake
ft.delete_study(ft.Study(SPACE, minimize="error"), "study.db")  # mistake

# ---- runs

study = ft.Study(SPACE, minimize="error")


def says(trial: ft.RunningTrial) -> str:
    return "0.5"


def takes_params(params: Mapping[str, Any]) -> float:
    return 0.5


def takes_two(trial: ft.RunningTrial, data: list[float]) -> float:
    return 0.5


async def waits(trial: ft.RunningTrial) -> str:
    return "0.5"


class Agent(ft.Trainable):
    def setup(self, params: Mapping[str, Any]) -> None: ...

    def step(self) -> str:  # mistake
        return "0.5"


def sees_only_the_trial(trial: ft.Trial) -> None: ...


study.run(says, budget=BUDGET)  # mistake
study.run(takes_params, budget=BUDGET)  # mistake
study.run(takes_two, budget=BUDGET)  # mistake
study.run(waits, budget=BUDGET)  # mistake
study.run(work(study.ask()), budget=BUDGET)  # mistake
study.run("python train.py --x {x}", budget=BUDGET)  # mistake
study.run(work, BUDGET)  # mistake
study.run(work, budget=60)  # mistake
study.run(work, budget=BUDGET, workers="2")  # mistake
study.run(work, budget=BUDGET, executor="threads")  # mistake
study.run(work, budget=BUDGET, timelimit=60)  # mistake
study.run(work, budget=BUDGET, on_interrupt="ignore")  # mistake
study.run(work, budget=BUDGET, callbacks=[sees_only_the_trial])  # mistake
study.run(work, budget=BUDGET).startswith("the budget")  # mistake
study.verify(work, executor="thread")  # mistake
ft.minimize(work, SPACE, budget=BUDGET, stratgy=ft.Random())  # mistake
ft.minimize(work, SPACE, budget=BUDGET, workers="2")  # mistake
ft.maximize(work, SPACE, budget=BUDGET, executor="inlin")  # mistake
ft.maximize(says, SPACE, budget=BUDGET)  # mistake
ft.replay(says, {})  # mistake

# ---- results

study.ask("2")  # mistake
study.tell("3", 0.5)  # mistake
study.tell(study.ask(), value="0.5")  # mistake
study.add({"x": 0.5})  # mistake
study.export(format="xml")  # mistake
study.best.parameters  # mistake
study.settings  # mistake
study.trials[0].vlaue  # mistake
whole: int = study.best.value  # mistake


# ---- inside the work


def reports(trial: ft.RunningTrial) -> None:
    trial.report("0.5")  # mistake
    trial.charge(3.0, "fuel")  # mistake
    trial.prune()  # mistake
    with trial.timing("trainning"):  # mistake
        trial.report(0.5, metrics={"loss": "high"})  # mistake


ft.Stage("denoise")  # mistake
ft.Pipeline(cache_limit=2.5)  # mistake
ft.Pipeline(denoise=work).run(study.ask())  # mistake
ft.Command(["python", "train.py"])  # mistake

# ---- online

ft.OnlineTuner(SPACE)  # mistake
ft.OnlineTuner(SPACE, rounds="100")  # mistake
ft.OnlineTuner(SPACE, rounds=100, strategy=ft.Random())  # mistake
ft.OnlineTuner(SPACE, rounds=100, reward="gains")  # mistake
next(ft.OnlineTuner(SPACE, rounds=100)).value  # mistake
ft.CEGPUCB(rule=5)  # mistake
ft.CEGPUCB(silent="upper")  # mistake
ft.rules.Capped(ft.rules.Every(5), most="10")  # mistake
ft.Study(SPACE, minimize=["error", 2])  # mistake
ft.Study(SPACE, minimize="error", constraints={"memory": 8e9})  # mistake
ft.AtMost("8 GB")  # mistake
study.pick(error="much")  # mistake
