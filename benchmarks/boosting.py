"""LightGBM at equal CPU seconds: `python -m benchmarks.boosting`.

Rounds are a fidelity for our default, which continues promising models; Optuna has TPE and the pruning callback of
optuna-integration; FLAML tunes LightGBM in its own space with its cost-frugal search, and has its own environment. All
three run with one thread. Seconds are CPU seconds, of tuning and training together, from after the import on; FLAML's
clock is set to them. What is judged is the model with the best validation loss that was there in time, by its loss on
data that no method saw.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.problems.data import REPOSITORY, data_folder
from benchmarks.provenance import commit, versions
from benchmarks.records import Record, results_path
from benchmarks.resuming import make_missing
from farthing.costs import Budget
from farthing.execution import RunningTrial
from farthing.space import Fidelity, Float, Int, Space
from farthing.study import Study
from farthing.trials import Trial

SUITE = "lightgbm-rounds"
TABLES = ("magic", "adult")
SECONDS, SEEDS = 20.0, 5
ROUNDS, PATIENCE = 300, 30
WORKER = Path(__file__).with_name("_flaml_worker.py")
PYTHON = REPOSITORY / ".flaml-venv" / "bin" / "python"
FIXED = {
    "objective": "binary",
    "verbosity": -1,
    "num_threads": 1,
    "bagging_freq": 1,
    "feature_pre_filter": False,
}
SPACE = Space(
    {
        "learning_rate": Float(0.01, 0.5, log=True),
        "num_leaves": Int(4, 256, log=True),
        "min_data_in_leaf": Int(5, 200, log=True),
        "feature_fraction": Float(0.4, 1.0),
        "bagging_fraction": Float(0.4, 1.0),
        "lambda_l2": Float(1e-3, 10.0, log=True),
    },
    fidelities={"rounds": Fidelity(10, ROUNDS, integer=True, trace=True, best_so_far=True)},
)


class Split(NamedTuple):
    """Inputs and targets to train, to validate and to judge."""

    train: tuple[Any, Any]
    valid: tuple[Any, Any]
    test: tuple[Any, Any]


def split(table: str, seed: int) -> Split:
    """60, 20 and 20 per cent, in an order by seed; the worker for FLAML does the same."""
    found = np.load(data_folder() / "tabular" / f"{table}.npz", allow_pickle=False)
    X, y = found["X"].astype(float), (found["y"] == found["y"].max()).astype(int)
    order = np.random.default_rng(seed).permutation(len(y))
    first, second = int(0.6 * len(y)), int(0.8 * len(y))
    parts = (order[:first], order[first:second], order[second:])
    return Split(*((X[part], y[part]) for part in parts))


class Found(NamedTuple):
    """The model that a method had in time: its losses, and the number of configurations that were tried till then."""

    valid: float
    test: float
    configurations: int


class CpuClock:
    """The CPU seconds of this process, for a study whose budget is in them."""

    def elapsed(self) -> float:
        return time.process_time()

    def now(self) -> float:
        return time.time()


def log_loss(y: Any, p: Any) -> float:
    clipped = np.clip(p, 1e-15, 1 - 1e-15)
    return float(-np.mean(np.where(y == 1, np.log(clipped), np.log(1 - clipped))))


class Best:
    """The best model that was there before the seconds were over."""

    def __init__(self) -> None:
        self._began = time.process_time()
        self._loss, self._rounds = float("inf"), 0
        self._booster: Any = None
        self.configurations = 0

    @property
    def is_late(self) -> bool:
        return time.process_time() - self._began > SECONDS

    def see(self, loss: float, booster: Any, rounds: int) -> None:
        if not self.is_late and loss < self._loss:
            self._loss, self._booster, self._rounds = loss, booster, rounds

    def found(self, data: Split) -> Found:
        assert self._booster is not None, "no model was there in time"
        X, y = data.test
        return Found(self._loss, log_loss(y, self._booster.predict(X, num_iteration=self._rounds)), self.configurations)


def datasets(data: Split) -> tuple[Any, Any]:
    import lightgbm

    train = lightgbm.Dataset(*data.train, params=FIXED, free_raw_data=False)
    return train, train.create_valid(*data.valid, params=FIXED)


def ours(data: Split, seed: int) -> Found:
    """The default strategy of a space with a fidelity."""
    from farthing.integrations.lightgbm import train_rounds

    best, sets = Best(), datasets(data)
    trained: dict[int, Any] = {}

    def work(trial: RunningTrial) -> None:
        trained[trial.number] = train_rounds(trial, {**FIXED, **trial.params}, *sets, early_stopping=PATIENCE)

    def see(study: Study, trial: Trial) -> None:
        best.configurations += trial.resume_from is None and not best.is_late
        if trial.value is not None:
            booster = trained[trial.number]
            best.see(trial.value, booster, booster.best_iteration)

    with Study(SPACE, minimize="logloss", seed=seed, clock=CpuClock()) as study:
        study.run(work, budget=Budget(seconds=SECONDS), executor="inline", callbacks=[see], progress=False)
    return best.found(data)


def optuna_tpe(data: Split, seed: int) -> Found:
    """TPE with its defaults, the median pruner, and the callback of optuna-integration."""
    import lightgbm
    import optuna
    from optuna_integration import LightGBMPruningCallback

    from benchmarks.drivers.optuna import suggest, tpe_study

    best, (train, valid) = Best(), datasets(data)
    study = tpe_study("minimize", seed=seed)
    space = Space(dict(SPACE.parameters))

    def objective(trial: optuna.Trial) -> float:
        best.configurations += not best.is_late
        callbacks = [
            LightGBMPruningCallback(trial, "binary_logloss", valid_name="valid"),
            lightgbm.early_stopping(PATIENCE, verbose=False),
        ]
        booster = lightgbm.train(
            {**FIXED, **suggest(trial, space)},
            train,
            num_boost_round=ROUNDS,
            valid_sets=[valid],
            valid_names=["valid"],
            callbacks=callbacks,
        )
        loss = float(booster.best_score["valid"]["binary_logloss"])
        best.see(loss, booster, booster.best_iteration)
        return loss

    while not best.is_late:
        study.optimize(objective, n_trials=1)
    return best.found(data)


def flaml(data: Split, seed: int, *, table: str) -> Found:
    request = {"file": str(data_folder() / "tabular" / f"{table}.npz"), "seed": seed, "seconds": SECONDS}
    ended = subprocess.run(
        [str(PYTHON), "-I", str(WORKER), json.dumps(request)], capture_output=True, text=True, check=True
    )
    return Found(**json.loads(ended.stdout.splitlines()[-1]))


METHODS: dict[str, Callable[..., Found]] = {"TraceKG": ours, "Optuna TPE, pruning": optuna_tpe, "FLAML": flaml}


@dataclass(frozen=True)
class Run:
    """One method on one table with one seed."""

    problem: str
    method: str
    seed: int

    @property
    def title(self) -> str:
        return f"{self.problem} {self.method} {self.seed}"

    @property
    def identity(self) -> dict[str, Any]:
        settings = {"seconds": SECONDS, "rounds": ROUNDS}
        return {"problem": self.problem, "method": self.method, "seed": self.seed, "settings": settings}


def result_of(run: Run) -> Record:
    data = _split(run.problem, run.seed)
    more = {"table": run.problem} if run.method == "FLAML" else {}
    found = METHODS[run.method](data, run.seed, **more)
    return {
        "suite": SUITE,
        **run.identity,
        "budget": SECONDS,
        "test_loss": found.test,
        "validation_loss": found.valid,
        "configurations": found.configurations,
        "versions": versions(("lightgbm", "optuna", "numpy")),
        **commit(),
    }


@cache
def _split(table: str, seed: int) -> Split:
    return split(table, seed)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m benchmarks.boosting", description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    options = parser.parse_args(arguments)
    methods = [method for method in METHODS if method != "FLAML" or PYTHON.exists()]
    if "FLAML" not in methods:
        sys.stderr.write("Left out: FLAML, which has no environment. Run: make bench-setup.\n")
    runs = [Run(table, method, seed) for seed in range(options.seeds) for table in TABLES for method in methods]
    make_missing(results_path(SUITE), runs, result_of=result_of)
    return 0


if __name__ == "__main__":
    sys.exit(main())
