"""Measures a thousand workers over 20 000 trials in virtual time: the coordinator, the notes, and opening the study.

With a budget of trials, and with one of cost, for which the expected cost of all running trials is kept back. CPU of
the coordinator is that of the whole process without the work, which writes a checkpoint. Its growth is the CPU of a
trial in the last quarter beside that of the second: a first quarter fills the workers. The trials are then written to
SQLite, and opened by a process of their own.
"""

import time
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.bars import Result, at_most
from benchmarks.speed._simulated_cluster import STRATEGIES, stop_after, work_on
from benchmarks.speed.store_scale import OPEN, STUDY, measured_alone, write
from farthing import Budget, RunningTrial, Study, Trial
from farthing.storage.json_text import to_text
from farthing.storage.lifecycle import Entry
from farthing.testing import SimulatedExecutor

WORKERS, TRIALS = 1000, 20_000
QUICK_WORKERS, QUICK_TRIALS = 64, 1000
LIMITS_MS = {"Sobol": 1.5, "ASHA": 3.0}
NOTE_LIMIT, OPEN_LIMIT, MEMORY_LIMIT = 400.0, 2.0, 200.0
MOST_GROWTH = 1.5
PLENTY = 1e12
"""A budget of cost that is watched at every trial and never spent."""


def run(*, seeds: int, quick: bool) -> Result:
    """`seeds` is the number of times that each study is opened; it is run once."""
    workers, trials = (QUICK_WORKERS, QUICK_TRIALS) if quick else (WORKERS, TRIALS)
    rows = [
        measured(name, budget, workers=workers, trials=trials, repeats=seeds)
        for name in LIMITS_MS
        for budget in (Budget(trials=trials), Budget(cost=PLENTY))
    ]
    what = f"{workers} workers, {trials} trials"
    return Result(
        figures={what: rows},
        bars=[
            at_most(f"{title(row)}, {what}: {figure}", limit=limit, measured=row[figure], unit=unit)
            for row in rows
            for figure, limit, unit in (
                ("CPU ms a trial", LIMITS_MS[row["strategy"]], "ms"),
                ("growth", MOST_GROWTH, "times"),
                ("bytes of note a trial", NOTE_LIMIT, "B"),
                ("CPU s to open", OPEN_LIMIT, "s"),
                ("MB to open", MEMORY_LIMIT, "MB"),
            )
        ],
        left_out=[],
    )


def title(row: dict[str, Any]) -> str:
    """The bars that there were before there was a budget of cost keep their names."""
    return str(row["strategy"]) + ("" if row["budget"] == "trials" else ", a budget of cost")


class Watch:
    """The CPU time of this process, but for that of the work."""

    def __init__(self) -> None:
        self._began, self._worked = time.process_time(), 0.0
        self.marks: list[float] = []

    def seconds(self) -> float:
        return time.process_time() - self._began - self._worked

    def working(self, work: Any) -> Any:
        def timed(trial: RunningTrial) -> Any:
            began = time.process_time()
            value = work(trial)
            self._worked += time.process_time() - began
            return value

        return timed

    def mark(self, study: Study, trial: Trial) -> None:
        self.marks.append(self.seconds())


def measured(name: str, budget: Budget, *, workers: int, trials: int, repeats: int) -> dict[str, Any]:
    make, space = STRATEGIES[name]
    executor, watch = SimulatedExecutor(workers=workers), Watch()
    study = Study(space, maximize="score", strategy=make(), seed=0, **executor.settings)
    study.run(
        watch.working(work_on(executor)),
        executor=executor,
        budget=budget,
        progress=False,
        callbacks=[watch.mark, stop_after(trials)],
    )
    quarter = len(watch.marks) // 4
    second, last = (watch.marks[2 * quarter] - watch.marks[quarter], watch.marks[-1] - watch.marks[-1 - quarter])
    with TemporaryDirectory() as folder:
        path = Path(folder, "thousand.db")
        Study(space, maximize="score", storage=path, name=STUDY, strategy=make(), seed=0).close()
        write(path, (Entry(trial) for trial in study.trials))
        spread, megabytes = measured_alone(OPEN, path, repeats=repeats)
    return {
        "strategy": name,
        "budget": next(iter(budget.amounts)),
        "trials": len(study.trials),
        "CPU ms a trial": 1000 * watch.marks[-1] / len(watch.marks),
        "growth": last / second,
        "bytes of note a trial": fmean(len(to_text(trial.note, what="A note")) for trial in study.trials),
        "CPU s to open": spread.median,
        "MB to open": megabytes,
    }
