"""Chooses a strategy by the shape of the problem."""

from farthing.systems import Strategy
from farthing.trials import Problem


def default_strategy(problem: Problem) -> Strategy:
    """Successive halving where there is one fidelity to halve, otherwise expected improvement per cost."""
    from farthing.systems.baselines.bayesian import EIPerCost
    from farthing.systems.baselines.halving import ASHA

    return ASHA() if len(problem.space.fidelities) == 1 else EIPerCost()
