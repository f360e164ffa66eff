"""How long eight workers wait in short studies of short trials: with suggesting ahead, as it is, and without it.

Trials of a tenth of a second run in virtual time, and suggesting takes the CPU seconds that it takes here, so that what
else the machine does counts for little. A worker waits from the end of its trial until it has the next one.
`speed thinking` measures longer studies with real workers.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Any
from unittest.mock import patch

from benchmarks.bars import Bar, Result, at_most
from benchmarks.speed._simulated_cluster import waiting_share
from benchmarks.speed.thinking import SPACES
from benchmarks.spread import Spread
from farthing import Budget, LogEI, RunningTrial, Study
from farthing.models.linalg import one_thread
from farthing.running.suggestions import SuggesterInThread
from farthing.testing import SimulatedExecutor

SECONDS, WORKERS = 0.1, 8
TRIALS = (100, 400)
"""Of a study; with epochs, the whole trainings that its budget pays for."""
MOST_IDLE = 0.1


def run(*, seeds: int, quick: bool) -> Result:
    rows: list[dict[str, Any]] = []
    bars: list[Bar] = []
    with one_thread():
        for name in SPACES:
            idle(name, trials=TRIALS[0], seed=99, is_ahead=True)  # imports, which are no part of any share
            for trials in TRIALS[:1] if quick else TRIALS:
                ahead, without = (
                    Spread.of(idle(name, trials=trials, seed=seed, is_ahead=is_ahead) for seed in range(seeds))
                    for is_ahead in (True, False)
                )
                rows.append({"strategy": name, "trials": trials, "idle": str(ahead), "not ahead": str(without)})
                what = f"idle share, {name}, {WORKERS} workers, {trials} trials of {SECONDS:g} s"
                bars.append(at_most(what, limit=MOST_IDLE, measured=ahead.median, unit="of their time"))
    return Result(figures={"shares": rows}, bars=bars, left_out=[])


def idle(name: str, *, trials: int, seed: int, is_ahead: bool) -> float:
    """The share of the workers' time in which they waited for suggestions."""
    space, strategy = SPACES[name]
    executor = SimulatedExecutor(workers=WORKERS)
    study = Study(space, minimize="value", strategy=strategy, seed=seed, **executor.settings)

    def work(trial: RunningTrial) -> float:
        value: float = sum((number - 0.3) ** 2 for number in trial.params.values())
        epochs = trial.fidelity.get("epochs", 0)
        for epoch in range(1, int(epochs) + 1):
            executor.spend(SECONDS / (epochs + 1))
            trial.report(value + 0.1 / epoch, epochs=epoch)
        executor.spend(SECONDS / (epochs + 1))
        return value

    is_counted = isinstance(strategy, LogEI)
    budget = Budget(trials=trials) if is_counted else Budget(seconds=trials * SECONDS / WORKERS)
    with nullcontext() if is_ahead else _only_when_asked():
        study.run(work, executor=executor, budget=budget, progress=False)
    return waiting_share(study.trials)


def _only_when_asked() -> AbstractContextManager[Any]:
    """Without suggesting ahead: nothing is begun before a worker is free."""
    return patch.object(SuggesterInThread, "prepare", lambda self, question: None)
