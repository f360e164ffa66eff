"""Whole studies of real trainings, their workers on one GPU: `real-live`.

`python -m benchmarks.live --images IMAGES.npz --out FOLDER`; benchmarks/recording/data.py makes the images. Without
images a GRU learns the source of Python's standard library. One study of each method runs side by side with the others,
then the next seed begins. At the end every recommended configuration is trained from nothing, twice. FOLDER/live.jsonl
gets a line for each study when it ends, FOLDER/verified.jsonl one for each training; `--seeds 0` prints the table of
what is there.
"""

import argparse
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import farthing as ft
from benchmarks.live_code import Code
from benchmarks.live_training import LiveTask, Task
from benchmarks.recording.data import images, source_code
from farthing.errors import NoResult
from farthing.extending import Strategy

METHODS: Mapping[str, Strategy | None] = {
    "default": None,
    "random": ft.Random(),
    "asha": ft.ASHA(),
    "bohb": ft.BOHB(),
}
VERIFIED_WITH = (1_000_001, 1_000_002)
"""Seeds of the trainings that verify: no study trains with them."""
STUDIES, VERIFIED = "live.jsonl", "verified.jsonl"
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

Record = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """One study."""

    method: str
    task: LiveTask
    budget: ft.Budget
    workers: int


def studied(job: Job) -> Record:
    """Run a study, and say all that it did."""
    began = time.perf_counter()
    with TemporaryDirectory() as folder:
        study = ft.Study(
            job.task.space, minimize="error", strategy=METHODS[job.method], seed=job.task.seed, folder=folder
        )
        stopped = study.run(job.task, budget=job.budget, workers=job.workers, progress=False)
        ran = time.perf_counter() - began
        return {
            "method": job.method,
            "seed": job.task.seed,
            "seconds": job.budget.seconds,
            "workers": job.workers,
            "task": type(job.task).__name__.lower(),
            "data": job.task.data,
            "ran": round(ran, 2),
            "stopped": str(stopped),
            "best": _best(study),
            **_figures(study, job.task.epochs),
            "trials": _trials(study.trials),
        }


def _best(study: ft.Study) -> Record | None:
    try:
        found = study.best.to_json()
    except NoResult:
        return None
    keys = ("params", "value", "trial", "fidelity", "predicted", "measured_value", "explanation")
    return {key: found[key] for key in keys}


def _figures(study: ft.Study, epochs: int) -> Record:
    values = [point.value for trial in study.trials for point in trial.points if point.value is not None]
    done = [trial for trial in study.trials if trial.state == ft.State.DONE]
    trained = sum(len(trial.points) for trial in study.trials)
    ledger = study.ledger
    return {
        "lowest": min(values, default=None),
        "configurations": sum(trial.resume_from is None for trial in study.trials),
        "finished": sum(trial.fidelity["epochs"] == epochs for trial in done),
        "spent": round(ledger.total, 3),
        "overhead": round(ledger.overhead, 3),
        "waiting": round(ledger.waiting, 3),
        "mean_training": round(ledger.total / trained * epochs, 3) if trained else None,
        "failures": sorted({trial.failure.reason for trial in study.trials if trial.failure}),
    }


def _trials(trials: Sequence[ft.Trial]) -> list[Record]:
    """Times count from the first trial's beginning."""
    first = min((trial.opened_at for trial in trials), default=0.0)
    return [
        {
            "number": trial.number,
            "resume_from": trial.resume_from,
            "state": trial.state.value,
            "params": dict(trial.params) if trial.resume_from is None else None,
            "epochs": trial.fidelity["epochs"],
            "curve": [None if point.value is None else round(point.value, 4) for point in trial.points],
            "value": trial.value,
            "cost": round(trial.cost, 3),
            "predicted_cost": None if (price := trial.suggestion.predicted_cost) is None else _rounded(price.mean),
            "overhead": round(trial.overhead, 3),
            "began": round(trial.opened_at - first, 2),
            "ended": _rounded(trial.finished_at and trial.finished_at - first),
        }
        for trial in trials
    ]


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 3)


def verified(task: LiveTask, record: Record, training_seed: int) -> Record:
    """Train the recommended configuration of a study to the end."""
    began = time.perf_counter()
    error = task.verified(record["best"]["params"], seed=training_seed)
    ran = round(time.perf_counter() - began, 2)
    return {
        "method": record["method"],
        "seed": record["seed"],
        "training_seed": training_seed,
        "error": error,
        "ran": ran,
    }


# ------------------------------------------------------------------------------------------------- all of them


