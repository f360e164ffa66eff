"""The three recorded tasks: what is trained, over which params, and what a step of it computes."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmarks.recording.data import CHARACTERS
from benchmarks.recording.networks import (
    CHANNELS,
    SIDE,
    recurrent_flops,
    recurrent_layout,
    recurrent_logits,
    residual_flops,
    residual_layout,
    residual_logits,
)
from benchmarks.recording.spaces import Settings, TableSpace, choice, real, whole
from benchmarks.recording.stacked import (
    Adam,
    Nesterov,
    Training,
    curves,
    one_cycle,
    shuffled,
    warmed_cosine,
)

CLASSES = 10
CIFAR = "the first images of CIFAR-10 (Krizhevsky), through JPEG"
Tensors = Mapping[str, Tensor]


class Task(ABC):
    """One table: `models` configurations of each shape at once, `passes` times."""

    name: str
    data: str
    work_says: str
    space: TableSpace
    models: int
    passes: int
    device: torch.device

    def training(self, settings: Settings, shape: Mapping[str, int]) -> Training:
        return self._training({k: torch.tensor(v).float().to(self.device) for k, v in settings.items()}, shape)

    @abstractmethod
    def _training(self, settings: Tensors, shape: Mapping[str, int]) -> Training: ...

    @property
    @abstractmethod
    def says(self) -> str:
        """What is trained, and what is measured."""

    @abstractmethod
    def steps(self, shape: Mapping[str, int]) -> int: ...

    @abstractmethod
    def work(self, shape: Mapping[str, int]) -> list[float]:
        """What the price of a step is linear in."""

    @abstractmethod
    def prepare(self) -> None:
        """Load the data, and train what comes before."""


# ------------------------------------------------------------------------------------------------- images


@dataclass(frozen=True, eq=False)
class Pictures:
    """Inputs (2 n, 16, 16, 16), the second half mirrored, and labels (n,). Two rows and columns of pixels are one."""

    inputs: Tensor
    labels: Tensor

    @staticmethod
    def of(images: NDArray[np.uint8], labels: NDArray[np.int64], device: torch.device) -> "Pictures":
        x = (torch.tensor(images).to(device).float() - 120.0) / 64.0
        both = torch.cat([x, x.flip(2)]).view(2 * len(x), SIDE, 2, SIDE, 2, 3).transpose(2, 3)
        flat = both.reshape(2 * len(x), SIDE, SIDE, 12)
        padded = torch.nn.functional.pad(flat, (0, CHANNELS - 12))
        return Pictures(padded.to(precision(device)), torch.tensor(labels).to(device))

    def drawn(self, rows: Tensor, *, cutout: Tensor | None = None) -> Tensor:
        """Those in `rows` (M, B), mirrored by chance, with a square of the side `cutout` (M,) blank."""
        mirrored = rows + len(self.labels) * (torch.rand(rows.shape, device=rows.device) < 0.5)
        x = self.inputs[mirrored]
        if cutout is None:
            return x
        centre = torch.rand(2, *rows.shape, 1, device=rows.device) * SIDE
        line = torch.arange(SIDE, device=rows.device) + 0.5
        inside = (line - centre).abs() < cutout[:, None, None] * SIDE / 2
        blank = inside[0][..., :, None] & inside[1][..., None, :]
        return x * (~blank)[..., None]

    def part(self, start: int, end: int) -> "Pictures":
        n = len(self.labels)
        return Pictures(torch.cat([self.inputs[start:end], self.inputs[n + start : n + end]]), self.labels[start:end])


def precision(device: torch.device) -> torch.dtype:
    return torch.bfloat16 if device.type == "cuda" else torch.float32


def smoothed_loss(logits: Tensor, labels: Tensor, smoothing: Tensor) -> Tensor:
    """Cross-entropy (M,) of logits (M, B, classes)."""
    logs = torch.log_softmax(logits, dim=-1)
    right = logs.gather(-1, labels[..., None])[..., 0]
    s = smoothing[:, None]
    return -((1.0 - s) * right + s * logs.mean(-1)).mean(1)


def residual_error(weights: Tensor, pictures: Pictures, *, width: int, classes: int, chunk: int = 256) -> Tensor:
    """The share of wrong answers (M,); a network whose numbers overflowed guesses."""
    layers = residual_layout(width, classes).unpacked(weights.to(pictures.inputs.dtype))
    wrong = torch.zeros(len(weights), device=weights.device)
    finite = torch.ones(len(weights), dtype=torch.bool, device=weights.device)
    with torch.no_grad():
        for start in range(0, len(pictures.labels), chunk):
            labels = pictures.labels[start : start + chunk]
            x = pictures.inputs[start : start + len(labels)]
            logits = residual_logits(layers, x.expand(len(weights), *x.shape))
            wrong += (logits.argmax(-1) != labels).sum(1)
            finite &= logits.isfinite().all(-1).all(-1)
    return torch.where(finite, wrong / len(pictures.labels), 1.0 - 1.0 / classes)


def residual_training(
    settings: Tensors, *, train: Pictures, validation: Pictures, width: int, batch: int, epochs: int, classes: int
) -> Training:
    """SGD with Nesterov's momentum and one cycle."""
    layout = residual_layout(width, classes)
    models, device = len(settings["max_lr"]), settings["max_lr"].device
    weights = layout.fresh(models, device)
    order = shuffled(len(train.labels), models=models, batch=batch, epochs=epochs, device=device)

    def loss(leaf: Tensor, rows: Tensor) -> Tensor:
        layers = layout.unpacked(leaf.to(train.inputs.dtype))
        logits = residual_logits(layers, train.drawn(rows, cutout=settings["cutout"]))
        return smoothed_loss(logits, train.labels[rows], settings["smoothing"])

    return Training(
        weights=weights,
        optimizer=Nesterov(weights, momentum=1.0 - settings["one_minus_momentum"], decay=settings["weight_decay"]),
        schedule=one_cycle(settings["max_lr"], settings["pct_start"], len(order)),
        order=order,
        loss=loss,
        validate=lambda rows: residual_error(rows, validation, width=width, classes=classes),
    )


