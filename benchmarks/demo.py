"""The problem of `farthing demo` at equal CPU seconds: `python -m benchmarks.demo`.

Each method tunes the network of the demo for the same CPU seconds, of suggesting and of training together, with one
process and one thread. Ours is what a user has: a study that chooses its strategy. BOHB and Hyperband are the package's
own, which share the loop, the checkpoints and the accounting, so that only the decisions differ. What is judged is what
each recommends, trained to the end, as `verify` does; that is not charged. The error of validation is what was tuned;
errors and losses on the test, which nobody saw, are beside it.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.boosting import CpuClock
from benchmarks.provenance import commit, versions
from benchmarks.records import Record, results_path
from benchmarks.resuming import make_missing
from farthing.cli.digits import SPACE, Network, load_examples, save_examples, train
from farthing.costs import Budget
from farthing.strategies import Strategy
from farthing.strategies.multifidelity.bohb import BOHB
from farthing.strategies.multifidelity.halving import Hyperband
from farthing.study import Study
from farthing.trials import Trial

SUITE = "demo-digits"
SECONDS, SEEDS, FIRST_SEED = 25.0, 10, 100
METHODS: dict[str, Strategy | None] = {"default": None, "BOHB": BOHB(), "Hyperband": Hyperband()}


@dataclass(frozen=True)
class Run:
    """One method with one seed."""

    method: str
    seed: int

    @property
    def title(self) -> str:
        return f"{self.method} {self.seed}"

    @property
    def identity(self) -> dict[str, Any]:
        return {"problem": "digits", "method": self.method, "seed": self.seed, "settings": {"seconds": SECONDS}}


def result_of(run: Run) -> Record:
    with (
        _data(),
        Study(SPACE, minimize="error", strategy=METHODS[run.method], seed=run.seed, clock=CpuClock()) as study,
    ):
        study.run(train, budget=Budget(seconds=SECONDS), executor="inline", progress=False)
        found = {"recommended_error": study.best.value, "trials": len(study.trials), **_shares(study)}
        trained = study.verify(train, executor="inline", progress=False)
        judged = _judged(study, trained)
    return {
        "suite": SUITE,
        **run.identity,
        "budget": SECONDS,
        "strategy": study.strategy.to_json(),
        **judged,
        **found,
        "versions": versions(("numpy", "scipy")),
        **commit(),
    }


def _shares(study: Study) -> dict[str, float]:
    """The seconds of suggesting, as a share of those of trials and by themselves."""
    suggesting, cost = sum(trial.overhead for trial in study.trials), study.history.cost
    full = sum(study.history.is_full(trial) for trial in study.history.done)
    return {
        "suggesting_seconds": suggesting,
        "trial_seconds": cost,
        "suggesting_share": suggesting / cost,
        "full": full,
    }


def _judged(study: Study, trained: Trial) -> dict[str, float]:
    assert trained.checkpoint is not None, "a network that was trained is kept"
    assert trained.value is not None, "what is verified has a value"
    activation = trained.params["activation"]
    _, _, test = load_examples(Path.cwd())
    network = Network.load(study.checkpoints.path(trained.checkpoint))
    return {
        "validation_error": trained.value,
        "test_error": network.error(test, activation=activation),
        "test_loss": network.loss(test, activation=activation),
    }


@contextmanager
def _data() -> Iterator[None]:
    """Works in a folder with the data, where the demo's own function looks for them."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        save_examples(Path(folder))
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m benchmarks.demo", description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    options = parser.parse_args(arguments)
    seeds = range(FIRST_SEED, FIRST_SEED + options.seeds)
    make_missing(results_path(SUITE), [Run(method, seed) for seed in seeds for method in METHODS], result_of=result_of)
    return 0


if __name__ == "__main__":
    sys.exit(main())
