"""How much thinking a suggestion is worth."""

from farthing.trials import History, State, Trial

RECENT = 5
"""Trials over which the price of suggesting is compared with the price of the work."""


def suggesting_is_expensive(history: History) -> bool:
    """Whether the last suggestions took longer than the work they were for. Only measured seconds can be compared."""
    recent = [trial for trial in history.done[-RECENT:] if _is_measured(trial)]
    if not history.problem.measures_cost or len(recent) < RECENT:
        return False
    return sum(trial.overhead for trial in recent) > sum(trial.cost for trial in recent)


def _is_measured(trial: Trial) -> bool:
    return trial.state is State.DONE and not any(point.charged for point in trial.measurements)
