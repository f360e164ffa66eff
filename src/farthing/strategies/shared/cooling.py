"""The share of the budget that is left, for strategies that cool the weight of cost."""

from farthing.costs import Remaining
from farthing.trials import History


def share_left(history: History, budget: Remaining) -> float:
    """The share of the budget that is left, by the limit nearest to its end; all of it if there is none."""
    from farthing.acquisition.per_cost import cooling_exponent

    spent = {"cost": history.cost, "seconds": _elapsed(history), "trials": float(history.configurations)}
    left = {"cost": budget.cost, "seconds": budget.seconds, "trials": budget.trials}
    finite = {name: amount for name, amount in left.items() if amount < float("inf")}
    return min((cooling_exponent(amount, amount + spent[name]) for name, amount in finite.items()), default=1.0)


def _elapsed(history: History) -> float:
    """Seconds from the first trial to the last thing that happened to one; pauses between runs count too."""
    times = [(trial.opened_at, trial.finished_at or trial.opened_at) for trial in history]
    return max((ended for _, ended in times), default=0.0) - min((began for began, _ in times), default=0.0)
