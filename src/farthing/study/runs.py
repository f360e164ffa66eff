"""Runs: what was begun once, over all the trials that carried it on."""

from collections.abc import Sequence
from functools import partial

from farthing.trials import History, Trial


def last_of_runs(trials: Sequence[Trial]) -> list[Trial]:
    """The trials that no other of these trials continues."""
    continued = {trial.resume_from for trial in trials}
    return [trial for trial in trials if trial.number not in continued]


def with_value(history: History) -> list[Trial]:
    """The trials that have ended with a value, but for those of code that is gone."""
    ended = [trial for trial in history if trial.is_finished and trial.value is not None]
    return [trial for trial in ended if not history.is_outdated(trial)]


def ranked_runs(history: History) -> list[Trial]:
    """The last trial of each run that has a value: what went furthest first, and among those the best.

    Runs with another value of a retired parameter than new ones have come last.
    """
    runs = last_of_runs(with_value(history))
    return sorted(runs, key=partial(_rank, history))


def _rank(history: History, trial: Trial) -> tuple[bool, float, float]:
    return not history.is_current(trial), -history.reach(trial), history.loss(trial.value or 0.0)
