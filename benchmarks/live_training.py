"""The first live task: a convolutional network on CIFAR-10, and what every live task is; see benchmarks/live.py."""

import gc
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

import farthing as ft
from benchmarks.recording.networks import Layout
from benchmarks.recording.stacked import Nesterov, Training, shuffled, stepper, warmed_cosine
from benchmarks.recording.tables import CLASSES, precision, smoothed_loss

CHANCE = 1.0 - 1.0 / CLASSES
COLOURS = 3
VALIDATED_AT_ONCE = 1024
SEEDS_APART = 10_000_000
"""Of the epochs of one training: more than there are trainings."""
PARAMS: Mapping[str, ft.Float | ft.Int] = {
    "lr": ft.Float(3e-3, 3.0, log=True),
    "weight_decay": ft.Float(1e-5, 1e-1, log=True),
    "momentum": ft.Float(0.0, 0.98),
    "smoothing": ft.Float(0.0, 0.3),
    "width": ft.Int(16, 64, step=8),
    "batch": ft.Int(64, 512, log=True),
}


@dataclass(frozen=True)
class Pictures:
    """Inputs (n, 32, 32, 3) and labels (n,), on the device."""

    inputs: Tensor
    labels: Tensor


class Trained(Protocol):
    """A network in training."""

    epoch: int

    def trained_on(self) -> float:
        """Train for one more epoch; the value on the data that validates."""
        ...

    def state(self) -> dict[str, Any]:
        """All that is needed to go on later; `torch.load` reads it with weights_only."""
        ...


@dataclass(frozen=True)
class LiveTask(ABC):
    """The work of a study: trainings that are validated, and may pause, after every epoch; `folder` has the data."""

    folder: Path
    epochs: int = field(default=16, kw_only=True)
    seed: int = field(default=0, kw_only=True)

    params: ClassVar[Mapping[str, ft.Float | ft.Int | ft.Choice]]

    @property
    def space(self) -> ft.Space:
        return ft.Space(self.params, fidelities={"epochs": ft.Fidelity(1, self.epochs, integer=True, trace=True)})

    @property
    @abstractmethod
    def data(self) -> list[int]:
        """How much there is to train and to validate."""

    @abstractmethod
    def begin(self, params: Mapping[str, Any], *, seed: int, saved: Mapping[str, Any] | None = None) -> Trained:
        """A training, from nothing or from a saved state."""

    def __call__(self, trial: ft.RunningTrial) -> None:
        seed = self.seed * 1000 + trial.number
        network = self.begin(trial.params, seed=seed, saved=_saved(trial.resume_dir))
        for epoch in range(network.epoch, int(trial.fidelity["epochs"])):
            trial.report(network.trained_on(), epochs=epoch + 1)
        torch.save(network.state(), trial.checkpoint_dir / "network.pt")
        del network
        _tidy()

    def verified(self, params: Mapping[str, Any], *, seed: int) -> float:
        """The value after a whole training from nothing."""
        network = self.begin(params, seed=seed)
        values = [network.trained_on() for _ in range(self.epochs)]
        del network
        _tidy()
        return values[-1]


@dataclass(frozen=True)
class Task(LiveTask):
    """`folder` has images.npy and labels.npy, of which the first are to train. The value is the share of errors."""

    train: int
    validation: int

    params: ClassVar[Mapping[str, ft.Float | ft.Int | ft.Choice]] = PARAMS

    @property
    def data(self) -> list[int]:
        return [self.train, self.validation]

    def begin(self, params: Mapping[str, Any], *, seed: int, saved: Mapping[str, Any] | None = None) -> "Network":
        return Network(self, params, seed=seed, saved=saved)


