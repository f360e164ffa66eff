"""Tunes how images are augmented while a network learns: `python -m benchmarks.run online-augmentation`, on a GPU.

Two tasks. One has two arms, policies of augmentation, as the self-tuning networks of the CE-GP-UCB paper have. The
other has eight probabilities, one for each kind of augmentation, as the paper's SimCLR has. Both are at a scale that
allows seeds: a small residual network on 10 000 images of CIFAR-10, supervised, 60 rounds of an epoch each. The methods
and the report are those of `online-training`; runs on a CPU are possible and take an hour each.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.online.training_report import as_text, report
from benchmarks.online.training_suite import METHODS, PRICE, Game, result_of
from benchmarks.online.trainings import Task
from benchmarks.plan import matches
from benchmarks.population import cifar_data
from benchmarks.problems.data import missing_package
from benchmarks.records import read_records, results_path
from benchmarks.resuming import make_missing, suite_options
from farthing.space import Choice, Float, Space
from farthing.trials import Params

if TYPE_CHECKING:
    import torch
    from torch import Tensor

SUITE = "online-augmentation"
SEEDS, QUICK_SEEDS, FIRST_SEED = 5, 1, 3000
ROUNDS, QUICK_ROUNDS = 60, 12
TRAINED, VALIDATED, TESTED = 10_000, 5_000, 10_000
BATCH, TOGETHER = 250, 2500
"""Images of a step of training, and of one pass of measuring."""
RATE, MOMENTUM, DECAY = 0.1, 0.9, 5e-4
WIDTHS = (32, 64, 128)
KINDS = ("flip", "crop", "jitter", "gray", "blur", "cutout", "rotate", "solarize")
SPACE = Space({kind: Float(0.0, 1.0) for kind in KINDS})
USUAL = {
    "flip": 0.5,
    "crop": 1.0,
    "jitter": 0.0,
    "gray": 0.0,
    "blur": 0.0,
    "cutout": 0.5,
    "rotate": 0.0,
    "solarize": 0.0,
}
CONTRASTIVE = {
    "flip": 0.5,
    "crop": 1.0,
    "jitter": 0.8,
    "gray": 0.2,
    "blur": 0.5,
    "cutout": 0.5,
    "rotate": 0.5,
    "solarize": 0.5,
}
STARTS = {"usual": USUAL, "contrastive": CONTRASTIVE}
"""What is usual for supervised training on these images, and about what contrastive learning takes, which is too much
here."""
ARMS = Space({"policy": Choice(*STARTS)})
CHOSEN = (
    "keep the start",
    "default",
    "CE-GP-UCB",
    "CE-GP-UCB, every fifth round",
    "CE-GP-UCB.paper()",
    "random params",
)


class Learner:
    """A residual network in training: the learning rate falls along a cosine over the rounds, as is usual."""

    def __init__(self, seed: int, *, rounds: int) -> None:
        import torch

        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self._images, self._labels = _examples(self._device)
        self._rounds, self._seed = rounds, seed
        torch.manual_seed(seed)
        self._network = _network().to(self._device)
        self._optimizer = torch.optim.SGD(
            self._network.parameters(), lr=RATE, momentum=MOMENTUM, weight_decay=DECAY, nesterov=True
        )

    def train(self, round: int, params: Params) -> None:
        import torch
        from torch.nn.functional import cross_entropy

        random = torch.Generator(self._device).manual_seed(1_000_003 * self._seed + round)
        for group in self._optimizer.param_groups:
            group["lr"] = RATE * 0.5 * (1.0 + np.cos(np.pi * (round - 1) / self._rounds))
        self._network.train()
        order = torch.randperm(TRAINED, generator=random, device=self._device)
        probabilities = STARTS[params["policy"]] if "policy" in params else params
        for first in range(0, TRAINED, BATCH):
            batch = order[first : first + BATCH]
            images = augmented(self._images[batch], probabilities, random)
            with torch.autocast(self._device.type, torch.bfloat16):
                loss = cross_entropy(self._network(images), self._labels[batch])
            self._optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            self._optimizer.step()

    def validate(self, round: int) -> float:
        return self._accuracy(slice(TRAINED, TRAINED + VALIDATED))

    def test(self, round: int) -> float:
        return self._accuracy(slice(TRAINED + VALIDATED, None))

    def save(self) -> Any:
        return deepcopy((self._network.state_dict(), self._optimizer.state_dict()))

    def restore(self, saved: Any) -> None:
        network, optimizer = deepcopy(saved)
        self._network.load_state_dict(network)
        self._optimizer.load_state_dict(optimizer)

    def _accuracy(self, rows: slice) -> float:
        import torch

        self._network.eval()
        right = 0
        with torch.no_grad(), torch.autocast(self._device.type, torch.bfloat16):
            images, labels = self._images[rows], self._labels[rows]
            for first in range(0, len(labels), TOGETHER):
                said = self._network(images[first : first + TOGETHER]).argmax(dim=1)
                right += int((said == labels[first : first + TOGETHER]).sum())
        return right / len(labels)


@cache
def _examples(device: "torch.device") -> tuple["Tensor", "Tensor"]:
    """Images of mean 0 and deviation 1: those to train on, to validate on and to test on, one after the other."""
    import torch

    parts = [
        np.load(cifar_data.decoded(kind, count, workers=min(8, os.cpu_count() or 1)))
        for kind, count in (("train", TRAINED + VALIDATED), ("test", TESTED))
    ]
    images = torch.from_numpy(np.concatenate([part["images"] for part in parts])).to(device).float() / 255.0
    labels = torch.from_numpy(np.concatenate([part["labels"] for part in parts])).to(device)
    return ((images - 0.473) / 0.251).contiguous(memory_format=torch.channels_last), labels


def _network() -> "torch.nn.Module":
    from torch import nn

    class Block(nn.Module):
        def __init__(self, inputs: int, outputs: int) -> None:
            super().__init__()
            stride = 1 if inputs == outputs else 2
            self.first = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
            self.second = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
            self.norms = nn.ModuleList([nn.BatchNorm2d(inputs), nn.BatchNorm2d(outputs)])
            self.beside = nn.Identity() if stride == 1 else nn.Conv2d(inputs, outputs, 1, stride=2, bias=False)

        def forward(self, x: "Tensor") -> "Tensor":
            there = self.norms[0](x).relu()
            out: Tensor = self.beside(x) + self.second(self.norms[1](self.first(there)).relu())
            return out

    layers: list[nn.Module] = [nn.Conv2d(3, WIDTHS[0], 3, padding=1, bias=False), Block(WIDTHS[0], WIDTHS[0])]
    for narrow, wide in pairwise(WIDTHS):
        layers += [Block(narrow, wide), Block(wide, wide)]
    last = [nn.BatchNorm2d(WIDTHS[-1]), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(WIDTHS[-1], 10)]
    return nn.Sequential(*layers, *last)


def augmented(images: "Tensor", params: Params, random: "torch.Generator") -> "Tensor":
    """Each image is changed in each way with its probability, by amounts that are drawn for every image.

    The same numbers are drawn whatever the probabilities are, so that methods are paired.
    """
    import torch
    from torch.nn import functional

    count, device = len(images), images.device

    def drawn(*shape: int) -> "Tensor":
        return torch.rand(count, *shape, generator=random, device=device)

    def happens(kind: str) -> "Tensor":
        return torch.lt(drawn(1, 1, 1), params[kind]).to(images.dtype)

    def mixed(kind: str, changed: "Tensor") -> "Tensor":
        share = happens(kind)
        return share * changed + (1.0 - share) * images

    images = mixed("flip", images.flip(3))
    images = _moved(images, happens("crop"), happens("rotate"), drawn(3))
    contrast, brightness = 0.6 + 0.8 * drawn(1, 1, 1), 0.8 * (drawn(3, 1, 1) - 0.5)
    images = mixed("jitter", images * contrast + brightness)
    images = mixed("gray", images.mean(dim=1, keepdim=True).expand_as(images))
    images = mixed("blur", functional.avg_pool2d(images, 3, stride=1, padding=1))
    images = mixed("solarize", torch.where(images > 0.5, -images, images))
    corner = (24 * drawn(2)).long()
    rows = torch.arange(32, device=device)
    down, right = ((rows >= corner[:, i, None]) & (rows < corner[:, i, None] + 8) for i in range(2))
    hole = (down[:, None, :, None] & right[:, None, None, :]).to(images.dtype)
    return mixed("cutout", images * (1.0 - hole))


def _moved(images: "Tensor", crops: "Tensor", rotates: "Tensor", amounts: "Tensor") -> "Tensor":
    """Shifted by up to four pixels and turned by up to 20 degrees."""
    import torch
    from torch.nn import functional

    shift = (amounts[:, :2] - 0.5) * 0.5 * crops[:, :, 0, 0]
    angle = (amounts[:, 2:] - 0.5) * 0.7 * rotates[:, :, 0, 0]
    turned = torch.cat([angle.cos(), -angle.sin(), shift[:, :1], angle.sin(), angle.cos(), shift[:, 1:]], dim=1)
    grid = functional.affine_grid(turned.view(-1, 2, 3), list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, padding_mode="zeros", align_corners=False)


def _missing() -> str | None:
    return missing_package("torch") or cifar_data.missing()


def _task(name: str, space: Space, starts: Mapping[str, Params], *, rounds: int) -> Task:
    return Task(
        name,
        space,
        starts,
        lambda seed: Learner(seed, rounds=rounds),
        rate="",
        rounds=rounds,
        validated=VALIDATED,
        missing=_missing,
    )


def tasks(*, rounds: int) -> tuple[Task, ...]:
    return (
        _task("CIFAR-10 augmentations", SPACE, STARTS, rounds=rounds),
        _task("CIFAR-10, two policies", ARMS, {name: {"policy": name} for name in STARTS}, rounds=rounds),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    options = suite_options([SUITE], description=__doc__).parse_args(arguments)
    name = f"{SUITE}-quick" if options.quick else SUITE
    path = options.output or results_path(name)
    if reason := _missing():
        sys.stderr.write(f"left out: {SUITE}: {reason}\n")
        return 1
    seeds = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    games = [
        game
        for seed in range(FIRST_SEED, FIRST_SEED + seeds)
        for task in tasks(rounds=QUICK_ROUNDS if options.quick else ROUNDS)
        for start in task.starts
        for game in (Game(task, start, method, seed, PRICE) for method in CHOSEN)
        if matches(game.problem, options.problems or ()) and matches(game.method, options.methods or ())
    ]
    make_missing(path, games, result_of=lambda game: result_of(game, suite=name))
    records = [record for record in read_records(path) if record["suite"] == name]
    print(as_text(report(name, records, order=tuple(METHODS)), as_json=options.json))
    return 0
