"""`farthing demo online`: tunes a classifier while it learns from a stream that drifts."""

from pathlib import Path

import click
import numpy as np

from farthing.cli.files import make_folder, save_figure
from farthing.cli.storages import address_of, opened_storage
from farthing.plots import require_matplotlib
from farthing.space import Float, Space
from farthing.strategies.online import CEGPUCB, OnlineStrategy
from farthing.strategies.online.query_rules import Every
from farthing.study import Study
from farthing.study.online import OnlineTuner

ROUNDS, BATCH, VALIDATION, FEATURES = 150, 100, 4000, 20
SPACE = Space({"rate": Float(1e-2, 3.0, log=True), "decay": Float(1e-5, 1e-1, log=True)})

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
            f"({told['paid']:.2f} s), {told['skipped']} skipped ({told['saved']:.2f} s saved)"
        )
        _draw(name, folder, address.place)
    click.echo(f"\nPictures of both: {folder}\nNext:\n  farthing list --storage {folder / 'online.db'}")
    return 0


def _contenders(number: int) -> dict[str, OnlineStrategy]:
    return {f"by-price-{number}": CEGPUCB(), f"always-{number}": CEGPUCB(rule=Every(1))}


def train(
    strategy: OnlineStrategy,
    *,
    seed: int,
    storage: str | Path | None = None,
    name: str = "online",
    rounds: int = ROUNDS,
) -> tuple[float, OnlineTuner]:
    """One training run with online tuning: its mean accuracy on examples that no decision saw, and the tuner."""
    stream, weights = Stream(seed), np.zeros(FEATURES)
    tuner = OnlineTuner(
        SPACE, rounds=rounds, strategy=strategy, maximize="accuracy", storage=storage, name=name, seed=seed
    )
    truth = []
    for round in range(rounds):
        decision = tuner.decide()
        weights = descended(weights, *stream.draw(round, BATCH), **decision.params)
        if decision.measure:
            with decision.timing():
                accuracy = accuracy_of(weights, *stream.draw(round, VALIDATION))
            tuner.observe(accuracy)
        truth.append(accuracy_of(weights, *stream.draw(round, 1000)))
    return float(np.mean(truth)), tuner


def descended(weights: Array, inputs: Array, labels: Array, *, rate: float, decay: float) -> Array:
    """One step of gradient descent for logistic regression."""
    pull = labels / (1.0 + np.exp(labels * (inputs @ weights)))
    return np.asarray(weights + rate * (inputs.T @ pull / len(labels) - decay * weights))


def accuracy_of(weights: Array, inputs: Array, labels: Array) -> float:
    return float(np.mean(np.sign(inputs @ weights) == labels))


def _draw(name: str, folder: Path, storage: str | Path) -> None:
    study = Study.load(name, storage)
    try:
        save_figure(study.plot(), folder / f"{name}.png")
    finally:
        study.close()
