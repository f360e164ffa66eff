"""The knowledge gradient at full fidelity (Wu and Frazier, 2016): the KG of the taKG paper's Figure 1."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from farthing.costs import Remaining
from farthing.strategies.multifidelity.published import PublishedTraceKG
from farthing.strategies.shared.strategy import Randomness
from farthing.trials import History, Suggestion


@dataclass(frozen=True)
class KG(PublishedTraceKG):
    """taKG where every fidelity is 1 and S = {1}: KG itself chooses the params, by the same stochastic ascent.

    Its five random starts are at full fidelity too.
    """

    zero_avoiding: bool = False
    retain: int = 1

    @property
    def floor(self) -> float:
        return 1.0

    def suggest(self, history: History, budget: Remaining, count: int, rng: Randomness) -> Sequence[Suggestion]:
        full = {name: fidelity.high for name, fidelity in history.problem.space.fidelities.items()}
        return [replace(one, fidelity=full) for one in super().suggest(history, budget, count, rng)]
