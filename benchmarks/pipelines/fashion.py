"""Clothes told apart by histograms of gradients: features → principal components → ridge on random features."""

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import ndimage

from benchmarks.pipelines.measured import RESULTS, Measured
from benchmarks.problems.data import data_folder, missing_file
from farthing.space import Choice, Float, Int, Space

TRAIN, VALIDATION = 1500, 1500
SIDE, CLASSES = 28, 10
RANDOM_FEATURES = 400
FILES = ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz")
SPACE = Space(
    stages={
        "features": {
            "blur": Float(0.0, 2.0, step=0.25),
            "cell": Choice(4, 7, 14, ordered=True),
            "orientations": Int(4, 12, step=2),
            "power": Choice(0.25, 0.5, 1.0, ordered=True),
        },
        "decompose": {"components": Int(10, 150, step=10), "whiten": Choice(False, True)},
        "classify": {"gamma": Float(-3.0, 0.5, step=0.25), "ridge": Float(-5.0, 2.0, step=0.5)},
    }
)


def features(images: np.ndarray, *, blur: float, cell: int, orientations: int, power: float) -> np.ndarray:
    """For each cell of pixels a histogram of the gradient's direction, weighted by its length to a power."""
    smooth = ndimage.gaussian_filter(images, (0.0, blur, blur)) if blur else images
    down, across = np.gradient(smooth, axis=(1, 2))
    length = np.hypot(down, across) ** power
    direction = np.floor((np.arctan2(down, across) / np.pi % 1.0) * orientations).astype(int) % orientations
    cells = SIDE // cell
    found = np.empty((len(images), orientations, cells, cells))
    for number in range(orientations):
        own = np.where(direction == number, length, 0.0)
        found[:, number] = own.reshape(len(images), cells, cell, cells, cell).sum(axis=(2, 4))
    rows = found.reshape(len(images), -1)
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9))


def decompose(rows: np.ndarray, *, components: int, whiten: bool) -> np.ndarray:
    """Principal components of the training rows, in units of the first one's deviation, or of their own."""
    centred = rows - rows[:TRAIN].mean(axis=0)
    values, vectors = np.linalg.eigh(centred[:TRAIN].T @ centred[:TRAIN] / TRAIN)
    order = np.argsort(values)[::-1][: min(components, len(values))]
    scale = np.sqrt(np.maximum(values[order], 1e-9 * values.max()))
    return np.asarray(centred @ vectors[:, order] / (scale * np.sqrt(len(order)) if whiten else scale[0]))


def classify(rows: np.ndarray, *, gamma: float, ridge: float) -> float:
    """The error on the validation images of ridge regression on random Fourier features."""
    rng = np.random.default_rng(0)
    directions = rng.standard_normal((rows.shape[1], RANDOM_FEATURES)) * np.sqrt(2.0 * 10.0**gamma)
    Z = np.sqrt(2.0 / RANDOM_FEATURES) * np.cos(rows @ directions + rng.uniform(0, 2 * np.pi, RANDOM_FEATURES))
    y = _labels()
    targets = np.eye(CLASSES)[y[:TRAIN]]
    weights = np.linalg.solve(Z[:TRAIN].T @ Z[:TRAIN] + 10.0**ridge * np.eye(RANDOM_FEATURES), Z[:TRAIN].T @ targets)
    return float(np.mean(np.argmax(Z[TRAIN:] @ weights, axis=1) != y[TRAIN:]))


def _read(name: str, header: int) -> np.ndarray:
    with gzip.open(data_folder() / "fashion_mnist" / name) as file:
        return np.frombuffer(file.read(), dtype=np.uint8, offset=header)


def _images() -> np.ndarray:
    pixels = _read(FILES[0], 16).reshape(-1, SIDE, SIDE)[: TRAIN + VALIDATION]
    return np.asarray(pixels / 255.0)


def _labels() -> np.ndarray:
    return _read(FILES[1], 8)[: TRAIN + VALIDATION].astype(int)


@dataclass(frozen=True)
class Fashion(Measured):
    """Minimises the error on validation images."""

    name: str = "fashion-mnist"
    table: Path = RESULTS / "pipeline-fashion-table.jsonl"

    def missing(self) -> str | None:
        return next((reason for file in FILES if (reason := missing_file(f"fashion_mnist/{file}"))), None)

    def space(self) -> Space:
        return SPACE

    def source(self) -> Any:
        return _images()

    def function(self, stage: str) -> Callable[..., Any]:
        functions: dict[str, Callable[..., Any]] = {
            "features": features,
            "decompose": decompose,
            "classify": classify,
        }
        return functions[stage]


FASHION = Fashion()
