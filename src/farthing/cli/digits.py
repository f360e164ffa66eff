"""The work of `farthing demo`: a small neural network that reads handwritten digits.

The data are scikit-learn's 1797 scanned digits of 8 × 8 pixels; it learns from each in its own place and in the eight
around it, so that it makes fewer mistakes. A run that is saved and loaded continues bit for bit as if it had never
stopped: the order of the examples depends on the epoch alone, and Adam's moments are saved too.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from farthing.cli.files import writing
from farthing.errors import MissingExtra
from farthing.execution import RunningTrial
from farthing.space import Choice, Fidelity, Float, Int, Space
from farthing.trials import Params

Array = np.ndarray
Weights = dict[str, Array]

DATA_FILE = "digits.npz"
SEED = 0
SIDE, CLASSES = 8, 10
PIXELS = SIDE**2
TRAINING, VALIDATION = 900, 450
"""Numbers of examples for training and for validation; the rest are the test, which tuning never sees."""

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8

SPACE = Space(
    {
        "learning_rate": Float(1e-4, 1e-1, log=True),
        "units": Int(16, 256, log=True),
        "batch_size": Int(16, 256, log=True),
        "weight_decay": Float(1e-6, 1e-1, log=True),
        "activation": Choice("relu", "tanh"),
    },
    fidelities={"epochs": Fidelity(2, 54, integer=True, trace=True)},
)


class Examples(NamedTuple):
    """Images as rows of pixels from 0 to 1, and the digits they show."""

    images: Array
    digits: Array


def train(trial: RunningTrial) -> None:
    """Trains a network up to the trial's epochs, from where its checkpoint stopped if there is one."""
    training, validation = shifted_training(Path.cwd()), load_examples(Path.cwd())[1]
    network = Network.load(trial.resume_dir) if trial.resume_dir else Network.fresh(trial.params["units"])
    while network.epochs < trial.fidelity["epochs"]:
        network.train_epoch(training, trial.params)
        with trial.timing("validation"):
            error = network.error(validation, activation=trial.params["activation"])
        trial.report(error, epochs=network.epochs)
    network.save(trial.checkpoint_dir)


def save_examples(folder: Path) -> None:
    """Puts the data where workers read them at once; importing scikit-learn would be most of a short trial's cost."""
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise MissingExtra(
            "The demo needs scikit-learn for its data, got a Python without it. Run: pip install 'farthing[demo]'."
        ) from error
    data = load_digits()
    order = np.random.default_rng(SEED).permutation(len(data.target))
    unfinished = folder / f"unfinished-{DATA_FILE}"
    with writing(folder):
        np.savez(unfinished, images=data.data[order] / 16.0, digits=data.target[order])
        unfinished.replace(folder / DATA_FILE)


@lru_cache
def load_examples(folder: Path) -> tuple[Examples, Examples, Examples]:
    """For training, validation and test."""
    with np.load(folder / DATA_FILE, allow_pickle=False) as saved:
        images, digits = saved["images"], saved["digits"]
    cuts = [TRAINING, TRAINING + VALIDATION]
    parts = zip(np.split(images, cuts), np.split(digits, cuts), strict=True)
    training, validation, test = (Examples(*part) for part in parts)
    return training, validation, test


@lru_cache
def shifted_training(folder: Path) -> Examples:
    """The examples for training, each moved by up to one pixel in every direction: nine times as many."""
    training, _, _ = load_examples(folder)
    framed = np.pad(training.images.reshape(-1, SIDE, SIDE), ((0, 0), (1, 1), (1, 1)))
    moved = [framed[:, i : i + SIDE, j : j + SIDE].reshape(-1, PIXELS) for i in range(3) for j in range(3)]
    return Examples(np.concatenate(moved), np.tile(training.digits, len(moved)))


