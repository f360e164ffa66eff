"""Whether to stop before the budget is spent: nothing better for too long, or nothing left that is worth its price.

And whether a trial that runs has to stop, because a hard budget is.
"""

from typing import TYPE_CHECKING

from farthing.costs import Budget, Remaining
from farthing.errors import NoResult, Pruned
from farthing.study.limits import Stopped, StopReason
from farthing.trials import History, Measurement, Trial

if TYPE_CHECKING:
    from farthing.analysis.outlook import Outlook


def end_beyond(budget: Budget | None, history: History, trial: Trial, *, heard: Measurement, seconds: float) -> None:
    """Raises `Pruned` if a hard budget ends the trial, of which the history knows what was heard.

    A report of all that was to be done ends nothing: the work has only to save and return.
    """
    if budget is None or not budget.hard or not budget.is_reached(history, seconds=seconds):
        return
    if heard.fidelity and all(heard.fidelity.get(name, 0.0) >= most for name, most in trial.fidelity.items()):
        return
    spent = {"cost": history.cost, "seconds": seconds}
    amounts = [f"{name} {spent[name]:.4g} of {most:g}" for name, most in budget.amounts.items() if name in spent]
    raise Pruned(
        f"A trial ends when a hard budget is reached, got {' and '.join(amounts)}. What it reported is kept: "
        "study.tell(trial, pruned=True)."
    )


class Stopping:
    """Judges a history again when another trial has ended; a budget without worth and patience costs nothing."""

    def __init__(self) -> None:
        self._judged: tuple[Budget, int] | None = None
        self._stopped: Stopped | None = None
        self.outlook: Outlook | None = None
        """What ten more configurations were last expected to bring, if the budget says what that is worth."""

    def reason(self, budget: Budget | None, history: History, remaining: Remaining) -> Stopped | None:
        """Why to start nothing more, by the budget in force; None to go on."""
        if budget is None or (budget.worth is None and budget.patience is None):
            return None
        judged = budget, history.finished
        if judged != self._judged:
            self._judged = judged
            self._stopped = _patience_over(budget, history) or self._not_worth_it(budget, history, remaining)
        return self._stopped

    def _not_worth_it(self, budget: Budget, history: History, remaining: Remaining) -> Stopped | None:
        if budget.worth is None:
            return None
        from farthing.analysis.outlook import Prospects, is_worthless

        try:
            self.outlook = Prospects.of(history).outlook(None)
        except NoResult:
            return None
        if not is_worthless(history, budget.worth, remaining):
            return None
        return Stopped(StopReason.NOT_WORTH_IT, f"going on is not worth its price: {self.outlook}")


def _patience_over(budget: Budget, history: History) -> Stopped | None:
    if budget.patience is None or not history.done:
        return None
    from farthing.analysis.outlook import costs_without_gain

    spent = costs_without_gain(history)
    if spent < budget.patience:
        return None
    unit, value = history.problem.cost_unit, history.problem.value
    return Stopped(StopReason.PATIENCE_OVER, f"the last {spent:.4g} {unit} brought no better {value}")
