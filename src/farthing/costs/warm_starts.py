"""The cost that trials avoid by starting from a checkpoint."""

import math
from collections.abc import Iterable

from farthing.costs.paid import rate_of, work_of
from farthing.trials import History, State, Trial


def saved_by_warm_starts(history: History) -> float:
    """The cost of the work in the checkpoints that finished trials began with.

    The next interval of a member of a population continues its own run, which saves nothing; a copy does.
    """
    sources = [
        source
        for trial in history
        if trial.state is State.DONE
        and (source := _source(trial)) is not None
        and (trial.member is None or trial.member != history[source].member)
    ]
    behind = work_behind(history, sources)
    return math.fsum(behind[source] for source in sources)


def work_behind(history: History, numbers: Iterable[int]) -> dict[int, float]:
    """By number what it would cost to come as far as these trials again, without the start-up that every run pays.

    Includes the work in the checkpoint that a trial began with, but not failed attempts.
    """
    behind: dict[int, float] = {}
    for number in _with_sources(history, numbers):
        trial = history[number]
        source = _source(trial)
        own = trial.cost - trial.costs.get("failed", 0.0) - _start_up(history, trial)
        behind[number] = own if source is None else behind[source] + own
    return behind


def _with_sources(history: History, numbers: Iterable[int]) -> list[int]:
    """These trials and all that led to the checkpoints they began with, the oldest first."""
    found: set[int] = set()
    for number in numbers:
        at: int | None = number
        while at is not None and at not in found:
            found.add(at)
            at = _source(history[at])
    return sorted(found)


def _source(trial: Trial) -> int | None:
    return trial.resume_from if trial.resume_checkpoint else None


def _start_up(history: History, trial: Trial) -> float:
    """The seconds that a run took besides its training, as far as its reports tell: beyond the rate between them.

    Charged or declared amounts have no start-up: the difference between two of them is the cost of continuing.
    """
    rate = rate_of(history, trial)
    if math.isnan(rate) or any(point.charged for point in trial.measurements):
        return 0.0
    return max(0.0, trial.cost - trial.costs.get("failed", 0.0) - rate * work_of(history, trial))
