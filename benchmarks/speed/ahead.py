"""What suggesting ahead costs in regret: the same number of trials with and without it, in pairs of one seed.

Trials are so short that suggestions are made ahead, with less effort and without the latest result: they take 50 ms
of a clock that passes at once, and end in the order in which they began, so that what is prepared is always stale.
Without it, the coordinator suggests when a worker is free, with the effort of one worker: the two differ in effort too.
Each run is a line of `benchmarks/results/suggesting-ahead.jsonl.xz`; runs that are there are not repeated.
"""

import json
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.bars import Bar, Result
from benchmarks.problems.synthetic import FUNCTIONS, Function
from benchmarks.provenance import commit
from benchmarks.records import RESULTS, read_records, summary
from benchmarks.spread import Spread
from farthing import Budget, Fidelity, LogEI, RunningTrial, Space, Study, TraceKG
from farthing.costs import FakeClock
from farthing.execution import Ended, InlineExecutor, Job
from farthing.execution.executor import Listener
from farthing.extending import Strategy
from farthing.trials import Attempt

PATH = RESULTS / "suggesting-ahead.jsonl"
WORKERS = (1, 2, 8)
FEWEST_PAIRS = 10
"""With fewer nothing is beyond error: the bar then counts as not measured. All with several workers count together
too."""
EQUAL = 1e-4
"""Regrets that differ by less count as equal: the functions range over several units, and with little effort the last
digits of what is solved, or of a local optimum, are found later."""
SECONDS = 0.05
EPOCHS = 9
PATIENCE, NOTHING = 0.3, 0.01
"""A trial may end although a worker is free where this process took next to no CPU for so many seconds: there is then
nothing to think about. By the seconds alone a busy machine ended trials in the middle of a thought."""
PROBLEMS: Mapping[str, tuple[str, Strategy, int]] = {
    "branin": ("branin", LogEI(), 30),
    "hartmann-6": ("hartmann-6", LogEI(), 40),
    "hartmann-6, long": ("hartmann-6", LogEI(), 120),
    "hartmann-6, longest": ("hartmann-6", LogEI(), 400),
    "hartmann-3, curves": ("hartmann-3", TraceKG(), 25),
}
"""The function, the strategy and the number of trials by the problem's name."""

Key = tuple[str, int, bool, int]


class Thinking:
    """CPU time of this process, so that the effort of a suggestion does not depend on what else the machine does."""

    def now(self) -> float:
        return time.time()

    def elapsed(self) -> float:
        return time.process_time()


class InOrder:
    """Runs the work of several workers in this process: the job that began first ends first."""

    def __init__(self, work: "Work", study: Study, *, workers: int, is_ahead: bool) -> None:
        self.works_in_wait, self.workers = not is_ahead, workers
        self._places = [
            InlineExecutor(work, study.problem, checkpoints=study.checkpoints, clock=work.clock) for _ in range(workers)
        ]
        self._order: deque[InlineExecutor] = deque()
        self._woken = threading.Event()

    @property
    def free(self) -> int:
        return sum(place.free for place in self._places)

    @property
    def running(self) -> tuple[Attempt, ...]:
        return tuple(attempt for place in self._places for attempt in place.running)

    def submit(self, job: Job) -> None:
        place = next(place for place in self._places if place.free)
        place.submit(job)
        self._order.append(place)

    def wait(self, listener: Listener, *, timeout: float | None = None) -> list[Ended]:
        """Where a worker is free the strategy thinks, as a rule: no trial ends before it has thought."""
        if not self.works_in_wait and self.free and self._has_thought():
            self._woken.clear()
            return []
        return self._order.popleft().wait(listener) if self._order else []

    def _has_thought(self) -> bool:
        before = -math.inf
        while (spent := time.process_time()) - before > NOTHING:
            before = spent
            if self._woken.wait(PATIENCE):
                return True
        return False

    def wake(self) -> None:
        self._woken.set()

    def close(self) -> None:
        for place in self._places:
            place.close()


class Work:
    """A function whose error falls with the epochs, if it has any; its seconds pass at once."""

    def __init__(self, function: Function) -> None:
        self.value, self.clock = function.full_value, FakeClock()

    def __call__(self, trial: RunningTrial) -> float:
        value, epochs = self.value(trial.params), int(trial.fidelity.get("epochs", 0))
        self.clock.advance(SECONDS)
        for epoch in range(1, epochs + 1):
            trial.report(value + 1.0 / epoch - 1.0 / EPOCHS, epochs=epoch)
        return value + (1.0 / epochs - 1.0 / EPOCHS if epochs else 0.0)