@dataclass(frozen=True, eq=False)
class ResnetCifar(Task):
    images: NDArray[np.uint8]
    labels: NDArray[np.int64]
    device: torch.device
    train: int = 12_288
    validation: int = 4_096
    epochs: int = 12
    models: int = 18
    passes: int = 2

    name = "resnet_cifar"
    data = CIFAR
    work_says = "1, flops"
    space = TableSpace(
        {
            "max_lr": real(3e-3, 3.0, log=True),
            "weight_decay": real(1e-5, 1e-1, log=True),
            "one_minus_momentum": real(0.01, 0.5, log=True),
            "smoothing": real(0.0, 0.3),
            "pct_start": real(0.05, 0.6),
            "cutout": real(0.0, 0.7),
            "width": choice(16, 24, 40, 64),
            "batch": choice(64, 128, 256, 512),
        },
        shaping=("width", "batch"),
    )

    @property
    def says(self) -> str:
        return (
            f"validation error of a residual network (3 blocks, group norm), CIFAR-10, {self.train} images to train, "
            f"{self.validation} to validate, {self.epochs} epochs, SGD with Nesterov momentum, one cycle"
        )

    @cached_property
    def _pictures(self) -> tuple[Pictures, Pictures]:
        every = Pictures.of(self.images, self.labels, self.device)
        return every.part(0, self.train), every.part(self.train, self.train + self.validation)

    def prepare(self) -> None:
        assert len(self._pictures[1].labels) == self.validation

    def _training(self, settings: Tensors, shape: Mapping[str, int]) -> Training:
        train, validation = self._pictures
        return residual_training(
            settings, train=train, validation=validation, **shape, epochs=self.epochs, classes=CLASSES
        )

    def steps(self, shape: Mapping[str, int]) -> int:
        return self.train // shape["batch"] * self.epochs

    def work(self, shape: Mapping[str, int]) -> list[float]:
        return [1.0, residual_flops(**shape)]


