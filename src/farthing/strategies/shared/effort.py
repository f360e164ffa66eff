"""How much time a suggestion may take."""

from collections.abc import Callable, Iterable
from itertools import accumulate, islice
from math import ceil
from statistics import fmean, median

from farthing.costs import EffortLevel, Remaining
from farthing.trials import History, State, Trial

FREE = 2.0
"""Seconds of suggesting in all that any study may take, however short its trials: the first suggestions cost least
and matter most. With less effort from the start, Branin with eight workers and trials of 50 ms was left at a
median regret of .017 after 30 trials instead of .009 (worse in 5 of 7 pairs); staleness came on top. Two seconds are
those of some sixty suggestions at all their effort: with less of it after the fifth, functions that take no time were
worse than with a unit of cost after 60 evaluations in 63 of 105 pairs that differed."""
SHARE = 0.1
"""Suggesting for all workers may take this share of a trial's seconds."""
RECENT = 5
"""Trials over which the time of suggesting is compared with that of the work, and whose median stands for the next one:
the first suggestion of a process imports what the others use. A guess, not tuned."""


def effort_level(history: History, budget: Remaining) -> EffortLevel:
    """The effort that the run allows. Without a run that decides, less once suggesting takes longer than the work."""
    return budget.effort or ("frugal" if suggesting_is_expensive(history) else "ordinary")


def suggesting_is_expensive(history: History) -> bool:
    """Whether the last suggestions took longer than their trials. Only measured seconds can be compared."""
    recent = [trial for trial in history.done[-RECENT:] if _is_measured(trial)]
    if not history.problem.cost_is_time or len(recent) < RECENT or is_free(history):
        return False
    return sum(trial.overhead for trial in recent) > sum(trial.cost for trial in recent)


def is_free(history: History) -> bool:
    """Whether suggesting took so little so far that nobody has to save."""
    return all(total < FREE for total in accumulate(trial.overhead for trial in history))


def can_pay_for_model(history: History, is_of_model: Callable[[Trial], bool]) -> bool:
    """Whether so many trials were suggested since the last one of the model that another keeps to half of the share.

    All workers may have to wait for it, and those in flight stand for them. Suggestions in which the model is fitted
    take much longer than others, so that their mean counts.
    """
    of_model = list(islice(filter(is_of_model, reversed(history)), RECENT))
    seconds = seconds_of_a_trial(history)
    if not of_model or not seconds:
        return True
    taken, workers = fmean(trial.overhead for trial in of_model), len(history.in_flight) + 1
    return len(history) - of_model[0].number >= ceil(taken * workers / (0.5 * SHARE * seconds))


def seconds_of_a_trial(history: History) -> float | None:
    """The seconds that recent trials took: measured by the work, or by the storage's clock for other units of cost."""
    return recent_median(_seconds(history, trial) for trial in reversed(history) if trial.state is State.DONE)


def recent_median(numbers: Iterable[float]) -> float | None:
    """Of the first few, where the latest come first."""
    recent = list(islice(numbers, RECENT))
    return median(recent) if recent else None


def _seconds(history: History, trial: Trial) -> float:
    if history.problem.cost_is_time and not any(point.charged for point in trial.measurements):
        return trial.cost
    return max(0.0, (trial.finished_at or trial.opened_at) - trial.opened_at)


def _is_measured(trial: Trial) -> bool:
    return trial.state is State.DONE and not any(point.charged for point in trial.measurements)
