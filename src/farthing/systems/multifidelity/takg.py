"""taKG: the trace-aware knowledge gradient (Wu, Toscano-Palmerin, Frazier and Wilson, 2020)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from farthing.costs import Remaining
from farthing.systems.baselines.random import draw
from farthing.systems.randomness import Randomness
from farthing.systems.strategy import Recommendation, Strategy
from farthing.trials import History, Prediction, Suggestion

if TYPE_CHECKING:
    from farthing.models.linalg import Array
    from farthing.systems.multifidelity.candidates import Candidates
    from farthing.systems.multifidelity.planning import Plan

START = 5
START_SHARE = 0.13
START_BUDGET = 0.5


@dataclass(frozen=True)
class TraceKG(Strategy):
    """Buys the most information about the best configuration at full fidelity, per unit of cost.

    Chooses params, every fidelity, and which paused run to continue.
    """

    zero_avoiding: bool | str = "auto"
    retain: int = 2
    samples: int | str = "map"
    basket: int | None = None
    floor: float | None = None
    batch_cost: str = "max"
    fidelity_kernel: str = "curves"

    def suggest(self, history: History, budget: Remaining, count: int, rng: Randomness) -> Sequence[Suggestion]:
        wanted = max(0, min(count, self._starts(history, budget) - history.configurations))
        starts = self._start(history, wanted, budget, rng)
        if len(starts) == count:
            return starts
        from farthing.models.threads import one_thread
        from farthing.systems.multifidelity.planning import plan

        with one_thread():
            found = plan(self, history, starts, rng)
            if found is None:
                return [*starts, *self._start(history, count - len(starts), budget, rng, after=len(starts))]
            return [*starts, *found.choose(count - len(starts), budget)]

    def recommend(self, history: History) -> Recommendation | None:
        """The lowest posterior mean at full fidelity among the configurations seen."""
        if not history.done:
            return None
        from farthing.models.threads import one_thread
        from farthing.systems.multifidelity.planning import recommended

        with one_thread():
            return recommended(self, history)

    def resumable(self, history: History) -> set[int]:
        from farthing.systems.multifidelity.basket import paused
        from farthing.systems.multifidelity.levels import Fidelities
        from farthing.systems.multifidelity.runs import runs_of

        runs = runs_of(history)
        waiting = paused(runs, Fidelities(history.problem.space))
        return {last.number for i in waiting if (last := runs[i].last) is not None}

    def _starts(self, history: History, budget: Remaining) -> int:
        """How many configurations to begin with: fewer where they would take more than half of the budget."""
        begun = [trial for trial in history if trial.is_finished and trial.resume_from is None][:START]
        spent = sum(trial.cost for trial in begun)
        whole = history.cost + budget.cost
        if not begun or spent <= 0 or math.isinf(whole):
            return START
        return min(START, max(1, int(START_BUDGET * whole / (spent / len(begun)))))

    def _start(
        self, history: History, count: int, budget: Remaining, rng: Randomness, *, after: int = 0
    ) -> list[Suggestion]:
        first = len(history) + after
        numbers = range(first, first + int(min(count, max(0, budget.trials - after))))
        fidelity = start_fidelity(history)
        return [Suggestion(params, fidelity, note={"why": "start"}) for params in draw(history, numbers, rng)]


def start_fidelity(history: History) -> dict[str, float]:
    import numpy as np

    space = history.problem.space
    m = len(space.fidelities)
    return space.encoder.decode_fidelity(np.full((1, m), START_SHARE ** (1.0 / max(m, 1))))[0]