@dataclass(frozen=True)
class Plan:
    """Which studies run, `side_by_side` at a time; none begins more than `deadline` seconds after `began`."""

    out: Path
    task: LiveTask
    seeds: range
    methods: Sequence[str]
    seconds: float
    workers: int
    side_by_side: int
    deadline: float
    began: float

    def run(self) -> None:
        jobs = [
            Job(method, replace(self.task, seed=seed), ft.Budget(seconds=self.seconds), self.workers)
            for seed in self.seeds
            for method in self.methods
        ]
        with _processes(self.side_by_side) as pool:
            for start in range(0, len(jobs), self.side_by_side):
                if self._elapsed > self.deadline:
                    self._say(f"no study begins after {self.deadline:g} s")
                    break
                together = jobs[start : start + self.side_by_side]
                for record in _results(pool.submit(studied, job) for job in together):
                    _append(self.out / STUDIES, record)
                    self._say(_line(record))

    def verify(self) -> None:
        """With one seed first all, then with the next, so that a run that is cut short has compared all the same."""
        done = {_key(training, training["training_seed"]) for training in _read(self.out / VERIFIED)}
        records = [record for record in _read(self.out / STUDIES) if record["best"] is not None]
        wanted = [(record, seed) for seed in VERIFIED_WITH for record in records if _key(record, seed) not in done]
        with _processes(self.side_by_side * self.workers) as pool:
            for record in _results(pool.submit(verified, self.task, *each) for each in wanted):
                _append(self.out / VERIFIED, record)
        self._say(f"verified {len(records)} recommendations")

    @property
    def _elapsed(self) -> float:
        return time.monotonic() - self.began

    def _say(self, text: str) -> None:
        print(f"{self._elapsed:6.1f} s  {text}", flush=True)


def _processes(count: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(count, mp_context=get_context("spawn"))


def _results(futures: Iterable[Future[Record]]) -> Iterator[Record]:
    """As they come; one that fails is said and left out."""
    for future in as_completed(list(futures)):
        try:
            yield future.result()
        except Exception as error:
            print(f"failed: {type(error).__name__}: {error}", flush=True)


def _key(record: Record, training_seed: int) -> tuple[str, int, int]:
    return record["method"], record["seed"], training_seed


def _append(path: Path, record: Record) -> None:
    with path.open("a") as file:
        file.write(json.dumps(record) + "\n")


def _read(path: Path) -> list[Record]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _line(record: Record) -> str:
    keys = ("ran", "lowest", "configurations", "finished", "spent", "overhead", "mean_training", "failures", "stopped")
    figures = ", ".join(f"{key} {record[key]}" for key in keys)
    return f"{record['method']} {record['seed']}: {len(record['trials'])} trials, {figures}"


def table(out: Path) -> str:
    """Means over the seeds that all methods have; ± is the standard error, below 0 the default is better."""
    errors: dict[str, dict[int, list[float]]] = {}
    for training in _read(out / VERIFIED):
        errors.setdefault(training["method"], {}).setdefault(training["seed"], []).append(training["error"])
    if not errors:
        return "nothing is verified"
    seeds = sorted(set.intersection(*(set(by_seed) for by_seed in errors.values())))
    means = {method: np.array([np.mean(by_seed[seed]) for seed in seeds]) for method, by_seed in errors.items()}
    lines = [f"{len(seeds)} seeds: verified error, default minus it, seeds in which the default is better"]
    for method, mean in sorted(means.items(), key=lambda pair: float(pair[1].mean())):
        gap = means.get("default", mean) - mean
        lines.append(f"{method:<10}{_spread(mean)}   {_spread(gap)}   {int((gap < 0).sum())}")
    return "\n".join(lines)


def _spread(values: np.ndarray) -> str:
    error = values.std(ddof=1) / len(values) ** 0.5 if len(values) > 1 else float("nan")
    return f"{values.mean():+.4f} ± {error:.4f}" if len(values) else "-"


def main(arguments: Sequence[str] | None = None) -> None:
    given = _parser().parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    if given.seeds:
        _run(given, began=time.monotonic())
    print(table(given.out), flush=True)


def _run(given: argparse.Namespace, *, began: float) -> None:
    for name in ONE_THREAD:  # studies and workers share the cores
        os.environ.setdefault(name, "1")
    with TemporaryDirectory() as folder:
        plan = Plan(
            out=given.out,
            task=_task(given, Path(folder)),
            seeds=range(given.first_seed, given.first_seed + given.seeds),
            methods=given.methods,
            seconds=given.seconds,
            workers=given.workers,
            side_by_side=given.side_by_side,
            deadline=given.deadline,
            began=began,
        )
        try:
            plan.run()
        except BrokenProcessPool as error:
            print(f"a process of the studies died: {error}", flush=True)
        plan.verify()


def _task(given: argparse.Namespace, folder: Path) -> LiveTask:
    """With its data in the folder."""
    if given.images is None:
        np.save(folder / "text.npy", source_code())
        return Code(folder, epochs=given.epochs, sequences=given.train)
    x, y = images(given.images, count=given.train + given.validation)
    np.save(folder / "images.npy", x)
    np.save(folder / "labels.npy", y)
    return Task(folder, train=given.train, validation=given.validation, epochs=given.epochs)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path, help="images to tell apart; without them the task is a GRU over code")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--seconds", type=float, default=60.0, help="the budget of a study")
    parser.add_argument("--side-by-side", type=int, default=4)
    parser.add_argument("--workers", type=int, default=3, help="of each study")
    parser.add_argument("--deadline", type=float, default=float("inf"), help="seconds after which no study begins")
    parser.add_argument("--train", type=int, default=12_288, help="images, or sequences an epoch")
    parser.add_argument("--validation", type=int, default=4_096, help="images")
    parser.add_argument("--epochs", type=int, default=16)
    return parser


if __name__ == "__main__":
    main()
