"""`farthing demo online`: tunes a classifier while it learns from a stream that drifts."""

from pathlib import Path

import click
import numpy as np

from farthing.cli.files import make_folder, save_figure
from farthing.cli.storages import address_of, opened_storage
from farthing.online import CEGPUCB, OnlineStrategy, PairedProbes
from farthing.online.query_rules import Every
from farthing.online.tuner import OnlineTuner
from farthing.plots import require_matplotlib
from farthing.space import Float, Space
from farthing.study import Study

ROUNDS, BATCH, VALIDATION, FEATURES = 150, 100, 4000, 20
SPACE = Space({"rate": Float(1e-2, 3.0, log=True), "decay": Float(1e-5, 1e-1, log=True)})
START = {"rate": 0.1, "decay": 1e-3}
"""A setting that a user might begin with; the best rate grows as the weights do."""

Array = np.ndarray


class Stream:
    """Examples whose border between two classes turns as rounds go by."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._first, self._second = self._rng.standard_normal((2, FEATURES))

    def draw(self, round: int, count: int) -> tuple[Array, Array]:
        angle = round / 40.0
        border = np.cos(angle) * self._first + np.sin(angle) * self._second
        inputs = self._rng.standard_normal((count, FEATURES))
        return inputs, np.sign(inputs @ border + 0.5 * self._rng.standard_normal(count))


def run_online_demo(folder: Path) -> int:
    """Runs the demo in that folder; returns the exit code."""
    require_matplotlib()
    make_folder(folder)
    address = address_of(folder / "online.db")
    with opened_storage(address) as storage:
        number = len(storage.list_studies()) // 2 + 1
    click.echo(f"Training a classifier for {ROUNDS} rounds on a stream that drifts, and tuning it meanwhile.\n")
    for name, strategy in _contenders(number).items():
        accuracy, tuner = train(strategy, seed=number, storage=address.place, name=name)
        told = tuner.summary
        click.echo(
            f"{name}: mean accuracy {accuracy:.3f}, {told['validations']} validations "
            f"({told['paid']:.2f} s), {told['skipped']} skipped ({told['saved']:.2f} s saved), "
            f"{told['undone']} rounds taken back"
        )
        _draw(name, folder, address.place)
    click.echo(f"\nPictures of both: {folder}\nNext:\n  farthing list --storage {folder / 'online.db'}")
    return 0


def _contenders(number: int) -> dict[str, OnlineStrategy]:
    return {f"probes-{number}": PairedProbes(), f"always-{number}": CEGPUCB(rule=Every(1))}


def train(
    strategy: OnlineStrategy,
    *,
    seed: int,
    storage: str | Path | None = None,
    name: str = "online",
    rounds: int = ROUNDS,
) -> tuple[float, OnlineTuner]:
    """One training run with online tuning: its mean accuracy on examples that no decision saw, and the tuner."""
    model, stream = Classifier(), Stream(seed)
    tuner = OnlineTuner(
        SPACE,
        rounds=rounds,
        strategy=strategy,
        initial=START,
        overhead=None,
        maximize="accuracy",
        save=model.save,
        restore=model.restore,
        storage=storage,
        name=name,
        seed=seed,
    )
    truth = []
    for decision in tuner:
        model.descend(*stream.draw(decision.round, BATCH), **decision.params)
        decision.observe(lambda: model.accuracy(*stream.draw(tuner.round, VALIDATION)))
        truth.append(model.accuracy(*stream.draw(decision.round, 1000)))
    return float(np.mean(truth)), tuner


class Classifier:
    """Logistic regression, trained by gradient descent."""

    def __init__(self) -> None:
        self.weights = np.zeros(FEATURES)

    def descend(self, inputs: Array, labels: Array, *, rate: float, decay: float) -> None:
        pull = labels / (1.0 + np.exp(labels * (inputs @ self.weights)))
        self.weights = self.weights + rate * (inputs.T @ pull / len(labels) - decay * self.weights)

    def accuracy(self, inputs: Array, labels: Array) -> float:
        return float(np.mean(np.sign(inputs @ self.weights) == labels))

    def save(self) -> Array:
        return self.weights.copy()

    def restore(self, saved: Array) -> None:
        self.weights = saved.copy()


def _draw(name: str, folder: Path, storage: str | Path) -> None:
    study = Study.load(name, storage)
    try:
        save_figure(study.plot(), folder / f"{name}.png")
    finally:
        study.close()
