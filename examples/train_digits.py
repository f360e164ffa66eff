"""Trains a linear classifier of handwritten digits: an ordinary program that knows nothing of Farthing.

It prints a JSON line after every epoch, saves itself where --save says and goes on from where --resume says:

    python train_digits.py --learning-rate 0.1 --l2 1e-4 --momentum 0.9 --epochs 9 --save run1
    python train_digits.py --learning-rate 0.1 --l2 1e-4 --momentum 0.9 --epochs 27 --resume run1
"""

import argparse
import json
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

BATCH = 50
TRAINING = 1300


def main() -> None:
    arguments = read_arguments()
    images, digits = shuffled_digits()
    state = load(arguments.resume) if arguments.resume else fresh()
    for epoch in range(int(state["epochs"]), arguments.epochs):
        train_epoch(state, images[:TRAINING], digits[:TRAINING], epoch, arguments)
        error = float(np.mean((images[TRAINING:] @ state["weights"]).argmax(axis=1) != digits[TRAINING:]))
        print(json.dumps({"error": error, "epochs": epoch + 1}))
    if arguments.save:
        np.savez(arguments.save / "state.npz", **state)


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--learning-rate", type=float, required=True)
    parser.add_argument("--l2", type=float, required=True)
    parser.add_argument("--momentum", type=float, required=True)
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--resume", type=Path)
    parser.add_argument("--save", type=Path)
    return parser.parse_args()


def shuffled_digits() -> tuple[np.ndarray, np.ndarray]:
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    with_bias = np.column_stack([data.data / 16.0, np.ones(len(data.target))])
    return with_bias[order], data.target[order]


def fresh() -> dict[str, np.ndarray]:
    return {"weights": np.zeros((65, 10)), "velocity": np.zeros((65, 10)), "epochs": np.array(0)}


def load(folder: Path) -> dict[str, np.ndarray]:
    with np.load(folder / "state.npz", allow_pickle=False) as saved:
        return dict(saved)


def train_epoch(
    state: dict[str, np.ndarray], images: np.ndarray, digits: np.ndarray, epoch: int, arguments: argparse.Namespace
) -> None:
    order = np.random.default_rng(epoch).permutation(len(digits))
    for batch in np.split(order, len(order) // BATCH):
        scores = images[batch] @ state["weights"]
        chances = np.exp(scores - scores.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        chances[np.arange(BATCH), digits[batch]] -= 1.0
        gradient = images[batch].T @ chances / BATCH + arguments.l2 * state["weights"]
        state["velocity"] = arguments.momentum * state["velocity"] - arguments.learning_rate * gradient
        state["weights"] = state["weights"] + state["velocity"]
    state["epochs"] = np.array(epoch + 1)


if __name__ == "__main__":
    main()
