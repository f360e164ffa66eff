"""Trains eight networks side by side, which read handwritten digits, and learns a schedule in one run.

    python examples/3_population_digits.py               two networks at a time, half a minute
    python examples/3_population_digits.py --epochs 9    a shorter look

Every three epochs the worst two become copies of the best two, with other params. The run leaves `population.db` and
`population.png` here; started again, it continues where it was interrupted.

Needs scikit-learn for the digits, and matplotlib: pip install 'farthing[demo]'.
"""

import argparse
from pathlib import Path

import farthing as ft
from farthing.cli.digits import Network, load_examples, save_examples

UNITS, EPOCHS = 64, 45
FIXED = {"activation": "relu"}


class Reader(ft.Trainable):
    """Reads handwritten digits; a step is an epoch, and the value its loss on the digits kept for validation."""

    def setup(self, params: dict) -> None:
        self.training, self.validation, _ = load_examples(Path.cwd())
        self.network = Network.fresh(UNITS)

    def apply(self, params: dict) -> None:
        self.params = {**params, **FIXED}

    def step(self) -> float:
        self.network.train_epoch(self.training, self.params)
        with self.trial.timing("validation"):
            return self.network.loss(self.validation, **FIXED)

    def save(self, folder: Path) -> None:
        self.network.save(folder)

    def load(self, folder: Path) -> None:
        self.network = Network.load(folder)


def space(epochs: int) -> ft.Space:
    return ft.Space(
        {
            "learning_rate": ft.Float(1e-4, 1e-1, log=True),
            "batch_size": ft.Int(8, 256, log=True),
            "weight_decay": ft.Float(1e-5, 1.0, log=True),
        },
        fidelities={"epochs": ft.Fidelity(1, epochs, integer=True, trace=True)},
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    epochs = parser.parse_args().epochs
    save_examples(Path.cwd())
    strategy = ft.PB2(population=8, interval=3)
    name = f"readers-{epochs}"
    with ft.Study(space(epochs), minimize="loss", strategy=strategy, storage="population.db", name=name) as study:
        study.run(Reader, workers=2)
        best, (_, _, test) = study.best, load_examples(Path.cwd())
        print(f"Best loss {best.value:.4g} after {epochs} epochs; the winner's schedule:")
        for epoch, params in best.schedule:
            print(f"  from epoch {epoch:2}:", "  ".join(f"{name} {value:.3g}" for name, value in params.items()))
        network = Network.load(study.checkpoints.path(best.trial.checkpoint))
        print(f"Test accuracy {1.0 - network.error(test, **FIXED):.1%} of {len(test.digits)} digits that it never saw")
        print(study.ledger)
        study.plot().savefig("population.png")


if __name__ == "__main__":
    main()