@dataclass(frozen=True, eq=False)
class FinetuneCifar(Task):
    """The checkpoint has learnt the first five classes; the other five are fine-tuned from few images."""

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]
    device: torch.device
    before: int = 9_216
    before_epochs: int = 20
    train: int = 2_048
    validation: int = 4_096
    epochs: int = 16
    width: int = 40
    models: int = 24
    passes: int = 2

    name = "finetune_cifar"
    data = CIFAR
    work_says = "1, flops, stages that learn"
    space = TableSpace(
        {
            "lr": real(1e-5, 1e-1, log=True),
            "head_ratio": real(0.1, 100.0, log=True),
            "layer_decay": real(0.3, 1.0),
            "weight_decay": real(1e-4, 1.0, log=True),
            "smoothing": real(0.0, 0.3),
            "dropout": real(0.0, 0.7),
            "frozen": whole(0, 3),
            "batch": choice(16, 32, 64),
        },
        shaping=("frozen", "batch"),
    )
    classes = CLASSES // 2

    @property
    def says(self) -> str:
        return (
            f"validation error of a residual network (3 blocks, width {self.width}) fine-tuned on five classes of "
            f"CIFAR-10 ({self.train} images to train, {self.validation} to validate, {self.epochs} epochs, AdamW, "
            f"warm-up then cosine) from a checkpoint trained on {self.before} images of the other five"
        )

    def _of_classes(self, low: int, high: int, end: int) -> Pictures:
        chosen = np.flatnonzero((self.labels >= low) & (self.labels < high))[:end]
        return Pictures.of(self.images[chosen], self.labels[chosen] - low, self.device)

    @cached_property
    def _pictures(self) -> tuple[Pictures, Pictures]:
        every = self._of_classes(self.classes, CLASSES, self.train + self.validation)
        return every.part(0, self.train), every.part(self.train, self.train + self.validation)

    @cached_property
    def checkpoint(self) -> tuple[Tensor, float]:
        """The best of eight learning rates on held-out images of its own classes, and its error there."""
        torch.manual_seed(1)
        every = self._of_classes(0, self.classes, len(self.labels))
        rates = torch.logspace(-2, 0, 8, device=self.device)
        settings = {"max_lr": rates} | {
            name: torch.full_like(rates, value)
            for name, value in {
                "weight_decay": 5e-4, "one_minus_momentum": 0.1, "smoothing": 0.1, "pct_start": 0.25, "cutout": 0.25,
            }.items()
        }  # fmt: skip
        training = residual_training(
            settings,
            train=every.part(0, self.before),
            validation=every.part(self.before, len(every.labels)),
            width=self.width,
            batch=128,
            epochs=self.before_epochs,
            classes=self.classes,
        )
        last = curves(training)[:, -1]
        return training.weights[int(last.argmin())].clone(), float(last.min())

    def prepare(self) -> None:
        print(f"{self.name}: the checkpoint's own error {self.checkpoint[1]:.3f}", flush=True)
        assert len(self._pictures[1].labels) == self.validation

    def _training(self, settings: Tensors, shape: Mapping[str, int]) -> Training:
        train, validation = self._pictures
        layout = residual_layout(self.width, self.classes)
        models, frozen = len(settings["lr"]), shape["frozen"]
        weights = self.checkpoint[0].expand(models, -1).clone()
        layers = layout.unpacked(weights)
        layers["4.out"].normal_(0.0, (4 * self.width) ** -0.5)
        layers["4.offset"].zero_()
        order = shuffled(self.train, models=models, batch=shape["batch"], epochs=self.epochs, device=self.device)
        ones = torch.ones(models, device=self.device)
        learns = {f"{part}.": settings["layer_decay"] ** (3 - part) for part in range(4)}
        still = {f"{part}.": ones * 0.0 for part in range(frozen + 1 if frozen else 0)}

        def loss(leaf: Tensor, rows: Tensor) -> Tensor:
            logits = residual_logits(
                layout.unpacked(leaf.to(train.inputs.dtype)),
                train.drawn(rows),
                frozen=frozen,
                dropout=settings["dropout"],
            )
            return smoothed_loss(logits, train.labels[rows], settings["smoothing"])

        return Training(
            weights=weights,
            optimizer=Adam(
                weights,
                one_minus_beta1=ones * 0.1,
                decay=settings["weight_decay"],
                clip=ones * 1e9,
                scale=layout.spread({**learns, **still, "4.": settings["head_ratio"]}),
            ),
            schedule=warmed_cosine(settings["lr"], len(order)),
            order=order,
            loss=loss,
            validate=lambda rows: residual_error(rows, validation, width=self.width, classes=self.classes),
        )

    def steps(self, shape: Mapping[str, int]) -> int:
        return self.train // shape["batch"] * self.epochs

    def work(self, shape: Mapping[str, int]) -> list[float]:
        return [1.0, residual_flops(self.width, shape["batch"], frozen=shape["frozen"]), 3.0 - shape["frozen"]]


