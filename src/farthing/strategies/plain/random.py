"""Search without learning: independent draws, and points that fill the space evenly."""

from collections.abc import Sequence
from dataclasses import dataclass

from farthing.costs import Remaining
from farthing.strategies.shared.design import draw_new, sobol_params
from farthing.strategies.shared.randomness import Randomness
from farthing.strategies.shared.strategy import Strategy
from farthing.trials import History, Suggestion


@dataclass(frozen=True)
class Random(Strategy):
    """Uniform draws from the space, at full fidelity."""

    def suggest(self, history: History, budget: Remaining, count: int, rng: Randomness) -> Sequence[Suggestion]:
        full = history.problem.space.full_fidelity
        numbers = range(len(history), len(history) + count)
        return [Suggestion(params, full) for params in draw_new(history, numbers, rng)]


@dataclass(frozen=True)
class Sobol(Strategy):
    """Scrambled Sobol points, which cover the space more evenly than independent draws, at full fidelity."""

    def suggest(self, history: History, budget: Remaining, count: int, rng: Randomness) -> Sequence[Suggestion]:
        full = history.problem.space.full_fidelity
        return [Suggestion(params, full) for params in sobol_params(history, count, rng)]
