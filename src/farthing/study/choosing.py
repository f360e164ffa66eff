"""Chooses a strategy by the shape of the problem, and says when it needs a budget."""

from farthing.costs import Budget
from farthing.errors import InvalidArgument
from farthing.strategies import Strategy
from farthing.trials import Problem


def default_strategy(problem: Problem) -> Strategy:
    """By what there is to choose: stages, fidelities, or neither."""
    if problem.space.stages:
        from farthing.strategies.pipeline.prefix_ei import PrefixEI

        return PrefixEI()
    if problem.space.fidelities:
        from farthing.strategies.multifidelity import TraceKG

        return TraceKG()
    from farthing.strategies.plain.bayesian import EIPerCost

    return EIPerCost()


def require_budget(budget: Budget | None, strategy: Strategy) -> None:
    if budget is None and not strategy.has_end:
        raise InvalidArgument(
            f"A run needs a budget, got none, and {type(strategy).__name__} has no end of its own. "
            "Give budget=ft.Budget(seconds=600)."
        )
