"""Whether to stop before the budget is spent: nothing better for too long, or nothing left that is worth its price."""

from typing import TYPE_CHECKING

from farthing.costs import Budget, Remaining
from farthing.errors import NoResult
from farthing.study.limits import Stopped, StopReason
from farthing.trials import History

if TYPE_CHECKING:
    from farthing.study.outlook import Outlook


class Stopping:
    """Judges a history again when another trial has ended; a budget without worth and patience costs nothing."""

    def __init__(self, budget: Budget | None) -> None:
        self._budget = budget
        self._judged = -1
        self._stopped: Stopped | None = None
        self.outlook: Outlook | None = None
        """What ten more configurations were last expected to bring, if the budget says what that is worth."""

    def reason(self, history: History, remaining: Remaining) -> Stopped | None:
        budget = self._budget
        if budget is None or (budget.worth is None and budget.patience is None):
            return None
        ended = sum(trial.is_finished for trial in history)
        if ended != self._judged:
            self._judged = ended
            self._stopped = self._patience_over(history) or self._not_worth_it(history, remaining)
        return self._stopped

    def _patience_over(self, history: History) -> Stopped | None:
        patience = self._budget.patience if self._budget else None
        if patience is None or not history.done:
            return None
        from farthing.study.outlook import costs_without_gain

        spent = costs_without_gain(history)
        if spent < patience:
            return None
        unit, value = history.problem.cost_unit, history.problem.value
        return Stopped(StopReason.PATIENCE_OVER, f"the last {spent:.4g} {unit} brought no better {value}")

    def _not_worth_it(self, history: History, remaining: Remaining) -> Stopped | None:
        worth = self._budget.worth if self._budget else None
        if worth is None:
            return None
        from farthing.study.outlook import Prospects, is_worthless

        try:
            self.outlook = Prospects.of(history).outlook(None)
        except NoResult:
            return None
        if not is_worthless(history, worth, remaining):
            return None
        return Stopped(StopReason.NOT_WORTH_IT, f"going on is not worth its price: {self.outlook}")
