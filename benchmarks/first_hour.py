"""What a newcomer tunes first, at equal CPU seconds of suggesting and training: `python -m benchmarks.first_hour`.

The network of `farthing demo`, a script that is a command of its own and takes some hundredths of a second, and, where
PyTorch and the data are there, a network on Fashion-MNIST (`first_images`). A study
that chooses its strategy, the same with its model forced (`TraceKG(halving=False)`) and ASHA have the same CPU seconds
of this process and of those that it starts. What is judged is what each recommends, trained to the end; that is not
charged.

`--shared` runs the study that chooses its strategy as a small group would: three processes of `farthing worker` share
it on a PostgreSQL server, until their trials have cost 20 seconds of the clock together.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import first_images
from benchmarks.provenance import commit, versions
from benchmarks.records import Record, results_path
from benchmarks.resuming import make_missing
from farthing import ASHA, Budget, Command, Fidelity, Float, Int, Space, Study, TraceKG
from farthing.cli.digits import SPACE as DIGITS
from farthing.cli.digits import save_examples, train
from farthing.execution.work import Work
from farthing.extending import Strategy
from farthing.models.linalg import one_thread
from farthing.trials.trial import is_by_model
from tests.postgres import PostgresServer

SUITE = "first-hour"
SECONDS, SEEDS, FIRST_SEED = 8.0, 10, 0
BEGAN = 1.7e9
"""The time of day when the process began, by the clock of the studies."""
METHODS: dict[str, Strategy | None] = {"default": None, "model forced": TraceKG(halving=False), "ASHA": ASHA()}
SHARED, WORKERS, COST = "default, three workers on PostgreSQL", 3, 20.0
FIELDS = "--rate {rate} --momentum {momentum} --decay {decay} --batch {batch} --epochs {epochs}"
LINE = f"{sys.executable} -S train.py {FIELDS} --resume {{resume_dir}} --save {{checkpoint_dir}}"
CURVES = Space(
    {
        "rate": Float(1e-4, 10.0, log=True),
        "momentum": Float(0.0, 0.99),
        "decay": Float(1e-6, 1.0, log=True),
        "batch": Int(4, 128, log=True),
    },
    fidelities={"epochs": Fidelity(1, 27, integer=True, trace=True)},
)
SCRIPT = '''"""Fits a logistic regression on noisy points by stochastic gradients, in plain Python."""
import argparse, json, math, pathlib, random

parser = argparse.ArgumentParser()
for name in ("rate", "momentum", "decay"):
    parser.add_argument(f"--{name}", type=float)
for name in ("batch", "epochs"):
    parser.add_argument(f"--{name}", type=int)
for name in ("resume", "save"):
    parser.add_argument(f"--{name}", type=pathlib.Path)
options = parser.parse_args()

rng = random.Random(0)
true = [rng.gauss(0, 1) for _ in range(10)]
points = [[1.0] + [rng.gauss(0, 1) for _ in range(9)] for _ in range(400)]
labels = [1.0 if sum(map(lambda w, x: w * x, true, p)) + rng.gauss(0, 1) > 0 else 0.0 for p in points]
weights, speed, done = [0.0] * 10, [0.0] * 10, 0
if options.resume:
    weights, speed, done = json.loads((options.resume / "state.json").read_text())


def chance(point):
    z = max(-30.0, min(30.0, sum(map(lambda w, x: w * x, weights, point))))
    return 1.0 / (1.0 + math.exp(-z))


for epoch in range(done + 1, options.epochs + 1):
    order = random.Random(epoch).sample(range(200), 200)
    for first in range(0, 200, options.batch):
        batch = order[first : first + options.batch]
        errors = [chance(points[i]) - labels[i] for i in batch]
        for j in range(10):
            slope = sum(e * points[i][j] for e, i in zip(errors, batch)) / len(batch) + options.decay * weights[j]
            speed[j] = max(-1e6, min(1e6, options.momentum * speed[j] - options.rate * slope))
            weights[j] = max(-1e6, min(1e6, weights[j] + speed[j]))
    right = [chance(points[i]) if labels[i] else 1.0 - chance(points[i]) for i in range(200, 400)]
    print(json.dumps({"error": -sum(math.log(max(1e-12, p)) for p in right) / 200, "epochs": epoch}), flush=True)
(options.save / "state.json").write_text(json.dumps([weights, speed, options.epochs]))
'''


class Clock:
    """CPU seconds of this process and of those that it started and that have ended; its time of day passes with them.

    What else the machine does is then no part of a study, neither of its budget nor of its trials' times.
    """

    def elapsed(self) -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.process_time() + children.ru_utime + children.ru_stime

    def now(self) -> float:
        return BEGAN + self.elapsed()


PROBLEMS: Mapping[str, tuple[Space, Work]] = {
    "digits": (DIGITS, train),
    "script": (CURVES, Command(LINE)),
    "fashion-mnist": (first_images.SPACE, first_images.train),
}


@dataclass(frozen=True)
class Run:
    """One method on one problem with one seed."""

    problem: str
    method: str
    seed: int

    @property
    def title(self) -> str:
        return f"{self.problem}, {self.method}, {self.seed}"

    @property
    def budget(self) -> float:
        return COST if self.method == SHARED else SECONDS

    @property
    def identity(self) -> dict[str, Any]:
        limit = {"cost" if self.method == SHARED else "seconds": self.budget}
        return {"problem": self.problem, "method": self.method, "seed": self.seed, "settings": limit}


def result_of(run: Run) -> Record:
    if run.method == SHARED:
        return result_of_workers(run)
    space, work = PROBLEMS[run.problem]
    with (
        one_thread(),  # those of BLAS that wait for work take CPU seconds too
        _folder(run.problem),
        Study(space, minimize="error", strategy=METHODS[run.method], seed=run.seed, clock=Clock()) as study,
    ):
        study.run(work, budget=Budget(seconds=SECONDS), executor="inline", progress=False)
        return _record(run, study, work)


def result_of_workers(run: Run) -> Record:
    space, work = PROBLEMS[run.problem]
    module = "farthing.cli.digits" if run.problem == "digits" else "benchmarks.first_images"
    program = [sys.executable, "-m", "farthing"]
    with PostgresServer() as server, _folder(run.problem):
        address = server.new_database()
        Study(space, minimize="error", storage=address, name=SUITE, seed=run.seed).close()
        Path("work.py").write_text(f"from {module} import train\n", encoding="utf-8")
        subprocess.run([*program, "budget", SUITE, "--storage", address, "--cost", str(COST)], check=True)
        worker = [*program, "worker", SUITE, "--storage", address, "--work", "work.py:train", "--until-idle", "--quiet"]
        alone = {**os.environ, "OMP_NUM_THREADS": "1"}  # as `one_thread`: they share the cores of one machine
        for process in [subprocess.Popen(worker, env=alone) for _ in range(WORKERS)]:
            if process.wait():
                raise RuntimeError(f"a worker ended with code {process.returncode}")
        with Study.load(SUITE, address) as study:
            return _record(run, study, work)


def _record(run: Run, study: Study, work: Work) -> Record:
    suggesting = sum(trial.overhead for trial in study.trials)
    found = {
        "trials": len(study.trials),
        "by_model": sum(map(is_by_model, study.trials)),
        "suggesting_share": suggesting / (suggesting + study.history.cost),
        "overheads": [trial.overhead for trial in study.trials],
    }
    trained = study.verify(work, executor="inline", progress=False)
    return {
        "suite": SUITE,
        **run.identity,
        "budget": run.budget,
        "verified_error": trained.value,
        **found,
        "versions": versions(("numpy", "scipy")),
        **commit(),
    }


@contextmanager
def _folder(problem: str) -> Iterator[None]:
    """Works in a folder with the data, or the script."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            if problem == "digits":
                save_examples(Path(folder))
            elif problem == "script":
                Path("train.py").write_text(SCRIPT, encoding="utf-8")
            yield
        finally:
            os.chdir(before)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m benchmarks.first_hour", description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS), metavar="NAME")
    parser.add_argument("--shared", action="store_true", help="one study of three workers of each that is Python")
    options = parser.parse_args(arguments)
    seeds = range(FIRST_SEED, FIRST_SEED + options.seeds)
    problems = options.problems
    if "fashion-mnist" in problems and (reason := first_images.missing()):
        sys.stderr.write(f"left out: fashion-mnist: {reason}\n")
        problems.remove("fashion-mnist")
    elif "fashion-mnist" in problems:
        first_images.images()  # reading them, and importing torch, is no part of a study
    wanted = [Run(problem, method, seed) for seed in seeds for problem in problems for method in METHODS]
    if options.shared:
        wanted = [Run(problem, SHARED, seed) for seed in seeds for problem in problems if problem != "script"]
    make_missing(results_path(SUITE), wanted, result_of=result_of)
    return 0


if __name__ == "__main__":
    sys.exit(main())
