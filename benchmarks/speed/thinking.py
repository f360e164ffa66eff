"""How long workers wait for suggestions, and how much of the trials' time suggesting takes.

Trials sleep, so that the work takes no processor from the strategy. A worker idles from the end of one of its trials to
the beginning of the next; the time before every worker has begun and after the last suggestions is left out. Each
trial of `TraceKG` also reports its curve: the time until a report is acknowledged is measured in the worker.
"""

import os
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from benchmarks.bars import Bar, Result, at_most
from benchmarks.spread import Spread
from farthing import Budget, Fidelity, Float, LogEI, RunningTrial, Space, Study, TraceKG
from farthing.extending import Strategy

WORKERS = (2, 8)
TRIALS: Mapping[float, Mapping[int, int]] = {
    0.01: {2: 100, 8: 100},
    0.1: {2: 600, 8: 3000},
    1.0: {2: 200, 8: 640},
    10.0: {2: 12, 8: 24},
}
"""Of each number of seconds and of workers. Ten seconds are measured once, the others once for each seed. A study's
first two seconds of thinking are free (`FREE` in `farthing.strategies.shared.effort`), so that shorter studies idle
more: shown beside. The others last for half a minute or more."""
FIRST = {0.1: {2: 100, 8: 160}, 1.0: {2: 30, 8: 72}}
"""Trials from the first on whose idle share is shown too."""
MOST_IDLE = {0.1: 0.10, 1.0: 0.02}
ACKNOWLEDGED = 0.05
EPOCHS = 9
PARAMS = {name: Float(0.0, 1.0) for name in "abcd"}
SPACES: Mapping[str, tuple[Space, Strategy]] = {
    "LogEI": (Space(PARAMS), LogEI()),
    "TraceKG": (Space(PARAMS, fidelities={"epochs": Fidelity(1, EPOCHS, integer=True, trace=True)}), TraceKG()),
}


class Sleep:
    """Work that sleeps for some seconds, over all epochs that it is asked for, and says when it began and ended."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self, trial: RunningTrial) -> dict[str, float]:
        began, waited = time.time(), 0.0
        value = sum((number - 0.3) ** 2 for number in trial.params.values())
        epochs = int(trial.fidelity.get("epochs", 0))
        for epoch in range(1, epochs + 1):
            time.sleep(self.seconds / (epochs + 1))
            waited = max(waited, _reported(trial, value + 0.1 / epoch, epoch))
        time.sleep(self.seconds / (epochs + 1))
        return {"value": value, "began": began, "ended": time.time(), "waited": waited, "worker": float(os.getpid())}


def _reported(trial: RunningTrial, value: float, epoch: int) -> float:
    began = time.perf_counter()
    trial.report(value, epochs=epoch)
    return time.perf_counter() - began


class Measured(NamedTuple):
    """Of one run: shares of the workers' time and of the trials' seconds, and the slowest report of each trial.

    `idle_first` is the share of the workers' time over the first trials.
    """

    idle: float
    idle_first: float
    suggesting: float
    waited: list[float]
    efforts: list[str]


def measured(name: str, seconds: float, workers: int, *, seed: int) -> Measured:
    space, strategy = SPACES[name]
    study = Study(space, minimize="value", strategy=strategy, seed=seed)
    trials = TRIALS[seconds][workers]
    budget = Budget(trials=trials) if name == "LogEI" else Budget(seconds=trials * max(seconds, 0.03) / workers + 2.0)
    study.run(Sleep(seconds), budget=budget, workers=workers, progress=False)
    done = study.history.done
    runs = [
        {name: value for name, value in trial.measurements[-1].metrics.items() if value is not None} for trial in done
    ]
    first = FIRST.get(seconds, TRIALS[seconds])[workers]
    return Measured(
        idle_share(runs, workers=workers),
        idle_share(runs[:first], workers=workers),
        sum(trial.overhead for trial in done) / sum(run["ended"] - run["began"] for run in runs),
        [run["waited"] for run in runs],
        [str((trial.note or {}).get("knew", {}).get("effort")) for trial in done],
    )


def idle_share(runs: Sequence[Mapping[str, float]], *, workers: int) -> float:
    """The share of time between trials, from when every worker has begun until the first has no next one."""
    by_worker: dict[float, list[Mapping[str, float]]] = {}
    for run in sorted(runs, key=lambda run: run["began"]):
        by_worker.setdefault(run["worker"], []).append(run)
    began = max(own[0]["began"] for own in by_worker.values())
    ended = min(own[-1]["began"] for own in by_worker.values())
    gaps = [
        min(later["began"], ended) - max(earlier["ended"], began)
        for own in by_worker.values()
        for earlier, later in pairwise(own)
    ]
    return sum(max(0.0, gap) for gap in gaps) / max(1e-9, (ended - began) * workers)


def run(*, seeds: int, quick: bool) -> Result:
    rows: list[dict[str, Any]] = []
    bars: list[Bar] = []
    waited: list[float] = []
    for name in SPACES:
        measured(name, 0.01, 2, seed=99)  # imports, which are no part of any share
        for seconds in (s for s in TRIALS if not (quick and s > 1.0)):
            for workers in WORKERS:
                found = [measured(name, seconds, workers, seed=seed) for seed in range(1 if seconds > 1.0 else seeds)]
                idle = Spread.of(one.idle for one in found)
                waited += [wait for one in found for wait in one.waited if wait > 0.0]
                rows.append(_row(name, seconds, workers, found, idle))
                if seconds in MOST_IDLE:
                    what = f"idle share, {name}, {workers} workers, trials of {seconds:g} s"
                    bars.append(at_most(what, limit=MOST_IDLE[seconds], measured=idle.median, unit="of their time"))
    slow = sorted(waited)
    bars.append(
        at_most(
            "the slowest report of a trial, 99 %", limit=ACKNOWLEDGED, measured=slow[int(0.99 * len(slow))], unit="s"
        )
    )
    figures = {
        "seconds until a report is acknowledged, the slowest of each trial": Spread.of(waited).to_json(),
        "the slowest of all": slow[-1],
        "load average when it ended": os.getloadavg()[0],
        "shares": rows,
    }
    return Result(figures=figures, bars=bars, left_out=[])


def _row(name: str, seconds: float, workers: int, found: Sequence[Measured], idle: Spread) -> dict[str, Any]:
    efforts = [effort for one in found for effort in one.efforts]
    first = FIRST.get(seconds, TRIALS[seconds])[workers]
    return {
        "strategy": name,
        "seconds a trial": seconds,
        "workers": workers,
        "trials": len(efforts),
        "idle": str(idle),
        "idle, first trials": f"{Spread.of(one.idle_first for one in found).median:.3g} of {first}",
        "suggesting": str(Spread.of(one.suggesting for one in found)),
        "efforts": ", ".join(
            f"{effort} {efforts.count(effort) / len(efforts):.0%}" for effort in dict.fromkeys(efforts)
        ),
    }
