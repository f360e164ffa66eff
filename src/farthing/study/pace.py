"""How much a run may think: so much that suggesting takes a tenth of the time of the trials, and workers do not wait.

Everything here follows from what is stored with the trials, never from a clock.
"""

import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from math import ceil

from farthing.costs import EFFORT_LEVELS, EffortLevel
from farthing.strategies.shared.effort import RECENT, SHARE, is_free, recent_median, seconds_of_a_trial
from farthing.study.knowledge import asked_with, effort_of
from farthing.trials import History, Trial

WAIT = 0.02
"""A worker waits for a suggestion that knows all results for at most this share of a trial's seconds, wherever one that
misses a result misses little (`KNOWN_FOR_EACH_MISSED`)."""
BETWEEN_LOOKS = 1.0
"""Seconds within which a process notices what others did."""
KNOWN_FOR_EACH_MISSED = 40
"""Results that a suggestion must know for each one that it misses although it has come. Branin with eight workers and
trials of 50 ms was left at a median regret of .39 after 30 trials without this limit, .09 with a limit of 8, and .02
without suggesting ahead (4 pairs each). With 20, Hartmann-6 after 40 trials was worse than without suggesting ahead in
9 of 10 pairs; of 20 and 40, on three functions of five or six numbers and other seeds, 20 won 6 of 18 pairs against
suggesting without it and 40 won 11; more effort did not help. Where a study is so short, waiting costs little."""
ALONE: EffortLevel = "screen"
"""The least effort with which suggestions are made one by one."""
PROBED_AFTER = 50
PROBED_WITHIN = 4.0
"""After this many trials with less effort, more of it is tried again if it took no more than this many times too long:
the machine may have been busy. Both are guesses, not tuned."""


def allowed_effort(history: History, *, workers: int) -> EffortLevel:
    """The most effort with which suggesting for that many workers takes a tenth of the time of their trials."""
    seconds = seconds_of_a_trial(history)
    if seconds is None or is_free(history):
        return EFFORT_LEVELS[0]
    most = SHARE * seconds / workers
    for effort in EFFORT_LEVELS[:-1]:
        if _is_allowed(history, effort, most):
            return effort
    return EFFORT_LEVELS[-1]


def suggested_together(history: History, *, workers: int) -> int:
    """How many suggestions to make at once at the least effort: as many as bring the time of each to its share, since
    of those made together all but the first know less than they could.
    """
    most = max(1, min(workers, may_miss(history)))
    seconds, taken = seconds_of_a_trial(history), recent_median(trial.overhead for trial in _suggested(history, ALONE))
    if not seconds or taken is None:
        return most
    return max(1, min(most, ceil(taken * workers / (SHARE * seconds))))


def may_miss(history: History) -> int:
    """The number of results that have come and that a suggestion may leave out all the same."""
    return history.results // KNOWN_FOR_EACH_MISSED


def queued_ahead(history: History, *, workers: int) -> int:
    """How many suggestions to keep waiting for all workers of a study: one for each that is idle and, as far as they
    may miss results, as many as there are trials that end before the next suggestions are there.
    """
    running = len(history.in_flight) - history.waiting
    seconds, taken = (
        seconds_of_a_trial(history),
        recent_median(trial.overhead * asked_with(trial) for trial in _any(history)),
    )
    ending = ceil(workers * ((taken or 0.0) + BETWEEN_LOOKS) / seconds) if seconds else 0
    return min(workers, max(0, workers - running) + min(ending, may_miss(history)))


def is_long_to_wait(history: History, effort: EffortLevel) -> bool:
    """Whether a worker that waited for a suggestion of that effort would wait for too large a share of a trial."""
    seconds, wait = seconds_of_a_trial(history), recent_median(_calls(history, effort))
    return seconds is not None and wait is not None and wait > WAIT * seconds


def _is_allowed(history: History, effort: EffortLevel, most: float) -> bool:
    taken = recent_median(trial.overhead for trial in _suggested(history, effort))
    if taken is None or taken <= most:
        return True
    last = next(_suggested(history, effort)).number
    return taken <= PROBED_WITHIN * most and len(history) - last > PROBED_AFTER


def _calls(history: History, effort: EffortLevel) -> Iterator[float]:
    """The seconds of whole calls: those of suggestions made together were shared among them."""
    return (trial.overhead * asked_with(trial) for trial in _suggested(history, effort))


def _suggested(history: History, effort: EffortLevel) -> Iterator[Trial]:
    """The latest trials suggested with that effort, the latest first. What users enqueue takes no time."""
    return reversed(history.memo(_Latest)[effort])


class _Latest:
    """The latest trials suggested with each effort, of the history that was asked about last.

    Histories grow, and with little effort the last trials with more of it are far back: looking through a whole history
    for every suggestion would take longer with every trial.
    """

    def __init__(self) -> None:
        self._history: Callable[[], History | None] = lambda: None
        self._first: Trial | None = None
        self._last: Trial | None = None
        self._looked_at = 0
        self._found: dict[EffortLevel, deque[Trial]] = {}
        self._latest: dict[EffortLevel, list[Trial]] = {}

    def of(self, history: History) -> Mapping[EffortLevel, list[Trial]]:
        if history is not self._history():
            self._look_at(history)
            self._history = weakref.ref(history)
            self._latest = {effort: list(trials) for effort, trials in self._found.items()}
        return self._latest

    def _look_at(self, history: History) -> None:
        if not self._is_of(history):
            self._looked_at = 0
            self._found = _nothing()
        for number in range(self._looked_at, len(history)):
            if (trial := history[number]).overhead > 0.0:
                self._found[effort_of(trial)].append(trial)
        self._looked_at = len(history)
        self._first, self._last = (history[0], history[-1]) if self._looked_at else (None, None)

    def _is_of(self, history: History) -> bool:
        """Whether the history has grown from the one before. Trials change while they run, what was noted does not."""
        if self._last is None or not 0 < self._looked_at <= len(history) or history[0] is not self._first:
            return False
        last = history[self._looked_at - 1]
        return (last.number, last.overhead, last.opened_at) == (
            self._last.number,
            self._last.overhead,
            self._last.opened_at,
        )


def _nothing() -> dict[EffortLevel, deque[Trial]]:
    found: dict[EffortLevel, deque[Trial]] = {}
    for effort in EFFORT_LEVELS:
        found[effort] = deque(maxlen=RECENT)
    return found


def _any(history: History) -> Iterator[Trial]:
    """The trials that a strategy suggested, the latest first."""
    return (trial for trial in reversed(history) if trial.overhead > 0.0)
