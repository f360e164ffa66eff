"""CMA-ES: an evolution strategy that learns the shape of the landscape; its cost does not grow with the trials."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

from farthing.costs import Remaining
from farthing.fields import number, whole
from farthing.strategies.shared.strategy import Randomness, Strategy
from farthing.trials import History, Suggestion

if TYPE_CHECKING:
    from farthing.strategies.shared.evolution import Distribution, Generation

NOTE = "cmaes"


@dataclass(frozen=True)
class CMAES(Strategy):
    """Covariance matrix adaptation (Hansen, 2016), at full fidelity: for many cheap trials, on many workers.

    Points of the unit cube are drawn from a normal distribution, which moves and changes its shape with every
    generation of results. No worker waits: while results are missing, more points are drawn from the same distribution,
    and results that come after their generation has ended are left out. Failed trials count as the worst of their
    generation. When the distribution has shrunk to a point, the search begins again at a random place, and in a space
    that was extended at the best configuration so far.

    Whole numbers and steps are rounded; categories are equal parts of their axis, in the order in which they are
    listed; a parameter that is inactive keeps its axis, along which nothing is learnt.

    Args:
        population: the number of results in a generation; None is 4 + 3 log d for d parameters.
        sigma: the standard deviation at the beginning, in the unit cube; the tutorial advises 0.3 of the range.
    """

    population: int | None = whole(None, least=4)
    sigma: float = number(0.3, above=0.0, most=1.0)

    def suggest(self, history: History, budget: Remaining, count: int, rng: Randomness) -> Sequence[Suggestion]:
        from farthing.models.linalg import one_thread
        from farthing.strategies.shared.evolution import seed_at

        space, numbers = history.problem.space, range(len(history), len(history) + count)
        with one_thread():
            generation = self._generation(history, rng)
            drawn = [generation.drawn(space.encoder, each, seed_at(rng, "trial", each)) for each in numbers]
        return [Suggestion(params, space.full_fidelity, note={NOTE: note}) for params, note in drawn]

    def _generation(self, history: History, rng: Randomness) -> "Generation":
        """The one that points are drawn from now: the latest, or the one after it where its results are there."""
        from farthing.strategies.shared.evolution import (
            Distribution,
            Generation,
            is_measured,
            latest_members,
            population_of,
        )

        size = self.population or population_of(history.problem.space.encoder.dimension)
        members = latest_members(history, NOTE)
        if not members:
            return Generation(len(history), self._beginning(history), size)
        state = Distribution.from_json(members[0].note[NOTE]["state"])
        latest = Generation(members[0].number, state, size, members=members)
        ended = latest.ended
        if len(ended) < size or sum(map(is_measured, ended)) < size // 2:
            return latest
        after = latest.following(history, ended, NOTE)
        return Generation(len(history), self._restarted(history, rng) if _has_converged(after) else after, size)

    def _beginning(self, history: History) -> "Distribution":
        """In the middle of the unit cube; in an extended space at the best configuration so far."""
        import numpy as np

        from farthing.strategies.shared.evolution import Distribution, best_point, is_measured

        measured = [trial for trial in history.eligible if is_measured(trial)] if history.extended_at else []
        middle = np.full(history.problem.space.encoder.dimension, 0.5)
        return Distribution.around(best_point(history, measured) if measured else middle, self.sigma)

    def _restarted(self, history: History, rng: Randomness) -> "Distribution":
        from farthing.strategies.shared.evolution import Distribution

        dimension = history.problem.space.encoder.dimension
        return Distribution.around(rng.at("restart", len(history)).random(dimension), self.sigma)


def _has_converged(distribution: "Distribution") -> bool:
    """Whether the widest step is too small, or numbers have overflowed."""
    from farthing.strategies.shared.evolution import SMALLEST_STEP

    widest = distribution.sigma * float(abs(distribution.C).max()) ** 0.5
    return not isfinite(widest) or widest < SMALLEST_STEP
