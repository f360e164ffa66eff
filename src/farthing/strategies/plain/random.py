"""Search without learning: independent draws, and points that fill the space evenly."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from farthing.costs import Remaining
from farthing.strategies.shared.starts import designed, first_params, next_starts
from farthing.strategies.shared.strategy import Randomness, Strategy
from farthing.trials import History, Suggestion


@dataclass(frozen=True)
class Random(Strategy):
    """Uniform draws from the space, at full fidelity."""

    takes_starts: ClassVar[bool] = True
    takes_objectives: ClassVar[bool] = True

    @property
    def is_blind(self) -> bool:
        return type(self).suggest is Random.suggest

    def suggest(self, history: History, budget: Remaining, count: int, rng: Randomness) -> Sequence[Suggestion]:
        full = history.problem.space.full_fidelity
        numbers = range(len(history), len(history) + count)
        return [Suggestion(first.params, full, note=first.noted()) for first in first_params(history, numbers, rng)]


@dataclass(frozen=True)
class Sobol(Strategy):
    """Scrambled Sobol points, which cover the space more evenly than independent draws, at full fidelity."""

    takes_starts: ClassVar[bool] = True
    takes_objectives: ClassVar[bool] = True

    @property
    def is_blind(self) -> bool:
        return type(self).suggest is Sobol.suggest

    def suggest(self, history: History, budget: Remaining, count: int, rng: Randomness) -> Sequence[Suggestion]:
        full = history.problem.space.full_fidelity
        starts = [Suggestion(first.params, full, note=first.noted()) for first in next_starts(history)[:count]]
        rest = designed(history, count - len(starts), rng, ahead=len(starts))
        return [*starts, *(Suggestion(one.params, full, note=one.noted()) for one in rest)]
