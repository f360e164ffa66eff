"""What trials paid, apart by what it was for: setting up, and the work itself.

A trial that reports as it trains shows both. The cost between two reports is work alone, so it gives the rate at which
this configuration pays for work; what the trial paid beyond that rate is its set-up: libraries, data, a device, a
checkpoint to read and to write.
"""

import math
from collections.abc import Mapping
from itertools import pairwise
from statistics import median

from farthing.trials import History, Measurement, State, Trial
from farthing.trials.memos import places_changed


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
        self._rates: dict[int, float] = {}

    def of(self, history: History) -> Mapping[int, float]:
        trials = list(history)
        changed = places_changed(self._trials[: len(trials)], trials)
        self._rates = self._rates | {trials[place].number: rate_of(history, trials[place]) for place in changed}
        self._trials = trials
        return self._rates


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
            reached.append((paid, share_at(history, trial, point)))
    if not reached or reached[0][0] <= 0.0:
        return []
    return [(later[0] - earlier[0], later[1] - earlier[1]) for earlier, later in pairwise(reached)]


def share_at(history: History, trial: Trial, point: Measurement) -> float:
    """The share of the full work that was done when a point was reported."""
    return history.problem.reach({**trial.fidelity, **point.fidelity})
