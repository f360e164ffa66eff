"""A residual network and a recurrent one, stacked: inputs and weights have one row for each network."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

Weights = Mapping[str, Tensor]


@dataclass(frozen=True)
class Layout:
    """Where each layer lies in a row of weights: `shapes` by name, and the deviation of its first weights."""

    shapes: Mapping[str, tuple[int, ...]]
    deviations: Mapping[str, float]

    @property
    def sizes(self) -> list[int]:
        """Of each layer; the last entry fills the row to a multiple of 8, for aligned rows."""
        sizes = [torch.Size(shape).numel() for shape in self.shapes.values()]
        return [*sizes, -sum(sizes) % 8]

    def unpacked(self, rows: Tensor) -> dict[str, Tensor]:
        parts = torch.split(rows, self.sizes, dim=1)
        return {
            name: part.view(len(rows), *shape)
            for (name, shape), part in zip(self.shapes.items(), parts[:-1], strict=True)
        }

    def fresh(self, models: int, device: torch.device) -> Tensor:
        """First weights (M, P): normal; gains are 1, biases 0."""
        rows = torch.randn(models, sum(self.sizes), device=device)
        for name, part in zip([*self.shapes, "filler"], torch.split(rows, self.sizes, dim=1), strict=True):
            part.mul_(self.deviations.get(name, 0.0))
            if name.endswith("gain"):
                part.fill_(1.0)
        return rows

    def spread(self, values: Mapping[str, Tensor]) -> Tensor:
        """A row (M, P) with the value (M,) of the first prefix of a layer's name among `values`."""
        names = [*self.shapes, list(self.shapes)[-1]]
        each = [next(v for prefix, v in values.items() if name.startswith(prefix)) for name in names]
        return torch.cat([v[:, None].expand(-1, size) for v, size in zip(each, self.sizes, strict=True)], dim=1)


# ------------------------------------------------------------------------------------------------- convolutions


def columns(x: Tensor) -> Tensor:
    """Each pixel's 3 × 3 neighbours of (M, B, H, W, C), as (M, B · H · W, 9 C)."""
    M, B, H, W, _ = x.shape
    wide = functional.pad(x, (0, 0, 1, 1, 1, 1)).view(torch.int64)  # several channels in one copy
    c, strides = wide.shape[-1], wide.stride()
    view = wide.as_strided((M, B, H, W, 3, 3 * c), (*strides[:4], strides[2], 1))
    return view.reshape(M, B * H * W, 9 * c).view(x.dtype)


