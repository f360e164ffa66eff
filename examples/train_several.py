"""Trains a small network in several processes at once, an ordinary PyTorch program that torchrun starts for each rank.

Rank 0 prints a JSON line after every epoch. It saves itself where --save says and goes on from where --resume says:

    torchrun --standalone --nproc-per-node 2 train_several.py --lr 0.1 --epochs 3 --save run1
    torchrun --standalone --nproc-per-node 2 train_several.py --lr 0.05 --epochs 9 --resume run1
"""

import argparse
import json
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main() -> None:
    arguments = read_arguments()
    dist.init_process_group("gloo")  # "nccl" on GPUs, with the model on cuda:LOCAL_RANK
    torch.manual_seed(0)
    data = made_data()
    model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=arguments.lr, momentum=0.9)
    done = load(arguments, model, optimizer) if arguments.resume else 0
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=arguments.batch // dist.get_world_size(), sampler=sampler)
    for epoch in range(done, arguments.epochs):
        sampler.set_epoch(epoch)
        train_epoch(model, optimizer, loader)
        report({"loss": validated(model, data), "epochs": epoch + 1, "apart": gradients_apart(model)})
    if arguments.save and dist.get_rank() == 0:
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epochs": arguments.epochs}
        torch.save(state, arguments.save / "state.pt")
    dist.barrier()  # nobody leaves while another rank may still speak to it
    dist.destroy_process_group()
    os._exit(0)  # threads of gloo outlive the group, and one that still drops a tensor while Python ends aborts it


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lr", type=float, required=True)
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--batch", type=int, default=16, help="of all ranks together")
    parser.add_argument("--resume", type=Path)
    parser.add_argument("--save", type=Path)
    return parser.parse_args()


def made_data() -> TensorDataset:
    inputs = torch.randn(128, 8)
    return TensorDataset(inputs, inputs[:, :4].prod(dim=1, keepdim=True) + inputs.sum(dim=1, keepdim=True))


def load(arguments: argparse.Namespace, model: nn.Module, optimizer: torch.optim.Optimizer) -> int:
    """Every rank reads the checkpoint. The rate of the trial is set afterwards: the checkpoint brings its old one."""
    state = torch.load(arguments.resume / "state.pt", weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    for group in optimizer.param_groups:
        group["lr"] = arguments.lr
    return int(state["epochs"])


def train_epoch(model: nn.Module, optimizer: torch.optim.Optimizer, loader: DataLoader) -> None:
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()


def validated(model: nn.Module, data: TensorDataset) -> float:
    """The mean over all ranks, each of which has its part."""
    inputs, targets = (part[dist.get_rank() :: dist.get_world_size()] for part in data.tensors)
    with torch.no_grad():
        loss = nn.functional.mse_loss(model(inputs), targets)
    dist.all_reduce(loss)
    return loss.item() / dist.get_world_size()


def gradients_apart(model: nn.Module) -> float:
    """How far the gradients of the ranks are from each other: not at all, since they are averaged."""
    own = torch.cat([parameter.grad.flatten() for parameter in model.parameters()])
    all_ranks = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(all_ranks, own)
    return max((other - own).abs().max().item() for other in all_ranks)


def report(line: dict[str, float]) -> None:
    if dist.get_rank() == 0:
        print(json.dumps({**line, "ranks": dist.get_world_size()}), flush=True)


if __name__ == "__main__":
    main()
