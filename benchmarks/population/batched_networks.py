"""Hundreds of small networks trained at once: every tensor has one row for each of them.

The gradient of the sum of all losses is, row by row, the gradient of each network's own loss, so that one backward pass
trains all of them. Settings of the optimizers are tensors with one number for each network.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

State = dict[str, Tensor]
"""Everything that training changes, as tensors (M, …) with a row for each network."""


def taken(state: Mapping[str, Tensor], rows: Tensor) -> State:
    """The state of some networks, or of one several times."""
    return {name: tensor[rows] for name, tensor in state.items()}


def fresh_layers(sizes: Sequence[int], seeds: Sequence[Sequence[int]], device: torch.device) -> State:
    """Weights of one network for each seed: uniform with He's variance, biases 0; the same on every device."""
    drawn: dict[str, list[np.ndarray]] = {}
    for seed in seeds:
        rng = np.random.default_rng(seed)
        for layer, (fan_in, fan_out) in enumerate(pairwise(sizes)):
            limit = (6.0 / fan_in) ** 0.5
            drawn.setdefault(f"w{layer}", []).append(rng.uniform(-limit, limit, (fan_in, fan_out)))
            drawn.setdefault(f"b{layer}", []).append(np.zeros((1, fan_out)))
    return {name: torch.tensor(np.stack(each), dtype=torch.float32, device=device) for name, each in drawn.items()}


def forward(weights: Mapping[str, Tensor], X: Tensor, *, dropout: Tensor | None = None, tanh: bool = False) -> Tensor:
    """Outputs (M, n, out) of inputs (M, n, in); `dropout` has each network's own share."""
    layers = sum(name.startswith("w") for name in weights)
    for layer in range(layers):
        X = torch.baddbmm(weights[f"b{layer}"], X, weights[f"w{layer}"])
        if layer == layers - 1:
            return X
        X = torch.tanh(X) if tanh else torch.relu(X)
        if dropout is not None:
            keep = 1.0 - dropout.view(-1, 1, 1)
            X = X * (torch.rand_like(X) < keep) / keep
    return X


def packed(weights: Mapping[str, Tensor]) -> Tensor:
    """All weights of a network in one row (M, P): an optimizer then needs few operations, not a few a layer."""
    return torch.cat([tensor.flatten(1) for tensor in weights.values()], dim=1)


def unpacked(rows: Tensor, like: Mapping[str, Tensor]) -> State:
    """The weights in `rows`, shaped as those they were packed from."""
    parts = torch.split(rows, [tensor[0].numel() for tensor in like.values()], dim=1)
    return {name: part.view(len(rows), *like[name].shape[1:]) for name, part in zip(like, parts, strict=True)}


def gradients(loss: Tensor, weights: Mapping[str, Tensor]) -> State:
    """Of each network's loss (M,) by its own weights."""
    found = torch.autograd.grad(loss.sum(), list(weights.values()))
    return dict(zip(weights, found, strict=True))


def zeros_beside(weights: Mapping[str, Tensor], prefix: str) -> State:
    """Moments of an optimizer that has not begun."""
    return {f"{prefix}{name}": torch.zeros_like(tensor) for name, tensor in weights.items()}


def sgd(state: State, found: Mapping[str, Tensor], *, lr: Tensor, momentum: Tensor, decay: Tensor) -> State:
    """One step with momentum ("m" moments) and weight decay, as PyTorch's SGD."""
    new = dict(state)
    for name, gradient in found.items():
        weight = state[name]
        m = _as(momentum, weight) * state[f"m{name}"] + gradient + _as(decay, weight) * weight
        new[f"m{name}"], new[name] = m, weight - _as(lr, weight) * m
    return new


def adam(state: State, found: Mapping[str, Tensor], *, lr: Tensor, beta2: float = 0.99) -> State:
    """One step of Adam ("m" and "v" moments, "count" of steps), β₁ = .9; a gradient's norm is cut at 1."""
    new = dict(state)
    count = new["count"] = state["count"] + 1.0
    norm = torch.stack([g.flatten(1).square().sum(1) for g in found.values()]).sum(0).sqrt()
    cut = 1.0 / norm.clamp(min=1.0)
    for name, gradient in found.items():
        g = gradient * _as(cut, gradient)
        m = new[f"m{name}"] = 0.9 * state[f"m{name}"] + 0.1 * g
        v = new[f"v{name}"] = beta2 * state[f"v{name}"] + (1.0 - beta2) * g.square()
        debias = lr * (1.0 - beta2**count).sqrt() / (1.0 - 0.9**count)
        new[name] = state[name] - _as(debias, g) * m / (v.sqrt() + 1e-8)
    return new


def _as(settings: Tensor, like: Tensor) -> Tensor:
    return settings.view(-1, *[1] * (like.dim() - 1))
