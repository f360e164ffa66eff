"""What trials paid, apart by what it was for: setting up, and the work itself.

A trial that reports as it trains shows both. The cost between two reports is work alone, so it gives the rate at which
this configuration pays for work; what the trial paid beyond that rate is its set-up: libraries, data, a device, a
checkpoint to read and to write.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from statistics import median

import numpy as np

from farthing.models.linalg import Array, BoolArray
from farthing.trials import History, Measurement, State, Trial
from farthing.trials.memos import places_changed
from farthing.trials.workers import began_its_worker


@dataclass(frozen=True, eq=False)
class Paid:
    """Trials row by row: `work` is the share of the full work that each did, `cost` what it paid in all.

    `rate` is what the full work would cost at the rate between its reports, NaN where a trial has too few of them.
    `is_first` says that the trial was the first of its process, `is_continued` that it began from a checkpoint.
    """

    work: Array
    cost: Array
    rate: Array
    is_first: BoolArray
    is_continued: BoolArray

    @classmethod
    def whole(cls, cost: Array, work: Array | None = None) -> "Paid":
        """Costs of which nothing is known but their sums; of the full work, unless `work` says otherwise."""
        none = np.zeros(cost.size, dtype=bool)
        return cls(np.ones(cost.size) if work is None else work, cost, np.full(cost.size, np.nan), none, none)

    @classmethod
    def by(cls, history: History, trials: Sequence[Trial], *, saves: bool = False) -> "Paid":
        """What these trials paid, each of which `has_paid`; `saves` says that programs keep their own state."""
        rates = history.memo(Rates)
        return cls(
            work=np.array([work_of(history, trial, saves=saves) for trial in trials], dtype=float),
            cost=np.array([trial.cost for trial in trials], dtype=float),
            rate=np.array([rates[trial.number] for trial in trials], dtype=float),
            is_first=np.array([began_its_worker(history, trial) for trial in trials], dtype=bool),
            is_continued=np.array([begun_at(history, trial, saves=saves) > 0.0 for trial in trials], dtype=bool),
        )

    def take(self, rows: BoolArray) -> "Paid":
        return Paid(self.work[rows], self.cost[rows], self.rate[rows], self.is_first[rows], self.is_continued[rows])

    @cached_property
    def setup(self) -> Array:
        """The cost beyond the rate, at least zero; NaN where no rate is known."""
        return np.maximum(self.cost - self.rate * self.work, 0.0)


def has_paid(history: History, trial: Trial, *, saves: bool = False) -> bool:
    """Whether the cost of a trial tells what its work costs."""
    return trial.state is State.DONE and trial.cost > 0.0 and work_of(history, trial, saves=saves) > 0.0


def work_of(history: History, trial: Trial, *, saves: bool = False) -> float:
    """The share of the full work that a trial did, without what it began with."""
    return history.reach(trial) - begun_at(history, trial, saves=saves)


def begun_at(history: History, trial: Trial, *, saves: bool = False) -> float:
    """The share of the full work that a trial began with: none without a checkpoint, unless programs keep their own."""
    if trial.resume_from is None or not (saves or trial.resume_checkpoint is not None):
        return 0.0
    return history.reach(history[trial.resume_from])


class Rates:
    """The rates of all trials of a history, by number: a memo, which looks at new reports only."""

    def __init__(self) -> None:
        self._trials: list[Trial] = []
        self._rates: list[float] = []

    def of(self, history: History) -> Sequence[float]:
        trials = list(history)
        rates = [*self._rates[: len(trials)], *[math.nan] * (len(trials) - len(self._rates))]
        for place in places_changed(self._trials[: len(trials)], trials):
            rates[place] = rate_of(history, trials[place])
        self._trials, self._rates = trials, rates
        return rates


def rate_of(history: History, trial: Trial) -> float:
    """The cost of the full work at the median rate between the reports of a trial; NaN with fewer than two of them.

    The median, because one increment in a few is long for reasons of the machine. Where some cost nothing, the work
    charges its amounts at other times than it reports, and its sum alone tells something.
    """
    rates = [cost / work for cost, work in increments(history, trial) if work > 0.0]
    return median(rates) if rates and min(rates) > 0.0 else math.nan


def increments(history: History, trial: Trial) -> list[tuple[float, float]]:
    """What was paid between two reports, and the share of the full work that was done meanwhile.

    None where the first report cost nothing: then costs are charged at other times than values are reported.
    """
    if not any(fidelity.trace for fidelity in history.problem.space.fidelities.values()):
        return []
    reached = list[tuple[float, float]]()
    paid = 0.0
    for point in trial.measurements:
        if point.attempt != trial.attempt:
            continue
        paid += math.fsum(point.cost.values())
        if point.value is not None and point.fidelity:
            reached.append((paid, _share(history, trial, point)))
    if not reached or reached[0][0] <= 0.0:
        return []
    return [(later[0] - earlier[0], later[1] - earlier[1]) for earlier, later in pairwise(reached)]


def _share(history: History, trial: Trial, point: Measurement) -> float:
    at: Mapping[str, float] = {**trial.fidelity, **point.fidelity}
    return history.problem.reach(at)
