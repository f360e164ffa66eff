"""Chooses a strategy by the shape of the problem, and says when it needs a budget."""

from farthing.costs import Budget
from farthing.errors import InvalidArgument
from farthing.systems import Strategy
from farthing.trials import Problem


def default_strategy(problem: Problem) -> Strategy:
    """Successive halving where there is one fidelity to halve, otherwise expected improvement per cost."""
    from farthing.systems.baselines.bayesian import EIPerCost
    from farthing.systems.baselines.halving import ASHA

    return ASHA() if len(problem.space.fidelities) == 1 else EIPerCost()


def require_budget(budget: Budget | None, strategy: Strategy) -> None:
    if budget is None and not strategy.has_end:
        raise InvalidArgument(
            f"A run needs a budget, got none, and {type(strategy).__name__} has no end of its own. "
            "Give budget=ft.Budget(seconds=600)."
        )
