"""The third of `benchmarks.first_hour`: a network with one hidden layer on Fashion-MNIST, in PyTorch."""

import gzip
from functools import cache
from typing import Any

import numpy as np

from benchmarks.problems.data import data_folder, missing_file, missing_package
from farthing import Fidelity, Float, Int, RunningTrial, Space

TRAINED, VALIDATED, HIDDEN = 10_000, 4_000, 64
IMAGES, LABELS = "fashion_mnist/train-images-idx3-ubyte.gz", "fashion_mnist/train-labels-idx1-ubyte.gz"
SPACE = Space(
    {
        "rate": Float(1e-4, 1.0, log=True),
        "momentum": Float(0.0, 0.98),
        "decay": Float(1e-6, 1e-1, log=True),
        "dropout": Float(0.0, 0.8),
        "batch": Int(16, 256, log=True),
    },
    fidelities={"epochs": Fidelity(1, 16, integer=True, trace=True)},
)


def missing() -> str | None:
    return missing_package("torch") or missing_file(IMAGES) or missing_file(LABELS)


@cache
def images() -> tuple[Any, Any]:
    """Of 14 × 14 pixels, and their classes, as tensors."""
    import torch

    with gzip.open(data_folder() / IMAGES) as file:
        x = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 14, 2, 14, 2)[: TRAINED + VALIDATED]
    with gzip.open(data_folder() / LABELS) as file:
        y = np.frombuffer(file.read(), np.uint8, offset=8)[: TRAINED + VALIDATED]
    small = x.mean(axis=(2, 4), dtype=np.float32).reshape(len(x), -1) / 255.0 - 0.286
    return torch.tensor(small), torch.tensor(y.astype(np.int64))


def train(trial: RunningTrial) -> None:
    import torch
    from torch import nn

    torch.set_num_threads(1)
    torch.manual_seed(trial.number)
    x, y = images()
    params: Any = trial.params
    network = nn.Sequential(nn.Linear(196, HIDDEN), nn.ReLU(), nn.Dropout(params["dropout"]), nn.Linear(HIDDEN, 10))
    optimizer = torch.optim.SGD(
        network.parameters(), lr=params["rate"], momentum=params["momentum"], weight_decay=params["decay"]
    )
    done = 0
    if trial.resume_dir:
        done, weights, state = torch.load(trial.resume_dir / "network.pt", weights_only=True)
        network.load_state_dict(weights)
        optimizer.load_state_dict(state)
    for epoch in range(done + 1, int(trial.fidelity["epochs"]) + 1):
        network.train()
        for rows in torch.split(torch.randperm(TRAINED), params["batch"]):
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(x[rows]), y[rows]).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        network.eval()
        with torch.no_grad():
            wrong = (network(x[TRAINED:]).argmax(1) != y[TRAINED:]).float().mean().item()
        trial.report(wrong, epochs=epoch)
    torch.save((epoch, network.state_dict(), optimizer.state_dict()), trial.checkpoint_dir / "network.pt")
