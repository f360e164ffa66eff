"""Common to rules that use a model of learning curves: random starts, then one choice after another."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from farthing.costs import Remaining
from farthing.strategies.shared.randomness import Randomness
from farthing.strategies.shared.starts import first_params, starts_in_vain
from farthing.strategies.shared.strategy import Recommendation, Strategy
from farthing.trials import History, Suggestion

if TYPE_CHECKING:
    import numpy as np

    from farthing.strategies.multifidelity.curve_search import CurveSearch

STARTS = 5
"""Random configurations before the model is asked; the same number as `TraceKG` has."""


@dataclass(frozen=True)
class CurveGuided(Strategy):
    """A strategy of which a choice is all that is its own. It recommends the lowest loss expected at full fidelity."""

    takes_starts: ClassVar[bool] = True

    @abstractmethod
    def _choice(self, search: "CurveSearch", rng: "np.random.Generator", *, may_be_new: bool) -> Suggestion | None:
        """The next evaluation; None where there is nothing to continue and nothing new may begin."""

    def suggest(self, history: History, budget: Remaining, count: int, rng: Randomness) -> Sequence[Suggestion]:
        new_left = int(min(count, max(0, budget.trials)))
        starts = _start(history, max(0, min(new_left, STARTS + starts_in_vain(history) - history.configurations)), rng)
        if len(starts) == count:
            return starts
        from farthing.models.threads import one_thread
        from farthing.strategies.multifidelity.curve_search import curve_search

        with one_thread():
            search = curve_search(history)
            if search is None:
                return _start(history, new_left, rng)
            return self._chosen(search, starts, count, new_left, rng)

    def _chosen(
        self, search: "CurveSearch", starts: list[Suggestion], count: int, new_left: int, rng: Randomness
    ) -> list[Suggestion]:
        """The starts and what is chosen after them, each as if all before had returned what is expected of them."""
        chosen, search = list(starts), search.after(starts)
        while len(chosen) < count:
            is_new_left = sum(one.resume_from is None for one in chosen) < new_left
            generator = rng.at("search", len(search.history), len(chosen))
            found = self._choice(search, generator, may_be_new=is_new_left)
            if found is None:
                break
            chosen.append(found)
            search = search.after([found])
        return chosen

    def recommend(self, history: History) -> Recommendation | None:
        from farthing.models.threads import one_thread
        from farthing.strategies.multifidelity.curve_search import recommended_by_curves

        with one_thread():
            return recommended_by_curves(history)

    def resumable(self, history: History) -> set[int]:
        from farthing.strategies.multifidelity.basket import Basket
        from farthing.strategies.multifidelity.levels import Fidelities
        from farthing.strategies.multifidelity.runs import runs_of

        runs = runs_of(history)
        waiting = Basket.of(history, runs, Fidelities(history.problem.space)).places
        return {last.number for place in waiting if (last := runs[place].last) is not None}


def _start(history: History, count: int, rng: Randomness) -> list[Suggestion]:
    """Learnt or random configurations at the lower levels of fidelity, in turns: the model must see how they differ."""
    if count < 1:
        return []
    from farthing.strategies.multifidelity.levels import Fidelities

    space, numbers = history.problem.space, range(len(history), len(history) + count)
    levels = space.encoder.decode_fidelity(Fidelities(space).grid())
    lower = levels[: max(1, len(levels) // 2)]
    first = zip(numbers, first_params(history, numbers, rng), strict=True)
    return [Suggestion(one.params, lower[number % len(lower)], note=one.noted()) for number, one in first]
