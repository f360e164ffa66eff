"""Trains the members of one population on CIFAR-10, several at once on one GPU.

The network is the one that the paper names (zhenye-na's for CIFAR-10): three blocks of two convolutions, then three
linear layers. On a GPU the step of a member is captured as a CUDA graph and the members' graphs are launched in turn on
streams of their own, because at batches of 4 to 128 launching would take longer than computing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from farthing.integrations.pytorch import Knobs
from farthing.trials import Params

PADDING, SIZE = 4, 32
MEANS, DEVIATIONS = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
EAGER_STEPS = 3
"""Real steps that are made before a graph is captured: libraries choose their kernels in them."""

State = dict[str, Any]


@dataclass(frozen=True)
class Images:
    """Pictures and labels on the device."""

    pictures: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)


class Data:
    """Half of the training images to learn from, some of the other half to decide by, the test images to judge by."""

    def __init__(self, files: Mapping[str, Path], *, train: int, validation: int, device: str) -> None:
        with np.load(files["train"]) as archive:
            pictures, labels = archive["images"], archive["labels"]
        with np.load(files["test"]) as archive:
            test = archive["images"], archive["labels"]
        self.device = device
        padded = np.pad(pictures[:train], ((0, 0), (0, 0), (PADDING, PADDING), (PADDING, PADDING)))
        self.train = self._images(padded, labels[:train])
        self.validation = self._images(pictures[train : train + validation], labels[train : train + validation])
        self.test = self._images(*test)
        self.mean = torch.tensor(MEANS, device=device).view(1, 3, 1, 1) * 255
        self.deviation = torch.tensor(DEVIATIONS, device=device).view(1, 3, 1, 1) * 255

    def normalised(self, pictures: Tensor) -> Tensor:
        return ((pictures.float() - self.mean) / self.deviation).contiguous(memory_format=torch.channels_last)

    def _images(self, pictures: Any, labels: Any) -> Images:
        return Images(torch.from_numpy(pictures).to(self.device), torch.from_numpy(labels).to(self.device))


def network() -> nn.Sequential:
    return nn.Sequential(
        *_block(3, 32, 64),
        *_block(64, 128, 128),
        nn.Dropout2d(0.05),
        *_block(128, 256, 256),
        nn.Flatten(),
        nn.Dropout(0.1),
        nn.Linear(4096, 1024),
        nn.ReLU(),
        nn.Linear(1024, 512),
        nn.ReLU(),
        nn.Dropout(0.1),
        nn.Linear(512, 10),
    )


def _block(inputs: int, middle: int, outputs: int) -> list[nn.Module]:
    return [
        nn.Conv2d(inputs, middle, 3, padding=1),
        nn.BatchNorm2d(middle),
        nn.ReLU(),
        nn.Conv2d(middle, outputs, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
    ]


class Member:
    """One member in training: a number of epochs from its state, under the given params."""

    def __init__(
        self, data: Data, params: Params, *, state: State | None, epochs: int, seed: int, uses_graphs: bool = True
    ) -> None:
        self.data = data
        self.is_on_gpu = data.device.startswith("cuda")
        self.uses_graphs = uses_graphs and self.is_on_gpu
        self.stream: Any = torch.cuda.Stream() if self.is_on_gpu else None  # type: ignore[no-untyped-call]
        torch.manual_seed(seed)
        self.model = network().to(data.device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.optimizer = torch.optim.Adam(
            self.model.parameters(), lr=1e-3, capturable=self.is_on_gpu, fused=self.is_on_gpu
        )
        if state is not None:
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
        self.batch = int(params["batch"])
        self._apply(params)
        self.steps = epochs * (len(data.train) // self.batch)
        self.plan = self._plan(epochs, seed)
        self.cursor = torch.arange(self.batch, device=data.device)
        self.graph: Any = None

    def _apply(self, params: Params) -> None:
        dropouts = [layer for layer in self.model if isinstance(layer, nn.Dropout)]
        knobs = Knobs().optimizer(self.optimizer, "weight_decay", lr="lr", momentum="betas[0]")
        knobs.dropout("dropout_1", dropouts[0]).dropout("dropout_2", dropouts[1])
        knobs.apply({name: value for name, value in params.items() if name != "batch"})

    def _plan(self, epochs: int, seed: int) -> Tensor:
        """For each example in turn: which image, how far it is moved in two directions, whether it is mirrored."""
        rng = np.random.default_rng([seed, 1])
        used = len(self.data.train) // self.batch * self.batch
        order = np.concatenate([rng.permutation(len(self.data.train))[:used] for _ in range(epochs)])
        moves = rng.integers(0, 2 * PADDING + 1, (2, len(order)))
        mirrored = rng.integers(0, 2, (1, len(order)))
        return torch.from_numpy(np.concatenate([order[None], moves, mirrored])).to(self.data.device)

    def prepare(self) -> None:
        """The first steps, and the graph of the others."""
        for _ in range(min(EAGER_STEPS, self.steps)):
            self.step()
            self.steps -= 1
        if self.uses_graphs and self.steps:
            self.optimizer.zero_grad(set_to_none=True)
            torch.cuda.current_stream().synchronize()
            self.graph = torch.cuda.CUDAGraph()
            self.graph.capture_begin(capture_error_mode="thread_local")
            self.step()
            self.graph.capture_end()

    def advance(self) -> None:
        if self.graph is not None:
            self.graph.replay()
        else:
            self.step()
        self.steps -= 1

    def step(self) -> None:
        pictures, labels = self._examples()
        with torch.autocast("cuda", torch.bfloat16, enabled=self.is_on_gpu, cache_enabled=False):
            loss = nn.functional.cross_entropy(self.model(pictures), labels)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.cursor += self.batch

    def _examples(self) -> tuple[Tensor, Tensor]:
        which, down, right, mirrored = self.plan[:, self.cursor]
        across = torch.arange(SIZE, device=self.data.device)
        columns = torch.where(mirrored[:, None] == 1, SIZE - 1 - across, across) + right[:, None]
        rows = across + down[:, None]
        colours = torch.arange(3, device=self.data.device)
        pictures = self.data.train.pictures[
            which[:, None, None, None], colours[:, None, None], rows[:, None, :, None], columns[:, None, None, :]
        ]
        return self.data.normalised(pictures), self.data.train.labels[which]

    def accuracy(self, images: Images) -> float:
        self.model.eval()
        right = 0
        with torch.no_grad(), torch.autocast("cuda", torch.bfloat16, enabled=self.is_on_gpu):
            for start in range(0, len(images), 2500):
                scores = self.model(self.data.normalised(images.pictures[start : start + 2500]))
                right += int((scores.argmax(1) == images.labels[start : start + 2500]).sum())
        self.model.train()
        return right / len(images)

    def state(self) -> State:
        """A copy that another member may begin with."""
        return {"model": _copied(self.model.state_dict()), "optimizer": _copied(self.optimizer.state_dict())}


def train_together(members: Sequence[Member]) -> None:
    """Trains all of them to their ends, a step of each in turn."""
    for member in members:
        if member.stream is not None:
            member.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(member.stream):
            member.prepare()
    while waiting := [member for member in members if member.steps > 0]:
        for member in waiting:
            with torch.cuda.stream(member.stream):
                member.advance()
    if any(member.stream is not None for member in members):
        torch.cuda.synchronize()


def _copied(state: Any) -> Any:
    if isinstance(state, Tensor):
        return state.detach().clone()
    if isinstance(state, Mapping):
        return {key: _copied(value) for key, value in state.items()}
    return [_copied(value) for value in state] if isinstance(state, list) else state