def regret(problem: str, workers: int, is_ahead: bool, seed: int) -> float:
    """Of the recommendation, at full fidelity, after the problem's number of trials."""
    name, strategy, trials = PROBLEMS[problem]
    function = next(one for one in FUNCTIONS if isinstance(one, Function) and one.name == name)
    space = function.space()
    if isinstance(strategy, TraceKG):
        space = Space(space.parameters, fidelities={"epochs": Fidelity(1, EPOCHS, integer=True, trace=True)})
    study = Study(space, minimize="value", strategy=strategy, seed=seed, clock=Thinking())
    work = Work(function)
    study.run(
        work,
        budget=Budget(trials=trials),
        executor=InOrder(work, study, workers=workers, is_ahead=is_ahead),
        callbacks=[_stopping_after(trials - workers + 1)],
        progress=False,
    )
    return function.full_value(study.best.params) - function.best_value


def _stopping_after(trials: int) -> Callable[[Study, Any], None]:
    """Continuations are trials too, though a budget of trials does not count them."""

    def stop(study: Study, trial: Any) -> None:
        if len(study.history.done) >= trials:
            study.stop()

    return stop


def run(*, seeds: int, quick: bool) -> Result:
    records = _read(PATH)
    for seed, problem, workers, is_ahead in product(range(2 if quick else seeds), PROBLEMS, WORKERS, (True, False)):
        key = (problem, workers, is_ahead, seed)
        if key not in records:
            records[key] = regret(*key)
            _write(PATH, key, records[key])
    cells = {cell: _pairs(records, *cell) for cell in product(PROBLEMS, WORKERS)}
    rows = [{"problem": problem, "workers": n, **_row(pairs)} for (problem, n), pairs in cells.items()]
    several = _standing([pair for (_, workers), pairs in cells.items() if workers > 1 for pair in pairs])
    worse = [f"{row['problem']} with {row['workers']} workers" for row in rows if _is_worse(row)]
    worse += ["all with several workers together"] if _is_worse(several) else []
    is_enough = min(row["n"] for row in rows) >= FEWEST_PAIRS
    bar = Bar(
        what="regret with suggesting ahead is worse, beyond error",
        bar="nowhere",
        measured=", ".join(worse) or ("nowhere" if is_enough else None),
        holds=is_enough and not worse,
    )
    commits = ", ".join(summary(read_records(PATH))["commits"])
    return Result(
        figures={"runs of commit": commits, "all with several workers": several, "regret": rows},
        bars=[bar],
        left_out=[],
    )


Pairs = Sequence[tuple[float, float]]
"""The regret with suggesting ahead and without it, of one seed each."""


def _pairs(records: Mapping[Key, float], problem: str, workers: int) -> Pairs:
    ahead, without = (
        {key[3]: found for key, found in records.items() if key[:3] == (problem, workers, is_ahead)}
        for is_ahead in (True, False)
    )
    return [(ahead[seed], without[seed]) for seed in ahead if seed in without]


def _row(pairs: Pairs) -> dict[str, Any]:
    return {
        "ahead": str(Spread.of(a for a, _ in pairs)),
        "without": str(Spread.of(b for _, b in pairs)),
        "worst, ahead": max(a for a, _ in pairs),
        "worst, without": max(b for _, b in pairs),
        **_standing(pairs),
    }


def _standing(pairs: Pairs) -> dict[str, Any]:
    lost, differ = sum(a > b + EQUAL for a, b in pairs), sum(abs(a - b) > EQUAL for a, b in pairs)
    return {
        "better–worse": f"{differ - lost}–{lost}",
        "chance of as many losses": sum(math.comb(differ, k) for k in range(lost, differ + 1)) / 2**differ,
        "n": len(pairs),
    }


def _is_worse(standing: Mapping[str, Any]) -> bool:
    return bool(standing["chance of as many losses"] < 0.05)


def _read(path: Path) -> dict[Key, float]:
    forms = read_records(path)
    return {(form["problem"], form["workers"], form["ahead"], form["seed"]): form["regret"] for form in forms}


def _write(path: Path, key: Key, found: float) -> None:
    problem, workers, is_ahead, seed = key
    form = {"problem": problem, "workers": workers, "ahead": is_ahead, "seed": seed, "regret": found, **commit()}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(form) + "\n")
