"""Measures the coordinator of a cluster in virtual time: its CPU a trial, and how long workers wait for suggestions.

Trials take a minute on average. Thinking takes the CPU seconds that it takes here; what else the coordinator does is
measured too, but passes no virtual time. The first trial of each worker waits for the first suggestions of all, so idle
time is shown without it too. A coordinator saturates where its CPU a trial exceeds the seconds between two ends of
trials, which are a minute divided by the number of workers.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from benchmarks.bars import Result, at_most
from benchmarks.provenance import commit, versions
from benchmarks.records import Record
from benchmarks.resuming import samples_of
from benchmarks.spread import Spread
from farthing import ASHA, Budget, Fidelity, Float, RunningTrial, Sobol, Space, Study, TraceKG, Trial
from farthing.extending import Strategy
from farthing.testing import SimulatedExecutor

MINUTE = 60.0
EPOCHS = 9
WORKERS, QUICK_WORKERS = (1, 16, 64, 256, 1000), (1, 16, 64)
ROUNDS = 3
"""Trials for each worker, so that all of them come back for more twice."""
FEWEST, MOST_LATER = 32, 200
"""Fewest configurations in all, and most after the first of each worker."""
FEW_LATER = 20
"""Trials after the first of each worker where a model thinks about more than `JUDGED_AT` workers, which takes seconds
for each: the run is then stopped."""
MODELS = ("TraceKG",)
MOST_IDLE = 0.05
MOST_SEEDS = 3
"""Repeats up to the judged number of workers; one beyond it."""
PACKAGES = ("numpy", "scipy")
JUDGED_AT = 64
LATER = "thinking CPU ms a trial after the start"
PARAMS = {"rate": Float(1e-5, 1.0, log=True), "decay": Float(1e-6, 1e-1, log=True), "width": Float(0.0, 1.0)}
PLAIN = Space(PARAMS)
CURVES = Space(PARAMS, fidelities={"epochs": Fidelity(1, EPOCHS, integer=True, trace=True)})
STRATEGIES: Mapping[str, tuple[Callable[[], Strategy], Space]] = {
    "Sobol": (Sobol, PLAIN),
    "ASHA": (ASHA, CURVES),
    "TraceKG": (TraceKG, CURVES),
}


@dataclass(frozen=True)
class Simulated:
    """One strategy with some workers and one seed."""

    strategy: str
    workers: int
    seed: int

    @property
    def is_short(self) -> bool:
        return self.strategy in MODELS and self.workers > JUDGED_AT

    @property
    def title(self) -> str:
        return f"{self.strategy}, {self.workers} workers, seed {self.seed}"

    @property
    def identity(self) -> dict[str, Any]:
        settings = {"rounds": ROUNDS, "later": FEW_LATER if self.is_short else MOST_LATER}
        return {"problem": f"{self.workers} workers", "method": self.strategy, "seed": self.seed, "settings": settings}


def run(*, seeds: int, quick: bool) -> Result:
    """Full runs are kept in `benchmarks/results/simulated-cluster.jsonl.xz`, and only those that it lacks are made."""
    sizes = QUICK_WORKERS if quick else WORKERS
    wanted = [
        Simulated(name, workers, seed)
        for workers in sizes
        for seed in range(min(seeds, MOST_SEEDS if workers <= JUDGED_AT else 1))
        for name in STRATEGIES
    ]
    records = samples_of("simulated-cluster", wanted, result_of=simulated, keep=not quick)
    made = {(record["strategy"], record["workers"]) for record in records}
    rows = [row_of(name, workers, records) for workers in sizes for name in STRATEGIES if (name, workers) in made]
    judged = [row for row in rows if row["workers"] == JUDGED_AT]
    return Result(
        figures={"simulated cluster": rows},
        bars=[
            at_most(
                f"idle workers of {JUDGED_AT}, trials of a minute, {row['strategy']}",
                limit=MOST_IDLE,
                measured=row["idle share after the start"],
                unit="of their time",
            )
            for row in judged
        ],
        left_out=[],
    )


def row_of(name: str, workers: int, records: Sequence[Record]) -> dict[str, Any]:
    found = [record for record in records if (record["strategy"], record["workers"]) == (name, workers)]
    row: dict[str, Any] = {"strategy": name, "workers": workers, "n": len(found), "trials": found[0]["trials"]}
    for figure in ("CPU ms a trial", "thinking CPU ms a trial", "idle share", "idle share after the start"):
        row[figure] = Spread.of(one[figure] for one in found).median
    later = (
        Spread.of(one[LATER] for one in found if LATER in one).median if any(LATER in one for one in found) else None
    )
    busiest = max(row["CPU ms a trial"], later or 0.0)
    return row | {LATER: later, "saturated": busiest / 1000.0 > MINUTE / workers}


def simulated(run: Simulated) -> Record:
    make, space = STRATEGIES[run.strategy]
    executor = SimulatedExecutor(workers=run.workers)
    study = Study(space, maximize="score", strategy=make(), seed=run.seed, **executor.settings)
    trials = max(FEWEST, min(ROUNDS * run.workers, run.workers + MOST_LATER))
    began = time.process_time()
    callbacks = [stop_after(run.workers + FEW_LATER)] if run.is_short else []
    study.run(work_on(executor), executor=executor, budget=Budget(trials=trials), progress=False, callbacks=callbacks)
    cpu = time.process_time() - began
    count = len(study.trials)
    return {
        "suite": "simulated-cluster",
        **run.identity,
        "strategy": run.strategy,
        "workers": run.workers,
        "trials": count,
        "CPU ms a trial": 1000 * cpu / count,
        "thinking CPU ms a trial": 1000 * study.ledger.overhead / count,
        LATER: 1000 * fmean(trial.overhead for trial in study.trials[run.workers :]),
        "idle share": waiting_share(study.trials),
        "idle share after the start": waiting_share(study.trials[run.workers :]),
        "versions": versions(PACKAGES),
        **commit(),
    }


def stop_after(trials: int) -> Callable[[Study, Trial], None]:
    return lambda study, _: study.stop() if len(study.history) >= trials else None


def waiting_share(trials: Sequence[Trial]) -> float:
    """Seconds that workers waited for suggestions, of those that they waited or worked."""
    waited, worked = sum(trial.waited for trial in trials), sum(trial.cost for trial in trials)
    return waited / (waited + worked)


def work_on(executor: SimulatedExecutor) -> Callable[[RunningTrial], float | None]:
    def work(trial: RunningTrial) -> float | None:
        pace = MINUTE * (0.5 + trial.params["width"])
        score = 1.0 - abs(float(trial.params["width"]) - 0.3)
        if "epochs" not in trial.fidelity:
            executor.spend(pace)
            return score
        first = int((trial.resume_dir / "epoch").read_text()) if trial.resume_dir else 0
        for epoch in range(first + 1, int(trial.fidelity["epochs"]) + 1):
            executor.spend(pace)
            trial.report(score * (1.0 - 0.5**epoch), epochs=epoch)
        (trial.checkpoint_dir / "epoch").write_text(str(int(trial.fidelity["epochs"])))
        return None

    return work
