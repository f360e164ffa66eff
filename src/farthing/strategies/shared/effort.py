"""How much time a suggestion may take."""

from farthing.costs import EffortLevel, Remaining
from farthing.trials import History, State, Trial

RECENT = 5
"""Trials over which the time of suggesting is compared with that of the work. A guess, not tuned."""


def effort_level(history: History, budget: Remaining) -> EffortLevel:
    """The effort that the run allows. Without a run that decides, less once suggesting takes longer than the work."""
    return budget.effort or ("frugal" if suggesting_is_expensive(history) else "ordinary")


def suggesting_is_expensive(history: History) -> bool:
    """Whether the last suggestions took longer than their trials. Only measured seconds can be compared."""
    recent = [trial for trial in history.done[-RECENT:] if _is_measured(trial)]
    if not history.problem.cost_is_time or len(recent) < RECENT:
        return False
    return sum(trial.overhead for trial in recent) > sum(trial.cost for trial in recent)


def _is_measured(trial: Trial) -> bool:
    return trial.state is State.DONE and not any(point.charged for point in trial.measurements)
