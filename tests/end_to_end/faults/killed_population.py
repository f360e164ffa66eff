"""A population that writes down what was acknowledged to it, to be killed at any moment by test_population_kills.py."""

import json
import sys
from pathlib import Path

from killed_study import acknowledge

import farthing as ft

SPACE = ft.Space({"lr": ft.Float(1e-3, 1.0, log=True), "kind": ft.Choice("a", "b")})
STRATEGY = ft.PB2(population=4, interval=2, steps=12)


class Agent(ft.Trainable):
    """Deterministic: what it gains depends on its params and on how far it has come."""

    def setup(self, params):
        self.state = {"total": 0.0, "steps": 0, **params}

    def apply(self, params):
        self.state |= params

    def step(self):
        self.state["steps"] += 1
        aim = 10.0 ** (-2.5 * self.state["steps"] / 12)
        self.state["total"] += 1.0 / (1.0 + abs(self.state["lr"] / aim - 1.0)) + 0.1 * (self.state["kind"] == "a")
        return {"reward": self.state["total"], "lr": self.state["lr"]}

    def save(self, folder):
        (folder / "state.json").write_text(json.dumps(self.state))

    def load(self, folder):
        self.state = json.loads((folder / "state.json").read_text())


def population_in(storage: str | None, seed: int, folder: Path | None = None) -> ft.Study:
    return ft.Study(
        SPACE,
        maximize="reward",
        strategy=STRATEGY,
        storage=storage,
        seed=seed,
        cost=lambda params, fidelity: fidelity["steps"],
        cost_unit="steps",
        lost_retries=1000,
        folder=None if folder is None else folder / "files",
    )


def main(storage: str, _: str, seed: str, workers: str, folder: str) -> None:
    acknowledged = str(Path(folder) / "acknowledged")
    study = population_in(storage, int(seed), Path(folder))
    acknowledge(acknowledged, "started")
    study.run(
        Agent,
        workers=int(workers),
        retries=1000,
        callbacks=[lambda study, trial: acknowledge(acknowledged, f"end {trial.number} {trial.state} {trial.value!r}")],
    )
    acknowledge(acknowledged, "finished")


if __name__ == "__main__":
    main(*sys.argv[1:])
