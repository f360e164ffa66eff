"""Many trainings of one shape at once: every tensor has one row for each of them.

The gradient of the sum of all losses is, row by row, the gradient of each network's own loss. All weights of a network
are one row of `weights`, so that an optimizer needs few operations. On a GPU one step is captured as a graph and
replayed, because thousands of small operations would otherwise wait for Python.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

POINTS = 20


class Optimizer(Protocol):
    def update(self, weights: Tensor, gradient: Tensor, lr: Tensor) -> None:
        """Change `weights` (M, P) in place; `lr` is (M, 1)."""
        ...

    def state(self) -> list[Tensor]: ...


class Nesterov:
    """SGD with Nesterov's momentum and weight decay, as PyTorch's."""

    def __init__(self, weights: Tensor, *, momentum: Tensor, decay: Tensor) -> None:
        self._velocity = torch.zeros_like(weights)
        self._momentum, self._decay = momentum[:, None], decay[:, None]

    def update(self, weights: Tensor, gradient: Tensor, lr: Tensor) -> None:
        gradient = torch.addcmul(gradient, weights, self._decay)
        self._velocity.mul_(self._momentum).add_(gradient)
        weights.sub_(lr * torch.addcmul(gradient, self._velocity, self._momentum))

    def state(self) -> list[Tensor]:
        return [self._velocity]


class Adam:
    """AdamW; a gradient's norm is cut at `clip`, and `scale` (M, P) multiplies the learning rate of each weight."""

    def __init__(
        self,
        weights: Tensor,
        *,
        one_minus_beta1: Tensor,
        decay: Tensor,
        clip: Tensor,
        scale: Tensor,
        beta2: float = 0.999,
    ) -> None:
        self._m, self._v = torch.zeros_like(weights), torch.zeros_like(weights)
        self._count = torch.zeros((), device=weights.device)
        self._gap, self._decay, self._clip = one_minus_beta1[:, None], decay[:, None], clip[:, None]
        self._scale, self._beta2 = scale, beta2

    def update(self, weights: Tensor, gradient: Tensor, lr: Tensor) -> None:
        norm = gradient.norm(dim=1, keepdim=True)
        gradient = gradient * (self._clip / norm).clamp(max=1.0)
        self._count.add_(1.0)
        self._m.lerp_(gradient, self._gap.expand_as(gradient))
        self._v.mul_(self._beta2).addcmul_(gradient, gradient, value=1.0 - self._beta2)
        debiased = (1.0 - self._beta2**self._count).sqrt() / (1.0 - (1.0 - self._gap) ** self._count)
        move = torch.addcmul(debiased * self._m / (self._v.sqrt() + 1e-8), weights, self._decay)
        weights.sub_(lr * self._scale * move)

    def state(self) -> list[Tensor]:
        return [self._m, self._v, self._count]


@dataclass(frozen=True, eq=False)
class Training:
    """`schedule` (S, M) has the learning rates and `order` (S, M, B) the examples of each step.

    `loss` takes the weights and the examples of one step; `validate` takes the weights. Both return (M,).
    """

    weights: Tensor
    optimizer: Optimizer
    schedule: Tensor
    order: Tensor
    loss: Callable[[Tensor, Tensor], Tensor]
    validate: Callable[[Tensor], Tensor]

    @property
    def steps(self) -> int:
        return len(self.schedule)


def stepper(training: Training) -> Callable[[], None]:
    """A function that takes the next step; from the first, however often this is called before."""
    counter = torch.zeros(1, dtype=torch.long, device=training.weights.device)

    def step() -> None:
        lr = training.schedule.index_select(0, counter)[0][:, None]
        leaf = training.weights.detach().requires_grad_()
        loss = training.loss(leaf, training.order.index_select(0, counter)[0])
        (gradient,) = torch.autograd.grad(loss.sum(), leaf)
        training.optimizer.update(training.weights, gradient, lr)
        counter.add_(1)

    return _captured(step, [training.weights, counter, *training.optimizer.state()]) if counter.is_cuda else step


def _captured(step: Callable[[], None], state: list[Tensor]) -> Callable[[], None]:
    """The step as a graph; warming up leaves no trace in `state`."""
    before = [tensor.clone() for tensor in state]
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        step()
        step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    for tensor, old in zip(state, before, strict=True):
        tensor.copy_(old)

    def replay(kept: Callable[[], None] = step) -> None:
        """A graph does not keep the tensors alive that it works on: the step does, and this function the step."""
        graph.replay()

    return replay


def curves(training: Training) -> NDArray[np.float32]:
    """What `validate` says after each twentieth of the steps, (M, 20)."""
    step = stepper(training)
    measured = []
    marks = np.rint(np.linspace(0, training.steps, POINTS + 1)).astype(int)
    for start, end in pairwise(marks):
        for _ in range(start, end):
            step()
        measured.append(training.validate(training.weights))
    return torch.stack(measured, dim=1).cpu().numpy().astype(np.float32)


def shuffled(examples: int, *, models: int, batch: int, epochs: int, device: torch.device) -> Tensor:
    """Orders (S, M, B) in which every model sees all `examples` once an epoch, each in its own order."""
    steps = examples // batch
    parts = []
    for _ in range(epochs):
        order = torch.rand(models, examples, device=device).argsort(1)[:, : steps * batch]
        parts.append(order.view(models, steps, batch).transpose(0, 1))
    return torch.cat(parts).contiguous()


def one_cycle(max_lr: Tensor, pct_start: Tensor, steps: int) -> Tensor:
    """PyTorch's OneCycleLR with cosines, from lr / 25 up and down to lr / 250 000, (S, M)."""
    t = torch.arange(steps, device=max_lr.device)[:, None].float()
    peak = (pct_start * steps - 1.0).clamp(min=1e-6)
    rising, falling = (t / peak).clamp(0.0, 1.0), ((t - peak) / (steps - 1.0 - peak)).clamp(0.0, 1.0)
    up = max_lr / 25 + (max_lr - max_lr / 25) * (1.0 - torch.cos(torch.pi * rising)) / 2
    down = max_lr / 250_000 + (max_lr - max_lr / 250_000) * (1.0 + torch.cos(torch.pi * falling)) / 2
    return torch.where(t <= peak, up, down)


def warmed_cosine(lr: Tensor, steps: int, *, warmup: float = 0.1) -> Tensor:
    """Linear up during the share `warmup`, then a cosine to zero, (S, M)."""
    t = (torch.arange(steps, device=lr.device)[:, None].float() + 1.0) / steps
    cosine = (1.0 + torch.cos(torch.pi * ((t - warmup) / (1.0 - warmup)).clamp(0.0, 1.0))) / 2
    return lr * torch.where(t < warmup, t / warmup, cosine)