class Network:
    """A training that can be paused after every epoch: SGD with Nesterov's momentum, warm-up, then a cosine to zero."""

    def __init__(
        self, task: Task, params: Mapping[str, Any], *, seed: int, saved: Mapping[str, Any] | None = None
    ) -> None:
        self.epoch = 0 if saved is None else int(saved["epoch"])
        self._seed = seed if saved is None else int(saved["seed"])
        torch.manual_seed(self._seed)
        train, self._validation = pictures(task.folder, task.train, task.validation)
        device, batch = train.inputs.device, int(params["batch"])
        self._layout = layout_of(int(params["width"]))
        weights = self._layout.fresh(1, device)
        statistics = fresh_statistics(self._layout, device)
        self._steps = task.train // batch
        order = shuffled(task.train, models=1, batch=batch, epochs=task.epochs, device=device)
        row = {name: torch.tensor([float(params[name])], device=device) for name in PARAMS}

        def loss(leaf: Tensor, rows: Tensor) -> Tensor:
            x = mirrored(train.inputs[rows[0]])
            found = logits(self._layout, leaf, x, statistics=statistics, learns=True)
            return smoothed_loss(found[None], train.labels[rows], row["smoothing"])

        optimizer = _WithStatistics(weights, statistics=statistics, momentum=row["momentum"], decay=row["weight_decay"])
        self._tensors = [weights, *optimizer.state()]
        for tensor, old in zip(self._tensors, saved["tensors"] if saved else (), strict=False):
            tensor.copy_(old)
        begun = self.epoch * self._steps
        self._step = stepper(
            Training(
                weights=weights,
                optimizer=optimizer,
                schedule=warmed_cosine(row["lr"], len(order))[begun:].contiguous(),
                order=order[begun:].contiguous(),
                loss=loss,
                validate=self._error,
            )
        )

    def trained_on(self) -> float:
        torch.manual_seed(self._seed + SEEDS_APART * (self.epoch + 1))  # the same images are mirrored after a pause
        for _ in range(self._steps):
            self._step()
        self.epoch += 1
        return self._error(self._tensors[0]).item()

    def state(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "seed": self._seed, "tensors": [tensor.cpu() for tensor in self._tensors]}

    def _error(self, weights: Tensor) -> Tensor:
        """A network whose numbers overflowed guesses."""
        inputs, labels, statistics = self._validation.inputs, self._validation.labels, self._tensors[-1]
        with torch.no_grad():
            found = torch.cat(
                [
                    logits(self._layout, weights, x, statistics=statistics, learns=False)
                    for x in torch.split(inputs, VALIDATED_AT_ONCE)
                ]
            )
        wrong = (found.argmax(-1) != labels).float().mean()
        return torch.where(found.isfinite().all(), wrong, CHANCE)


class _WithStatistics(Nesterov):
    """Warming up for a graph must leave no trace in the running means and variances either."""

    def __init__(self, weights: Tensor, *, statistics: Tensor, momentum: Tensor, decay: Tensor) -> None:
        super().__init__(weights, momentum=momentum, decay=decay)
        self._statistics = statistics

    def state(self) -> list[Tensor]:
        return [*super().state(), self._statistics]


def layout_of(width: int) -> Layout:
    """Three stages of two convolutions with batch normalisation, each with twice the channels; then a linear layer."""
    shapes: dict[str, tuple[int, ...]] = {}
    channels = COLOURS
    for number in range(6):
        before, channels = channels, width * 2 ** (number // 2)
        shapes[f"{number}.conv"] = (channels, 3, 3, before)  # the order in which a GPU reads them
        shapes[f"{number}.gain"] = shapes[f"{number}.bias"] = (channels,)
    shapes |= {"out": (CLASSES, channels), "offset": (CLASSES,)}
    deviations = {name: (2.0 / (9 * shape[-1])) ** 0.5 for name, shape in shapes.items() if name.endswith("conv")}
    return Layout(shapes, {**deviations, "out": channels**-0.5})


def fresh_statistics(layout: Layout, device: torch.device) -> Tensor:
    """Running means of 0 and variances of 1: (2, channels of all layers)."""
    count = sum(shape[0] for name, shape in layout.shapes.items() if name.endswith("gain"))
    return torch.stack([torch.zeros(count), torch.ones(count)]).to(device)


def logits(layout: Layout, row: Tensor, x: Tensor, *, statistics: Tensor, learns: bool) -> Tensor:
    """(B, classes) of the inputs (B, 32, 32, 3), with the weights (1, P)."""
    exact = {name: part[0] for name, part in layout.unpacked(row).items()}
    weights = {name: part[0] for name, part in layout.unpacked(row.to(x.dtype)).items()}
    x, seen = x.permute(0, 3, 1, 2), 0  # channels stay last in memory
    for number in range(6):
        x = functional.conv2d(x, weights[f"{number}.conv"].permute(0, 3, 1, 2), padding=1)
        mean, variance = statistics[:, seen : seen + x.shape[1]]
        gain, bias = exact[f"{number}.gain"], exact[f"{number}.bias"]
        x = torch.relu(functional.batch_norm(x, mean, variance, gain, bias, training=learns))
        seen += len(gain)
        if number % 2:
            x = functional.max_pool2d(x, 2)
    return functional.linear(x.mean((2, 3)), weights["out"], weights["offset"]).float()


def mirrored(x: Tensor) -> Tensor:
    """Half of the images, by chance."""
    return torch.where(torch.rand(len(x), 1, 1, 1, device=x.device) < 0.5, x.flip(2), x)


@cache
def pictures(folder: Path, train: int, validation: int) -> tuple[Pictures, Pictures]:
    """To train and to validate: read once by every process."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    count = train + validation
    x = torch.tensor(np.load(folder / "images.npy", mmap_mode="r")[:count]).to(device)
    y = torch.tensor(np.load(folder / "labels.npy")[:count]).to(device)
    inputs = ((x.float() - 120.0) / 64.0).to(precision(device))
    return Pictures(inputs[:train], y[:train]), Pictures(inputs[train:], y[train:])


def _saved(folder: Path | None) -> Mapping[str, Any] | None:
    if folder is None:
        return None
    found: Mapping[str, Any] = torch.load(folder / "network.pt", map_location="cpu", weights_only=True)
    return found


def _tidy() -> None:
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
