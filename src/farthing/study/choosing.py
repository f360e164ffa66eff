"""Chooses a strategy by the shape of the problem."""

from farthing.systems import Strategy
from farthing.trials import Problem


def default_strategy(problem: Problem) -> Strategy:
    """Improvement per marginal cost for stages, successive halving for one fidelity, else improvement per cost."""
    if problem.space.stages:
        from farthing.systems.pipeline.prefix_ei import PrefixEI

        return PrefixEI()
    if len(problem.space.fidelities) == 1:
        from farthing.systems.baselines.halving import ASHA

        return ASHA()
    from farthing.systems.baselines.bayesian import EIPerCost

    return EIPerCost()
