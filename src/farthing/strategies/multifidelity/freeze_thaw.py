"""Freeze-thaw: train the most promising run a step further, paused or new."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from farthing.strategies.multifidelity.curve_guided import CurveGuided
from farthing.trials import Suggestion

if TYPE_CHECKING:
    import numpy as np

    from farthing.acquisition.acquisition import Acquisition
    from farthing.models.gp import GP
    from farthing.models.linalg import Array
    from farthing.strategies.multifidelity.curve_search import CurveSearch


@dataclass(frozen=True)
class FreezeThawEI(CurveGuided):
    """Expected improvement of the final loss under a model of learning curves (after Swersky et al., 2014, and DyHPO).

    Every paused run and the best new configuration compete by the improvement that is expected of them at full
    fidelity; the winner is trained one level further, levels being a factor of 1.65 apart. The choice is blind to cost.
    Recommends the lowest loss expected at full fidelity among the configurations seen.
    """

    def _choice(self, search: "CurveSearch", rng: "np.random.Generator", *, may_be_new: bool) -> Suggestion | None:
        from farthing.acquisition.expected_improvement import LogExpectedImprovement

        best = search.best_mean

        def improvement(gp: "GP") -> "Acquisition":
            return LogExpectedImprovement(gp, best)

        option = search.best_option(improvement, rng, may_be_new=may_be_new)
        if option is None:
            return None
        return search.suggestion(option, _next_level(search, search.targets(option)[0]))


def _next_level(search: "CurveSearch", levels: "Array") -> "Array":
    """The least of the levels; what is no trace is at its full amount where traces are there to be short of."""
    import numpy as np

    trace = search.fidelities.is_trace
    if trace.any():
        levels = levels[np.all(levels[:, ~trace] == levels[:, ~trace].max(axis=0), axis=1)]
    return np.asarray(levels[int(np.argmin(np.prod(levels, axis=1)))])
