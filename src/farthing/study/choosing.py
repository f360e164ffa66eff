"""Chooses a strategy by the shape of the problem."""

from farthing.systems import Strategy
from farthing.trials import Problem


def default_strategy(problem: Problem) -> Strategy:
    """The most information per cost where there are fidelities to choose, otherwise expected improvement per cost."""
    from farthing.systems.baselines.bayesian import EIPerCost
    from farthing.systems.multifidelity import TraceKG

    return TraceKG() if problem.space.fidelities else EIPerCost()
