"""Measures the coordinator of a cluster in virtual time: its CPU a trial, and how long workers wait for suggestions.

Trials take a minute on average. Thinking takes the CPU seconds that it takes here; what else the coordinator does is
measured too, but passes no virtual time. The first trial of each worker waits for the first suggestions of all, so idle
time is shown without it too. A coordinator saturates where its CPU a trial exceeds the seconds between two ends of
trials, which are a minute divided by the number of workers.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.bars import Result, at_most
from benchmarks.spread import Spread
from farthing import ASHA, Budget, Fidelity, Float, RunningTrial, Sobol, Space, Strategy, Study, TraceKG, Trial
from farthing.testing import SimulatedExecutor

MINUTE = 60.0
EPOCHS = 9
WORKERS, QUICK_WORKERS = (1, 16, 64, 256, 1000), (1, 16, 64)
ROUNDS = 3
"""Trials for each worker, so that all of them come back for more twice."""
FEWEST, MOST_LATER = 32, 200
"""Fewest configurations in all, and most after the first of each worker."""
MOST_IDLE = 0.05
JUDGED_AT = 64
PARAMS = {"rate": Float(1e-5, 1.0, log=True), "decay": Float(1e-6, 1e-1, log=True), "width": Float(0.0, 1.0)}
PLAIN = Space(PARAMS)
CURVES = Space(PARAMS, fidelities={"epochs": Fidelity(1, EPOCHS, integer=True, trace=True)})
STRATEGIES: Mapping[str, tuple[Callable[[], Strategy], Space]] = {
    "Sobol": (Sobol, PLAIN),
    "ASHA": (ASHA, CURVES),
    "TraceKG": (TraceKG, CURVES),
}


def run(*, seeds: int, quick: bool) -> Result:
    sizes = QUICK_WORKERS if quick else WORKERS
    repeats = {workers: 1 if workers > JUDGED_AT else min(seeds, 3) for workers in sizes}
    rows = [row_of(name, workers, seeds=repeats[workers]) for workers in sizes for name in STRATEGIES]
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


def row_of(name: str, workers: int, *, seeds: int) -> dict[str, Any]:
    measured = [simulated(name, workers, seed=seed) for seed in range(seeds)]
    row: dict[str, Any] = {"strategy": name, "workers": workers, "n": seeds, "trials": measured[0]["trials"]}
    for figure in ("CPU ms a trial", "thinking CPU ms a trial", "idle share", "idle share after the start"):
        row[figure] = Spread.of(one[figure] for one in measured).median
    return row | {"saturated": row["CPU ms a trial"] / 1000.0 > MINUTE / workers}


def simulated(name: str, workers: int, *, seed: int) -> dict[str, float]:
    make, space = STRATEGIES[name]
    executor = SimulatedExecutor(workers=workers)
    study = Study(space, maximize="score", strategy=make(), seed=seed, **executor.settings)
    trials = max(FEWEST, min(ROUNDS * workers, workers + MOST_LATER))
    began = time.process_time()
    study.run(work_on(executor), executor=executor, budget=Budget(trials=trials), progress=False)
    cpu = time.process_time() - began
    count = len(study.trials)
    return {
        "trials": count,
        "CPU ms a trial": 1000 * cpu / count,
        "thinking CPU ms a trial": 1000 * study.ledger.overhead / count,
        "idle share": waiting_share(study.trials),
        "idle share after the start": waiting_share(study.trials[workers:]),
    }


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