# ------------------------------------------------------------------------------------------------- characters


@dataclass(frozen=True, eq=False)
class GruCode(Task):
    """`text` has indices of characters; its last tenth validates."""

    text: NDArray[np.uint8]
    device: torch.device
    sequences: int = 24_576
    length: int = 64
    validation: int = 768
    models: int = 24
    passes: int = 1

    name = "gru_code"
    data = "*.py of Python's standard library, in the order of their names (PSF licence)"
    work_says = "1, flops, layers"
    space = TableSpace(
        {
            "lr": real(1e-4, 1e-1, log=True),
            "decay": real(1e-3, 1.0, log=True),
            "one_minus_beta1": real(0.01, 0.5, log=True),
            "clip": real(0.01, 10.0, log=True),
            "dropout": real(0.0, 0.5),
            "layers": whole(1, 2),
            "width": choice(64, 112, 176, 256),
            "batch": choice(32, 64, 128),
        },
        shaping=("layers", "width", "batch"),
    )

    @property
    def says(self) -> str:
        return (
            f"validation loss (nats a character) of a GRU over characters of Python's standard library, "
            f"{self.sequences} sequences of {self.length} to train, {self.validation} to validate, Adam with clipped "
            f"gradients, learning rate falling exponentially to the share `decay`"
        )

    @cached_property
    def _text(self) -> Tensor:
        return torch.tensor(self.text.astype(np.int64)).to(self.device)

    @cached_property
    def _boundary(self) -> int:
        return len(self.text) * 9 // 10

    def _read(self, starts: Tensor) -> tuple[Tensor, Tensor]:
        """Characters (M, B, T) from `starts` (M, B), and those that follow them."""
        found = self._text[starts[..., None] + torch.arange(self.length + 1, device=self.device)]
        return found[..., :-1], found[..., 1:]

    def prepare(self) -> None:
        assert len(self._text) - self._boundary > self.validation + self.length

    def _training(self, settings: Tensors, shape: Mapping[str, int]) -> Training:
        layout = recurrent_layout(shape["width"], shape["layers"], len(CHARACTERS))
        models, layers = len(settings["lr"]), shape["layers"]
        weights = layout.fresh(models, self.device).uniform_(-(shape["width"] ** -0.5), shape["width"] ** -0.5)
        steps = self.steps(shape)
        order = torch.randint(self._boundary - self.length, (steps, models, shape["batch"]), device=self.device)
        share = torch.arange(steps, device=self.device)[:, None] / steps
        ones = torch.ones(models, device=self.device)
        held_out = torch.linspace(
            self._boundary, len(self.text) - self.length - 1, self.validation, device=self.device, dtype=torch.float64
        ).long()

        def nats(rows: Tensor, starts: Tensor, dropout: Tensor | None) -> Tensor:
            ids, following = self._read(starts)
            logits = recurrent_logits(layout.unpacked(rows), ids, layers=layers, dropout=dropout)
            logs = torch.log_softmax(logits, dim=-1)
            return -logs.gather(-1, following.transpose(1, 2)[..., None]).mean((1, 2, 3))

        def validate(rows: Tensor) -> Tensor:
            worst = float(np.log(len(CHARACTERS)))
            with torch.no_grad():
                found = nats(rows, held_out.expand(models, -1), None)
            return found.nan_to_num(worst, worst, worst).clamp(max=worst)

        return Training(
            weights=weights,
            optimizer=Adam(
                weights,
                one_minus_beta1=settings["one_minus_beta1"],
                decay=ones * 0.0,
                clip=settings["clip"],
                scale=torch.ones(1, 1, device=self.device),
            ),
            schedule=settings["lr"] * settings["decay"] ** share,
            order=order,
            loss=lambda rows, starts: nats(rows, starts, settings["dropout"]),
            validate=validate,
        )

    def steps(self, shape: Mapping[str, int]) -> int:
        return self.sequences // shape["batch"]

    def work(self, shape: Mapping[str, int]) -> list[float]:
        tokens = shape["batch"] * self.length
        flops = recurrent_flops(shape["width"], shape["layers"], tokens, len(CHARACTERS))
        return [1.0, flops, float(shape["layers"])]
