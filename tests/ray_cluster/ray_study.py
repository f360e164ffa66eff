"""A study on a Ray cluster that writes down what was acknowledged to it; test_faults.py makes faults happen to it."""

import json
import os
import sys
import time
from pathlib import Path

from killed_study import Train, acknowledge

import farthing as ft

SPACE = ft.Space(
    {"x": ft.Float(0, 1), "y": ft.Float(0, 1)},
    fidelities={"epochs": ft.Fidelity(1, 9, integer=True, trace=True)},
)


STRATEGIES = {"Sobol": ft.Sobol(), "TraceKG": ft.TraceKG()}
MARK = "FARTHING_TEST_MARK"
"""The variable by which a test finds the processes of its own study on all nodes."""


class SlowTrain(Train):
    """Takes long enough for faults to happen to it, and notes its node."""

    def __call__(self, trial: ft.RunningTrial) -> None:
        time.sleep(0.1)
        super().__call__(trial)


def study_in(storage: str | None, strategy: str, *, lease: float = 60.0, folder: str | None = None) -> ft.Study:
    return ft.Study(
        SPACE,
        minimize="error",
        strategy=STRATEGIES[strategy],
        storage=storage,
        folder=folder,
        seed=3,
        cost=lambda params, fidelity: fidelity["epochs"],
        cost_unit="epochs",
        lost_retries=1000,
        lease=lease,
    )


def main(form: str) -> None:
    told = json.loads(form)
    acknowledged = str(Path(told["folder"]) / "acknowledged")
    study = study_in(told["storage"], told["strategy"], lease=told["lease"], folder=told["folder"])
    acknowledge(acknowledged, f"started {os.getpid()}")
    study.run(
        SlowTrain(acknowledged),
        budget=ft.Budget(trials=told["trials"]),
        workers=told["workers"],
        executor=ft.RayExecutor(address=told["address"], runtime_env={"env_vars": {MARK: told["mark"]}}),
        retries=1000,
        callbacks=[lambda study, trial: acknowledge(acknowledged, f"end {trial.number} {trial.state} {trial.value!r}")],
    )
    acknowledge(acknowledged, "finished")


if __name__ == "__main__":
    main(sys.argv[1])
