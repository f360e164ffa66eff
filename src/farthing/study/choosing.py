"""Chooses a strategy by the shape of the problem."""

from farthing.systems import Strategy
from farthing.trials import Problem


def default_strategy(problem: Problem) -> Strategy:
    """Successive halving where one fidelity can be halved, otherwise points that fill the space evenly."""
    from farthing.systems.baselines.halving import ASHA
    from farthing.systems.baselines.random import Sobol

    return ASHA() if len(problem.space.fidelities) == 1 else Sobol()