@dataclass
class Network:
    """One hidden layer, trained by Adam with decoupled weight decay (Loshchilov and Hutter, 2019)."""

    weights: Weights
    first_moments: Weights
    second_moments: Weights
    steps: int = 0
    epochs: int = 0

    @classmethod
    def fresh(cls, units: int) -> "Network":
        rng = np.random.default_rng([SEED, units])
        weights = {
            "hidden": rng.normal(0.0, np.sqrt(2.0 / PIXELS), (PIXELS, units)),
            "hidden_bias": np.zeros(units),
            "output": rng.normal(0.0, np.sqrt(1.0 / units), (units, CLASSES)),
            "output_bias": np.zeros(CLASSES),
        }
        return cls(weights, _zeros_like(weights), _zeros_like(weights))

    def train_epoch(self, examples: Examples, params: Params) -> None:
        """One pass over the examples, in an order that depends on the epoch alone."""
        order = np.random.default_rng([SEED, self.epochs]).permutation(len(examples.digits))
        for start in range(0, len(order), params["batch_size"]):
            batch = order[start : start + params["batch_size"]]
            gradients = self._gradients(Examples(examples.images[batch], examples.digits[batch]), params["activation"])
            self._step(gradients, rate=params["learning_rate"], decay=params["weight_decay"])
        self.epochs += 1

    def error(self, examples: Examples, *, activation: str) -> float:
        """The part of the examples that are read wrongly."""
        _, scores = self._forward(examples.images, activation)
        return float(np.mean(scores.argmax(axis=1) != examples.digits))

    def loss(self, examples: Examples, *, activation: str) -> float:
        """The mean cross entropy, which tells more than the error where nearly all are read rightly."""
        _, scores = self._forward(examples.images, activation)
        scores = scores - scores.max(axis=1, keepdims=True)
        right = scores[np.arange(len(examples.digits)), examples.digits]
        return float(np.mean(np.log(np.exp(scores).sum(axis=1)) - right))

    def save(self, folder: Path) -> None:
        arrays: dict[str, Any] = {"steps": np.array(self.steps), "epochs": np.array(self.epochs), **self.weights}
        arrays |= {f"first_{name}": array for name, array in self.first_moments.items()}
        arrays |= {f"second_{name}": array for name, array in self.second_moments.items()}
        np.savez(folder / "network.npz", **arrays)

    @classmethod
    def load(cls, folder: Path) -> "Network":
        with np.load(folder / "network.npz", allow_pickle=False) as saved:
            arrays = dict(saved)
        names = ("hidden", "hidden_bias", "output", "output_bias")
        return cls(
            {name: arrays[name] for name in names},
            {name: arrays[f"first_{name}"] for name in names},
            {name: arrays[f"second_{name}"] for name in names},
            steps=int(arrays["steps"]),
            epochs=int(arrays["epochs"]),
        )

    def _forward(self, images: Array, activation: str) -> tuple[Array, Array]:
        """The hidden layer and the scores of the ten digits."""
        sums = images @ self.weights["hidden"] + self.weights["hidden_bias"]
        hidden = np.tanh(sums) if activation == "tanh" else np.maximum(sums, 0.0)
        return hidden, hidden @ self.weights["output"] + self.weights["output_bias"]

    def _gradients(self, batch: Examples, activation: str) -> Weights:
        """Of the mean cross entropy, by backpropagation."""
        hidden, scores = self._forward(batch.images, activation)
        chances = np.exp(scores - scores.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        chances[np.arange(len(batch.digits)), batch.digits] -= 1.0
        by_scores = chances / len(batch.digits)
        slope = 1.0 - hidden**2 if activation == "tanh" else hidden > 0.0
        by_sums = (by_scores @ self.weights["output"].T) * slope
        return {
            "hidden": batch.images.T @ by_sums,
            "hidden_bias": by_sums.sum(axis=0),
            "output": hidden.T @ by_scores,
            "output_bias": by_scores.sum(axis=0),
        }

    def _step(self, gradients: Weights, *, rate: float, decay: float) -> None:
        self.steps += 1
        for name, gradient in gradients.items():
            m, v = self.first_moments[name], self.second_moments[name]
            m += (1.0 - BETA1) * (gradient - m)
            v += (1.0 - BETA2) * (gradient**2 - v)
            m_hat, v_hat = m / (1.0 - BETA1**self.steps), v / (1.0 - BETA2**self.steps)
            self.weights[name] -= rate * (m_hat / (np.sqrt(v_hat) + EPSILON) + decay * self.weights[name])


def _zeros_like(weights: Weights) -> Weights:
    return {name: np.zeros_like(array) for name, array in weights.items()}
