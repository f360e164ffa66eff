"""One Lightning training on several nodes of a Ray cluster: the trial is rank 0, tasks in other bundles are the rest.

ray start --head --num-cpus 2
python lightning_on_ray.py --ranks 2 --storage study.db
"""

import argparse
import logging
import os
import socket
import warnings
from collections.abc import Mapping
from typing import Any

import lightning.pytorch as L  # noqa: N812
import ray
import torch
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import farthing as ft
from farthing.integrations.lightning import TrialCallback
from farthing.integrations.ray import placement_group

SPACE = ft.Space(
    {"lr": ft.Float(1e-3, 0.1, log=True)}, fidelities={"epochs": ft.Fidelity(1, 4, integer=True, trace=True)}
)
BATCH = 16


class Net(L.LightningModule):
    def __init__(self, lr: float) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers, self.lr = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)), lr

    def loss(self, batch: Any) -> torch.Tensor:
        return nn.functional.mse_loss(self.layers(batch[0]), batch[1])

    def training_step(self, batch: Any, index: int) -> torch.Tensor:
        return self.loss(batch)

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        """All ranks have the same gradients, since they are averaged."""
        own = torch.cat([parameter.grad.flatten() for parameter in self.parameters()])
        if (self.all_gather(own) - own).abs().max() > 0:
            raise RuntimeError("The gradients of the ranks differ.")

    def validation_step(self, batch: Any, index: int) -> None:
        self.log("val_loss", self.loss(batch), sync_dist=True)  # the mean over all ranks, which rank 0 reports

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=self.lr, momentum=0.9)


def fit(callback: TrialCallback, params: Mapping[str, Any], *, rank: int, ranks: int, address: str, port: int) -> None:
    """Every rank calls it. Sent to another process, the callback trains along and reports nothing."""
    place = {"MASTER_ADDR": address, "MASTER_PORT": port, "WORLD_SIZE": ranks, "NODE_RANK": rank, "LOCAL_RANK": 0}
    os.environ.update({name: str(value) for name, value in place.items()})
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    trainer = L.Trainer(
        max_epochs=callback.epochs,
        callbacks=[callback],
        accelerator="cpu",
        strategy="ddp",
        devices=1,
        num_nodes=ranks,
        enable_checkpointing=False,
        **quiet,
    )
    inputs = torch.randn(128, 8, generator=torch.Generator().manual_seed(0))
    data = DataLoader(TensorDataset(inputs, inputs.sum(dim=1, keepdim=True)), batch_size=BATCH // ranks)
    try:
        trainer.fit(Net(params["lr"]), data, data, ckpt_path=callback.resume_path)
    finally:
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()  # the next trial has ranks of its own


def work(trial: ft.RunningTrial, ranks: int) -> None:
    callback = TrialCallback(trial, monitor="val_loss")
    with socket.socket() as free:
        free.bind(("", 0))
        common = {"ranks": ranks, "address": ray.util.get_node_ip_address(), "port": free.getsockname()[1]}
    others = [
        ray.remote(num_cpus=1)(fit)
        .options(scheduling_strategy=PlacementGroupSchedulingStrategy(placement_group(), rank))
        .remote(callback, dict(trial.params), rank=rank, **common)
        for rank in range(1, ranks)
    ]
    try:
        fit(callback, trial.params, rank=0, **common)
    except BaseException:
        for other in others:
            ray.cancel(other, force=True)
        raise
    ray.get(others)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--storage", default="study.db")
    arguments = parser.parse_args()
    ranks = arguments.ranks
    study = ft.Study(SPACE, minimize="loss", strategy=ft.ASHA(), storage=arguments.storage, seed=0)
    study.run(
        lambda trial: work(trial, ranks),
        budget=ft.Budget(trials=arguments.trials),
        executor="ray",
        resources=[{"cpu": 1}] * ranks,
    )
    print(study.best)


if __name__ == "__main__":
    main()
