"""The second live task: a GRU over the characters of Python's standard library; see benchmarks/live.py.

It is written as a user of PyTorch would: a module, Adam, clipped gradients, a rate that falls exponentially.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import log
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

import farthing as ft
from benchmarks.live_training import SEEDS_APART, LiveTask, Trained
from benchmarks.recording.data import CHARACTERS

LENGTH = 64
"""Characters of a sequence."""
VALIDATED = 768
"""Sequences, evenly over the last tenth of the text."""
WORST = log(len(CHARACTERS))
"""Nats a character of a guess; a network whose numbers overflowed guesses."""


@dataclass(frozen=True)
class Code(LiveTask):
    """`folder` has text.npy. The value is the validation loss in nats a character."""

    sequences: int = 12_288

    params: ClassVar[Mapping[str, ft.Float | ft.Int | ft.Choice]] = {
        "lr": ft.Float(1e-4, 1e-1, log=True),
        "decay": ft.Float(1e-3, 1.0, log=True),
        "one_minus_beta1": ft.Float(0.01, 0.5, log=True),
        "clip": ft.Float(0.01, 10.0, log=True),
        "dropout": ft.Float(0.0, 0.5),
        "layers": ft.Int(1, 2),
        "width": ft.Choice(64, 112, 176, 256, ordered=True),
        "batch": ft.Choice(32, 64, 128, ordered=True),
    }

    @property
    def data(self) -> list[int]:
        return [self.sequences, VALIDATED]

    def begin(self, params: Mapping[str, Any], *, seed: int, saved: Mapping[str, Any] | None = None) -> Trained:
        return Reading(self, params, seed=seed, saved=saved)


class Network(nn.Module):
    """Characters (B, T) to the logits of those that follow (B, T, characters)."""

    def __init__(self, *, width: int, layers: int, dropout: float) -> None:
        super().__init__()
        self._embed = nn.Embedding(len(CHARACTERS), width)
        self._read = nn.GRU(width, width, layers, batch_first=True, dropout=dropout if layers > 1 else 0.0)
        self._drop = nn.Dropout(dropout)
        self._say = nn.Linear(width, len(CHARACTERS))

    def forward(self, ids: Tensor) -> Tensor:
        said: Tensor = self._say(self._drop(self._read(self._embed(ids))[0]))
        return said


class Reading(Trained):
    """A training that can be paused after every epoch."""

    def __init__(
        self, task: Code, params: Mapping[str, Any], *, seed: int, saved: Mapping[str, Any] | None = None
    ) -> None:
        self.epoch = 0 if saved is None else int(saved["epoch"])
        self._seed = seed if saved is None else int(saved["seed"])
        self._text, device = text_of(task.folder)
        self._boundary = len(self._text) * 9 // 10
        self._batch, self._clip = int(params["batch"]), float(params["clip"])
        self._steps = task.sequences // self._batch
        self._rate, self._decay, self._whole = params["lr"], params["decay"], self._steps * task.epochs
        torch.manual_seed(self._seed)
        self._network = Network(
            width=int(params["width"]), layers=int(params["layers"]), dropout=float(params["dropout"])
        ).to(device)
        self._optimizer = torch.optim.Adam(
            self._network.parameters(),
            lr=self._rate,
            betas=(1.0 - params["one_minus_beta1"], 0.999),
            fused=device.type == "cuda",
        )
        if saved:
            self._network.load_state_dict(saved["network"])
            self._optimizer.load_state_dict(saved["optimizer"])

    def trained_on(self) -> float:
        torch.manual_seed(self._seed + SEEDS_APART * (self.epoch + 1))  # the same sequences after a pause
        starts = torch.randint(self._boundary - LENGTH, (self._steps, self._batch), device=self._text.device)
        self._network.train()
        for step in range(self._steps):
            share = (self.epoch * self._steps + step) / self._whole
            for group in self._optimizer.param_groups:
                group["lr"] = self._rate * self._decay**share
            self._optimizer.zero_grad()
            self._nats(starts[step]).backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(self._network.parameters(), self._clip)
            self._optimizer.step()
        self.epoch += 1
        return self._validated()

    def state(self) -> dict[str, Any]:
        return {
            "epoch": self.epoch,
            "seed": self._seed,
            "network": self._network.state_dict(),
            "optimizer": self._optimizer.state_dict(),
        }

    def _nats(self, starts: Tensor) -> Tensor:
        ids = self._text[starts[:, None] + torch.arange(LENGTH + 1, device=starts.device)]
        return functional.cross_entropy(self._network(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())

    def _validated(self) -> float:
        first, last = self._boundary, len(self._text) - LENGTH - 1
        starts = torch.linspace(first, last, VALIDATED, dtype=torch.float64).long().to(self._text.device)
        self._network.eval()
        with torch.no_grad():
            found = self._nats(starts)
        return float(found.nan_to_num(WORST, WORST, WORST).clamp(max=WORST))


@cache
def text_of(folder: Path) -> tuple[Tensor, torch.device]:
    """Read once by every process."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.tensor(np.load(folder / "text.npy").astype(np.int64)).to(device), device
