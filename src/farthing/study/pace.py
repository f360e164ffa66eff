"""How far a run suggests ahead, so that workers do not wait: by the figures that decide how much a strategy thinks."""

from math import ceil

from farthing.costs import EFFORT_LEVELS, EffortLevel
from farthing.strategies import Strategy
from farthing.strategies.shared.effort import RELATIVE, SHARE, seconds_of_a_trial, seconds_of_thinking
from farthing.trials import History

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


def suggested_together(strategy: Strategy, history: History, *, workers: int) -> int:
    """How many suggestions to make at once at the least effort: as many as bring the time of each to its share, since
    of those made together all but the first know less than they could.
    """
    most = max(1, min(workers, may_miss(history)))
    seconds = seconds_of_a_trial(history)
    if seconds is None:
        return most
    return max(1, min(most, ceil(_taken(strategy, history, EFFORT_LEVELS[-1]) * workers / (SHARE * seconds))))


def may_miss(history: History) -> int:
    """The number of results that have come and that a suggestion may leave out all the same."""
    return history.results // KNOWN_FOR_EACH_MISSED


def queued_ahead(strategy: Strategy, history: History, *, workers: int) -> int:
    """How many suggestions to keep waiting for all workers of a study: one for each that is idle and, as far as they
    may miss results, as many as there are trials that end before the next suggestions are there.

    None ahead for one worker: it would miss the only result that is new, and the study would depend on the clock.
    """
    idle = max(0, workers - (len(history.in_flight) - history.waiting))
    seconds = seconds_of_a_trial(history)
    if workers == 1 or seconds is None:
        return min(workers, idle)
    ending = ceil(workers * (seconds_of_thinking(strategy, history) + BETWEEN_LOOKS) / seconds)
    return min(workers, idle + min(ending, may_miss(history)))


def is_long_to_wait(strategy: Strategy, history: History, effort: EffortLevel) -> bool:
    """Whether a worker that waited for a suggestion of that effort would wait for too large a share of a trial."""
    seconds = seconds_of_a_trial(history)
    return seconds is not None and _taken(strategy, history, effort) > WAIT * seconds


def _taken(strategy: Strategy, history: History, effort: EffortLevel) -> float:
    return RELATIVE[effort] * seconds_of_thinking(strategy, history)
