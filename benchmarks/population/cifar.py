"""The paper's supervised experiment: `python -m benchmarks.run population-cifar`.

A network with three blocks of convolutions learns half of CIFAR-10 under six hyperparameters, B = 4. Decisions are
made by the accuracy on images of the other half; what counts is the accuracy on the test images of the agent that those
choose. Needs torch, and is meant for a GPU: `--processes` populations train at once, each with its members on streams
of their own. Results are JSON lines; runs that are there are not repeated, and `--minutes` ends in time.

The scale differs from the paper in the epochs (20 instead of 50, an interval still a tenth of them). Momentum is Adam's
first β, as there.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.population import cifar_data
from benchmarks.population.together import carry_out_together, parser_of
from benchmarks.problems.data import missing_package
from benchmarks.provenance import commit, cpu_count, versions
from benchmarks.records import Record, key_of, read_records, results_path
from farthing.costs import Budget
from farthing.space import Fidelity, Float, Int, Space
from farthing.strategies import Strategy
from farthing.strategies.multifidelity.halving import ASHA
from farthing.strategies.plain.random import Random
from farthing.study import Study

SUITE = "population-cifar"
POPULATION, INTERVALS = 4, 10


@dataclass(frozen=True)
class Scale:
    """Amount of training: the numbers of training images to learn from, and of others to decide by."""

    epochs: int = 20
    train: int = 25_000
    validation: int = 10_000
    test: int = 10_000

    @property
    def interval(self) -> int:
        return max(1, self.epochs // INTERVALS)

    def space(self) -> Space:
        return Space(
            {
                "batch": Int(4, 128),
                "dropout_1": Float(0.1, 0.5),
                "dropout_2": Float(0.1, 0.5),
                "lr": Float(1e-4, 1e-3, log=True),
                "weight_decay": Float(1e-5, 1e-3, log=True),
                "momentum": Float(0.8, 0.99),
            },
            fidelities={"epochs": Fidelity(self.interval, self.epochs, integer=True, trace=True)},
        )


QUICK = Scale(epochs=3, train=128, validation=128, test=128)


def methods(scale: Scale) -> dict[str, Callable[[], Strategy]]:
    """Each by name; all may spend as much as four whole runs cost."""
    from farthing import PB2, PBT, Clone

    size: dict[str, Any] = {"population": POPULATION, "interval": scale.interval, "steps": scale.epochs}
    return {
        "random": Random,
        "asha": ASHA,
        "pbt": lambda: PBT(**size),
        "clone": lambda: Clone(**size),
        "pb2": lambda: PB2(**size),
        "pb2-paper": lambda: PB2.paper(**size),
    }


@dataclass(frozen=True)
class Run:
    """One method with one seed."""

    method: str
    seed: int
    scale: Scale
    files: Mapping[str, Path]
    device: str
    uses_graphs: bool
    deadline: float
    commit: str | None = None

    @property
    def identity(self) -> dict[str, Any]:
        settings = {"method": methods(self.scale)[self.method]().to_json(), "scale": vars(self.scale)}
        return {"problem": "cifar-10-half", "method": self.method, "seed": self.seed, "settings": settings}


def carry_out(run: Run) -> Record | None:
    """The record of a run; None when there was no time to finish it."""
    from benchmarks.population.cifar_training import Member, train_together

    data, began = _data(run), time.monotonic()
    strategy = methods(run.scale)[run.method]()
    study = Study(run.scale.space(), maximize="accuracy", strategy=strategy, seed=run.seed, cost_unit="epochs")
    budget = Budget(trials=POPULATION) if run.method == "random" else Budget(cost=POPULATION * run.scale.epochs)
    states: dict[int, Any] = {}
    tests: dict[int, float] = {}
    while trials := study.ask(count=POPULATION, budget=budget):
        members, spans = [], []
        for trial in trials:
            source = trial.resume_from
            done = 0 if source is None else int(study.history[source].fidelity["epochs"])
            spans.append(int(trial.fidelity["epochs"]) - done)
            state = None if source is None else states[source]
            seed = 10_000 * run.seed + trial.number
            members.append(
                Member(data, trial.params, state=state, epochs=spans[-1], seed=seed, uses_graphs=run.uses_graphs)
            )
        train_together(members)
        for trial, member, span in zip(trials, members, spans, strict=True):
            states[trial.number] = member.state()
            tests[trial.number] = member.accuracy(data.test)
            study.tell(trial, member.accuracy(data.validation), cost=float(span))
        needed = study.strategy.resumable(study.history)
        states = {number: state for number, state in states.items() if number in needed}
        if time.time() > run.deadline:
            return None
    return _record(run, study, tests, seconds=time.monotonic() - began)


def _record(run: Run, study: Study, tests: Mapping[int, float], *, seconds: float) -> Record:
    import torch

    history, best = study.history, study.best.trial
    assert best is not None, "the study has run"
    finals = [trial.number for trial in history.done if trial.fidelity == best.fidelity]
    return {
        "suite": SUITE,
        **run.identity,
        "test_accuracy": tests[best.number],
        "validation_accuracy": best.value,
        "best_test_accuracy": max(tests[number] for number in finals),
        "epochs": study.ledger.total,
        "trials": [
            {
                "params": dict(trial.params),
                "epochs": trial.fidelity["epochs"],
                "resume_from": trial.resume_from,
                "validation": trial.value,
                "test": tests[trial.number],
            }
            for trial in history
        ],
        "seconds": round(seconds, 1),
        "suggest_seconds": round(study.ledger.overhead, 3),
        "device": torch.cuda.get_device_name() if run.device.startswith("cuda") else "cpu",
        "versions": versions(("torch", "numpy", "scipy")),
        **(commit() if run.commit is None else {"commit": run.commit, "dirty": False}),
    }


@cache
def _data_of(files: tuple[tuple[str, Path], ...], train: int, validation: int, device: str) -> Any:
    from benchmarks.population.cifar_training import Data

    return Data(dict(files), train=train, validation=validation, device=device)


def _data(run: Run) -> Any:
    """Read once in each process."""
    import torch

    torch.set_num_threads(1)
    return _data_of(tuple(run.files.items()), run.scale.train, run.scale.validation, run.device)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    if reason := missing_package("torch") or cifar_data.missing():
        print(f"{SUITE} is left out: {reason}.")
        return 1
    path = options.output or results_path(f"{SUITE}-quick" if options.quick else SUITE)
    runs = list(_runs_to_do(options, path))
    if runs:
        carry_out_together(runs, carry_out, path=path, processes=options.processes, describe=_described)
    _report(read_records(path))
    return 0


def _runs_to_do(options: argparse.Namespace, path: Path) -> Iterator[Run]:
    """For each seed all methods, so that what is there after any time is paired as far as it can be."""
    import torch

    scale = QUICK if options.quick else replace(Scale(), epochs=options.epochs)
    files = {
        "train": cifar_data.decoded("train", scale.train + scale.validation, workers=min(16, cpu_count())),
        "test": cifar_data.decoded("test", scale.test, workers=min(16, cpu_count())),
    }
    device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    present = {key_of(record) for record in read_records(path)}
    deadline = time.time() + 60 * options.minutes
    for seed in range(options.seeds):
        for method in options.methods or methods(scale):
            run = Run(method, seed, scale, files, device, not options.eager, deadline, options.commit)
            if key_of(run.identity) not in present:
                yield run


def _described(run: Run, record: Record) -> str:
    return f"{run.method:10} seed {run.seed}: test accuracy {100 * record['test_accuracy']:.2f}"


def _report(records: Sequence[Record]) -> None:
    names = list(dict.fromkeys(record["method"] for record in records))
    print(f"\n{'':12} {'median':>7}   test accuracy of the agent that validation chose, in percent, by seed")
    for name in names:
        found = {r["seed"]: 100 * r["test_accuracy"] for r in records if r["method"] == name}
        each = " ".join(f"{found[seed]:.2f}" for seed in sorted(found))
        print(f"{name:12} {median(found.values()):7.2f}   {each}")


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(SUITE, __doc__, seeds=5)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="128 images and three epochs, to see that it works")
    parser.add_argument("--device", help="cuda where there is one, otherwise cpu")
    parser.add_argument("--eager", action="store_true", help="without CUDA graphs")
    return parser


if __name__ == "__main__":
    sys.exit(main())
