"""Records two-layer networks on Fashion-MNIST at five training sizes: the first panel of the taKG paper's Figure 2.

`python -m benchmarks.recording.mlp_fashion --keep FASHION_FOLDER IMAGES.npz` keeps the images that are needed, and
`--images IMAGES.npz --out TABLE.npz` trains: all configurations of one batch size together, each with its own params,
weights and order of examples. The paper has MNIST, 5 · 10⁴ images; the space is its own (section 5.4.2). Its optimiser
is not said: here it is SGD without momentum. A network whose numbers overflowed guesses.
"""

import argparse
import gzip
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

TRAIN, VALIDATION, PIXELS, CLASSES = 20_000, 5_000, 784, 10
EPOCHS = 20
SIZES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1)
BATCHES = (32, 64, 128, 256, 512, 1024)
UNITS = (100, 1000)
MOST_DROPPED = 0.95
"""A dropout rate of 1 leaves nothing to learn from."""


@dataclass(frozen=True, eq=False)
class Pictures:
    """Pixels (n, 784) of mean 0 and deviation 1, and labels (n,)."""

    x: Tensor
    y: Tensor


def keep(folder: Path, target: Path) -> None:
    """The first images and labels, in one file of 10 MB."""
    target.parent.mkdir(parents=True, exist_ok=True)
    count = TRAIN + VALIDATION
    with gzip.open(folder / "train-images-idx3-ubyte.gz") as file:
        images = np.frombuffer(file.read(), dtype=np.uint8, offset=16).reshape(-1, PIXELS)[:count]
    with gzip.open(folder / "train-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), dtype=np.uint8, offset=8)[:count]
    np.savez_compressed(target, images=images, labels=labels)


def pictures(path: Path, device: torch.device, *, train: int, validation: int) -> tuple[Pictures, Pictures]:
    with np.load(path) as archive:
        x = torch.tensor(archive["images"][: train + validation]).to(device).float() / 255.0
        y = torch.tensor(archive["labels"][: train + validation].astype(np.int64)).to(device)
    x = (x - x[:train].mean()) / x[:train].std()
    return Pictures(x[:train], y[:train]), Pictures(x[train:], y[train:])


def drawn(rng: np.random.Generator, models: int) -> dict[str, NDArray[np.float64]]:
    """Random params of the paper's space, batch sizes aside."""
    low, high = UNITS
    return {
        "lr": 10.0 ** rng.uniform(-6.0, 0.0, models),
        "dropout": rng.uniform(0.0, 1.0, models),
        "units_1": rng.integers(low, high + 1, models).astype(float),
        "units_2": rng.integers(low, high + 1, models).astype(float),
    }


class Networks:
    """M two-layer networks side by side, padded to the most units; what is padded is always zero."""

    def __init__(self, settings: dict[str, NDArray[np.float64]], device: torch.device) -> None:
        given = {name: torch.tensor(column).float().to(device) for name, column in settings.items()}
        self.lr, self.kept = given["lr"], 1.0 - given["dropout"].clamp(max=MOST_DROPPED)
        M, width = len(self.lr), int(max(given["units_1"].max(), given["units_2"].max()))
        units = torch.arange(width, device=device)
        self.masks = [(units < given[name][:, None]).float()[:, None, :] for name in ("units_1", "units_2")]
        fans = [torch.full_like(self.lr, PIXELS), given["units_1"], given["units_2"]]
        shapes = [(PIXELS, width), (width, width), (width, CLASSES)]
        self.weights = [
            (torch.randn(M, *shape, device=device) * (2.0 / fan)[:, None, None].sqrt()).requires_grad_()
            for shape, fan in zip(shapes, fans, strict=True)
        ]
        self.offsets = [torch.zeros(M, 1, n, device=device, requires_grad=True) for n in (width, width, CLASSES)]

    def logits(self, x: Tensor, *, learning: bool) -> Tensor:
        """(M, B, classes) of pixels (M, B, 784)."""
        for W, b, mask in zip(self.weights[:2], self.offsets[:2], self.masks, strict=True):
            x = torch.relu(torch.baddbmm(b, x, W)) * mask
            if learning:
                kept = self.kept[:, None, None]
                x = x * (torch.rand(x.shape, device=x.device) < kept) / kept
        return torch.baddbmm(self.offsets[2], x, self.weights[2])

    def step(self, x: Tensor, y: Tensor) -> None:
        loss = torch.nn.functional.cross_entropy(self.logits(x, learning=True).transpose(1, 2), y, reduction="none")
        leaves = [*self.weights, *self.offsets]
        gradients = torch.autograd.grad(loss.mean(1).sum(), leaves)
        with torch.no_grad():
            for leaf, gradient in zip(leaves, gradients, strict=True):
                leaf -= self.lr[:, None, None] * gradient

    @torch.no_grad()
    def error(self, held_out: Pictures, *, chunk: int = 500) -> Tensor:
        """The share of wrong answers (M,)."""
        M = len(self.lr)
        wrong, finite = torch.zeros(M, device=self.lr.device), torch.ones(M, dtype=torch.bool, device=self.lr.device)
        for start in range(0, len(held_out.y), chunk):
            x, y = held_out.x[start : start + chunk], held_out.y[start : start + chunk]
            logits = self.logits(x.expand(M, *x.shape), learning=False)
            wrong += (logits.argmax(-1) != y).sum(1)
            finite &= logits.isfinite().all(-1).all(-1)
        return torch.where(finite, wrong / len(held_out.y), 1.0 - 1.0 / CLASSES)


def curves(networks: Networks, train: Pictures, held_out: Pictures, *, batch: int, epochs: int) -> NDArray[np.float32]:
    """Validation errors (M, epochs) after each pass over the training images, each in an order of its own."""
    M, n = len(networks.lr), len(train.y)
    batch = min(batch, n)
    found = []
    for _ in range(epochs):
        order = torch.rand(M, n, device=train.x.device).argsort(1)
        for start in range(0, n - batch + 1, batch):
            rows = order[:, start : start + batch]
            networks.step(train.x[rows], train.y[rows])
        found.append(networks.error(held_out).cpu().numpy())
    return np.stack(found, axis=1).astype(np.float32)


def record(images: Path, out: Path, *, models: int, seconds: float, sizes: Sequence[float], train: int) -> None:
    """Trains group by group; what is done is in the file after every batch size."""
    torch.set_float32_matmul_precision("high")
    device, began = torch.device("cuda" if torch.cuda.is_available() else "cpu"), time.time()
    every, held_out = pictures(images, device, train=train, validation=min(VALIDATION, train))
    rows: dict[str, list[NDArray[Any]]] = {}
    longest = 0.0
    for number, batch in enumerate(BATCHES[::-1]):
        started = time.time()
        if started + 2.2 * longest > began + seconds:
            print(f"no time for batches of {batch}", flush=True)
            continue
        settings = drawn(np.random.default_rng([36, number]), models)
        found = []
        for size in sizes:
            torch.manual_seed(1000 * number + round(1 / size))
            part = Pictures(every.x[: round(size * train)], every.y[: round(size * train)])
            found.append(curves(Networks(settings, device), part, held_out, batch=batch, epochs=EPOCHS))
            print(
                f"batch {batch} size {size:g}: {time.time() - started:.1f} s, best {found[-1][:, -1].min():.4f}",
                flush=True,
            )
        columns: dict[str, NDArray[Any]] = {
            "curves": np.stack(found, axis=1),
            **settings,
            "batch": np.full(models, float(batch)),
        }
        for name, column in columns.items():
            rows.setdefault(name, []).append(column)
        meta = {"sizes": list(sizes), "epochs": EPOCHS, "train": train, "torch": torch.__version__}
        table = {name: np.concatenate(parts).astype(np.float32) for name, parts in rows.items()}
        np.savez_compressed(out, **table, meta=np.array(json.dumps(meta)))  # type: ignore[arg-type]
        longest = max(longest, time.time() - started)
    print(f"{time.time() - began:.0f} s in all", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path, nargs=2)
    parser.add_argument("--images", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--models", type=int, default=160, help="configurations of each batch size")
    parser.add_argument("--seconds", type=float, default=500.0)
    parser.add_argument("--tiny", action="store_true", help="small enough for a test")
    given = parser.parse_args()
    if given.keep:
        keep(*given.keep)
    else:
        train = 512 if given.tiny else TRAIN
        record(given.images, given.out, models=given.models, seconds=given.seconds, sizes=SIZES, train=train)


if __name__ == "__main__":
    main()
