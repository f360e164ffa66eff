"""Tunes a classifier while it learns from a stream that drifts, and validates only when it is worth it.

    python examples/2_online_stream.py                       two runs of a second, and their summaries
    python examples/2_online_stream.py --pictures folder     also pictures of both, and the runs as studies

The border between two classes turns as rounds go by, and the best rate of learning grows as the weights do. One run
tries neighbours of its setting; the other validates in every round.

Pictures need matplotlib: pip install 'farthing[plot]'.
"""

import argparse
from pathlib import Path

import numpy as np

import farthing as ft

ROUNDS, BATCH, VALIDATION, FEATURES = 150, 100, 4000, 20
SPACE = ft.Space({"rate": ft.Float(1e-2, 3.0, log=True), "decay": ft.Float(1e-5, 1e-1, log=True)})
START = {"rate": 0.1, "decay": 1e-3}
"""A setting that a user might begin with."""

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


def train(name: str, strategy: object, *, storage: Path | None, seed: int = 1) -> None:
    """One training run with online tuning; its accuracy is on examples that no decision saw."""
    model, stream = Classifier(), Stream(seed)
    tuner = ft.OnlineTuner(
        SPACE,
        rounds=ROUNDS,
        strategy=strategy,
        initial=START,
        overhead=None,  # this little model trains faster than it validates
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
    told = tuner.summary
    print(
        f"{name:7} mean accuracy {np.mean(truth):.3f}, {told['validations']} validations ({told['paid']:.2f} s), "
        f"{told['skipped']} skipped ({told['saved']:.2f} s saved), {told['undone']} rounds taken back"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=Path, help="a folder for pictures and the database")
    folder: Path | None = parser.parse_args().pictures
    if folder is not None:
        folder.mkdir(exist_ok=True)
    storage = None if folder is None else folder / "online.db"
    for name, strategy in {"probes": ft.PairedProbes(), "always": ft.CEGPUCB(rule=ft.rules.Every(1))}.items():
        train(name, strategy, storage=storage)
        if folder is not None and storage is not None:
            with ft.Study.load(name, storage) as study:
                study.plot().savefig(folder / f"{name}.png")


if __name__ == "__main__":
    main()
