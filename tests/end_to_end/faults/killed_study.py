"""A study that writes down what was acknowledged to it, to be killed at any moment; test_kills.py runs it."""

import os
import sys
from pathlib import Path

import farthing as ft

SPACE = ft.Space(
    {"x": ft.Float(0, 1), "kind": ft.Choice("a", "b")},
    fidelities={"epochs": ft.Fidelity(1, 9, integer=True, trace=True)},
)
STRATEGIES = {"ASHA": ft.ASHA(), "LogEI": ft.LogEI(), "Sobol": ft.Sobol(), "TraceKG": ft.TraceKG()}
BUDGET = ft.Budget(trials=24)


def error_at(x: float, epoch: int) -> float:
    return abs(x - 0.3) + 1 / epoch


def acknowledge(path: str, line: str) -> None:
    """One write to a file opened for appending: a killed process leaves it whole or not at all."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


class Train:
    """Reports a made-up learning curve and carries on from its checkpoint."""

    def __init__(self, acknowledged: str = os.devnull) -> None:
        self.acknowledged = acknowledged

    def __call__(self, trial: ft.RunningTrial) -> None:
        start = int((trial.resume_dir / "epoch").read_text()) if trial.resume_dir else 0
        for epoch in range(start + 1, int(trial.fidelity["epochs"]) + 1):
            value = error_at(trial.params["x"], epoch)
            trial.report(value, epochs=epoch)
            acknowledge(self.acknowledged, f"report {trial.number} {epoch} {value!r}")
            if epoch % 3 == 0:
                with trial.checkpoint() as folder:
                    (folder / "epoch").write_text(str(epoch))
        (trial.checkpoint_dir / "epoch").write_text(str(int(trial.fidelity["epochs"])))


def study_in(storage: str | None, strategy: str, seed: int) -> ft.Study:
    return ft.Study(
        SPACE,
        minimize="error",
        strategy=STRATEGIES[strategy],
        storage=storage,
        seed=seed,
        cost=lambda params, fidelity: fidelity["epochs"],
        cost_unit="epochs",
        lost_retries=1000,
    )


def main(storage: str, strategy: str, seed: str, workers: str, folder: str) -> None:
    acknowledged = str(Path(folder) / "acknowledged")
    study = study_in(storage, strategy, int(seed))
    acknowledge(acknowledged, "started")
    study.run(
        Train(acknowledged),
        budget=BUDGET,
        workers=int(workers),
        retries=1000,
        callbacks=[lambda study, trial: acknowledge(acknowledged, f"end {trial.number} {trial.state} {trial.value!r}")],
    )
    acknowledge(acknowledged, "finished")


if __name__ == "__main__":
    main(*sys.argv[1:])