class Conv3x3(torch.autograd.Function):
    """Of (M, B, H, W, C) with (M, 9 C, D); one product of matrices for each network."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        neighbours = columns(x)
        ctx.save_for_backward(neighbours, weight)
        return torch.bmm(neighbours, weight).view(*x.shape[:4], -1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None]:
        neighbours, weight = ctx.saved_tensors
        out = grads[0].contiguous()
        M, D = len(out), out.shape[-1]
        by_weight = torch.bmm(neighbours.transpose(1, 2), out.view(M, -1, D)) if ctx.needs_input_grad[1] else None
        by_input = None
        if ctx.needs_input_grad[0]:
            turned = weight.reshape(M, 3, 3, -1, D).flip(1, 2).transpose(3, 4).reshape(M, 9 * D, -1)
            by_input = torch.bmm(columns(out), turned).view(*out.shape[:4], -1)
        return by_input, by_weight


CHANNELS = 16
"""Of an input pixel: 2 × 2 pixels of 3 colours, filled with zeros."""
SIDE = 16
STAGES = 3


def residual_layout(width: int, classes: int) -> Layout:
    """Parts 0 to 4 are the stem, three stages of one block each with twice the channels, and the head."""
    shapes: dict[str, tuple[int, ...]] = {"0.stem": (9 * CHANNELS, width)}
    for stage in range(STAGES):
        C = width * 2**stage
        if stage:
            shapes[f"{stage + 1}.down"] = (2 * C, C)
        for conv in "ab":
            shapes[f"{stage + 1}.{conv}.gain"] = shapes[f"{stage + 1}.{conv}.bias"] = (C,)
            shapes[f"{stage + 1}.{conv}.conv"] = (9 * C, C)
    last = width * 2 ** (STAGES - 1)
    shapes |= {"4.gain": (last,), "4.bias": (last,), "4.out": (last, classes), "4.offset": (classes,)}
    deviations = {name: (2.0 / shape[0]) ** 0.5 for name, shape in shapes.items() if len(shape) == 2}
    return Layout(shapes, {**deviations, "4.out": (1.0 / last) ** 0.5})


def residual_logits(weights: Weights, x: Tensor, *, frozen: int = 0, dropout: Tensor | None = None) -> Tensor:
    """(M, B, classes) of (M, B, 16, 16, 16); the stem and the first `frozen` stages get no gradient if it is not 0."""
    with torch.set_grad_enabled(torch.is_grad_enabled() and frozen == 0):
        x = _conv(x, weights["0.stem"])
    for stage in range(1, STAGES + 1):
        with torch.set_grad_enabled(torch.is_grad_enabled() and stage > frozen):
            x = _stage(weights, x, stage)
    pooled = _normalised(x, weights["4.gain"], weights["4.bias"]).mean((2, 3))
    if dropout is not None:
        pooled = _dropped(pooled, dropout)
    return torch.baddbmm(weights["4.offset"][:, None], pooled, weights["4.out"]).float()


def _conv(x: Tensor, weight: Tensor) -> Tensor:
    found: Tensor = Conv3x3.apply(x, weight)  # type: ignore[no-untyped-call]
    return found


def _stage(weights: Weights, x: Tensor, stage: int) -> Tensor:
    if stage > 1:
        M, B, H, W, C = x.shape
        quads = x.view(M, B, H // 2, 2, W // 2, 2, C).transpose(3, 4).reshape(M, B * H * W // 4, 4 * C)
        x = torch.bmm(quads, weights[f"{stage}.down"]).view(M, B, H // 2, W // 2, -1)
    branch = x
    for conv in "ab":
        branch = _normalised(branch, weights[f"{stage}.{conv}.gain"], weights[f"{stage}.{conv}.bias"])
        branch = _conv(branch, weights[f"{stage}.{conv}.conv"])
    return x + branch


def _normalised(x: Tensor, gain: Tensor, bias: Tensor) -> Tensor:
    """Group normalisation with one group, and a ReLU."""
    flat = functional.layer_norm(x, x.shape[2:])
    return torch.relu(torch.addcmul(bias[:, None, None, None], flat, gain[:, None, None, None]))


def _dropped(x: Tensor, share: Tensor) -> Tensor:
    keep = (1.0 - share).view(-1, *[1] * (x.dim() - 1))
    return x * ((torch.rand(x.shape, device=x.device) < keep) / keep).to(x.dtype)


def residual_flops(width: int, batch: int, *, frozen: int = 0) -> float:
    """Of one step: a forward pass costs one unit, the gradients of what learns two more."""
    stem = SIDE**2 * 9 * CHANNELS * width
    total = float(stem * (1 if frozen else 3))
    for stage in range(1, STAGES + 1):
        C, pixels = width * 2 ** (stage - 1), (SIDE // 2 ** (stage - 1)) ** 2
        forward = pixels * (18 * C * C + (2 * C * C if stage > 1 else 0))
        total += forward * (3 if stage > frozen else 1)
    return 2.0 * batch * total


# ------------------------------------------------------------------------------------------------- recurrence


def recurrent_layout(width: int, layers: int, characters: int) -> Layout:
    shapes: dict[str, tuple[int, ...]] = {}
    for layer in range(layers):
        shapes[f"{layer}.in"] = (width if layer else characters, 3 * width)
        shapes[f"{layer}.bias"] = (3 * width,)
        shapes[f"{layer}.again"] = (width, 3 * width)
    shapes |= {"out": (width, characters), "offset": (characters,)}
    return Layout(shapes, {})


def recurrent_logits(weights: Weights, ids: Tensor, *, layers: int, dropout: Tensor | None = None) -> Tensor:
    """(M, T, B, characters) of a GRU over characters (M, B, T), from a state of zeros."""
    M, B, T = ids.shape
    characters = weights["offset"].shape[1]
    one_hot = ids.transpose(1, 2)[..., None] == torch.arange(characters, device=ids.device)
    x = one_hot.to(weights["out"].dtype).reshape(M, T * B, characters)
    for layer in range(layers):
        gates = torch.baddbmm(weights[f"{layer}.bias"][:, None], x, weights[f"{layer}.in"]).view(M, T, B, -1)
        states = _states(gates.unbind(1), weights[f"{layer}.again"])
        x = torch.stack(states, dim=1).view(M, T * B, -1)
        if dropout is not None:
            x = _dropped(x, dropout)
    return torch.baddbmm(weights["offset"][:, None], x, weights["out"]).view(M, T, B, characters)


def _states(gates: tuple[Tensor, ...], again: Tensor) -> list[Tensor]:
    width = again.shape[1]
    h = torch.zeros_like(gates[0][..., :width])
    states = []
    for gate in gates:
        from_input, new_input = torch.split(gate, [2 * width, width], dim=-1)
        from_state, new_state = torch.split(torch.bmm(h, again), [2 * width, width], dim=-1)
        reset, keep = torch.sigmoid(from_input + from_state).chunk(2, dim=-1)
        h = torch.lerp(torch.tanh(torch.addcmul(new_input, reset, new_state)), h, keep)
        states.append(h)
    return states


def recurrent_flops(width: int, layers: int, tokens: int, characters: int) -> float:
    """Of one step over that many characters, forward and backward."""
    inner = 3 * width * (characters + width) + (layers - 1) * 6 * width * width
    return 6.0 * tokens * (inner + width * characters)
