"""Trains a population of small networks on Fashion-MNIST and learns a schedule of their hyperparameters, in one run.

    python examples/3_population.py                       eight members, eight epochs each
    python examples/3_population.py --check               proves that the class is safe in a population
    python examples/3_population.py --storage agents.db   keeps it, for `farthing show` and `farthing plot`

Needs torch (pip install 'farthing[torch]') and the data: $FARTHING_DATA/fashion_mnist, by default ../shared/data.
"""

import argparse
import gzip
import os
import sys
from functools import lru_cache
from pathlib import Path

import numpy as np

import farthing as ft

POPULATION, EPOCHS, TRAIN, VALIDATION, SIZE = 8, 8, 3000, 2000, 14
SPACE = ft.Space(
    {
        "lr": ft.Float(1e-3, 1.0, log=True),
        "momentum": ft.Float(0.0, 0.99),
        "weight_decay": ft.Float(1e-6, 1e-2, log=True),
        "dropout": ft.Float(0.0, 0.5),
        "batch": ft.Int(16, 256, log=True),
    },
    fidelities={"epochs": ft.Fidelity(1, EPOCHS, integer=True, trace=True)},
)


def data_folder() -> Path:
    named = os.environ.get("FARTHING_DATA")
    return (Path(named) if named else Path(__file__).parents[2] / "shared" / "data") / "fashion_mnist"


@lru_cache
def load(folder: Path, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Images of 14 × 14, and what they show. Workers live on between intervals, so each reads them once."""
    with gzip.open(folder / f"{kind}-images-idx3-ubyte.gz") as file:
        images = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 1, SIZE, 2, SIZE, 2)
    with gzip.open(folder / f"{kind}-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8)
    return images.mean(axis=(3, 5), dtype=np.float32) / 255.0 - 0.286, labels.astype(np.int64)


def trainable(folder: Path) -> type[ft.Trainable]:
    """The class to be trained. It is made here because its base class needs torch."""
    import torch
    from torch import nn

    from farthing.integrations.pytorch import Knobs, TorchTrainable

    class Net(TorchTrainable):
        """The base class saves model, optimizer and random state, and sets lr, momentum and weight_decay."""

        def build(self, params):
            torch.set_num_threads(1)
            images, labels = load(folder, "train")
            self.images, self.labels = torch.from_numpy(images), torch.from_numpy(labels)
            self.model = nn.Sequential(
                nn.Conv2d(1, 12, 3, padding=1),
                nn.ReLU(),
                nn.MaxPool2d(2),
                nn.Flatten(),
                nn.Dropout(),
                nn.Linear(12 * 7 * 7, 64),
                nn.ReLU(),
                nn.Linear(64, 10),
            )
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)

        def knobs(self):
            return Knobs().dropout("dropout", self.model).hook("batch", lambda size: setattr(self, "batch", size))

        def step(self):
            for rows in torch.randperm(TRAIN).split(self.batch):
                loss = nn.functional.cross_entropy(self.model(self.images[rows]), self.labels[rows])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            with self.trial.timing("validation"):
                return self.accuracy(self.images[-VALIDATION:], self.labels[-VALIDATION:])

        def accuracy(self, images, labels):
            self.model.eval()
            with torch.no_grad():
                right = (self.model(images).argmax(1) == labels).float().mean().item()
            self.model.train()
            return right

    return Net


def test_accuracy(net: type[ft.Trainable], checkpoint: Path, folder: Path) -> float:
    import torch

    trained = net()
    trained.build({})
    trained.model.load_state_dict(torch.load(checkpoint / "state.pt", weights_only=True)["model"])
    return trained.accuracy(*(torch.from_numpy(array) for array in load(folder, "t10k")))


def train(folder: Path, storage: str | None) -> None:
    net = trainable(folder)
    study = ft.Study(
        SPACE,
        maximize="accuracy",
        strategy=ft.PB2(population=POPULATION, interval=1),
        storage=storage,
        name="fashion-mnist",
        seed=0,
    )
    study.run(net, workers=2)
    best = study.best
    print(f"Validation accuracy {best.value:.4f} after {EPOCHS} epochs; the winner's schedule:")
    for epoch, params in best.schedule:
        print(f"  from epoch {epoch:2}:", "  ".join(f"{name} {value:.3g}" for name, value in params.items()))
    winner = study.checkpoints.path(best.trial.checkpoint)
    again = ft.replay(net, best.schedule)
    print(f"Test accuracy of the winner {test_accuracy(net, winner, folder):.4f}; ", end="")
    print(f"trained once more by its schedule {test_accuracy(net, again.checkpoint, folder):.4f}.")
    print(study.ledger)


def check(folder: Path) -> None:
    from farthing.testing import check_trainable

    params = {"lr": 0.05, "momentum": 0.5, "weight_decay": 1e-4, "dropout": 0.1, "batch": 64}
    other = {"lr": 0.2, "momentum": 0.9, "weight_decay": 1e-2, "dropout": 0.4, "batch": 128}
    print(check_trainable(trainable(folder), params=params, other_params=other, steps=2, value="accuracy"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="check the class instead of training it")
    parser.add_argument("--storage", help="keep the study there")
    options = parser.parse_args()
    folder = data_folder()
    if not (folder / "train-images-idx3-ubyte.gz").is_file():
        print(f"Skipped: {folder} is not there. Set FARTHING_DATA to the folder of benchmark data.")
        return
    try:
        import torch  # noqa: F401
    except ImportError:
        print("Skipped: torch is not installed. Run: pip install 'farthing[torch]'.")
        return
    if options.check:
        check(folder)
    else:
        train(folder, options.storage)


if __name__ == "__main__":
    sys.exit(main())
