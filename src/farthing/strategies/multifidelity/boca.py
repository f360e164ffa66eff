"""BOCA: a confidence bound chooses the configuration, the cheapest fidelity that still tells something is bought."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from farthing.strategies.multifidelity.curve_guided import CurveGuided
from farthing.trials import Suggestion

if TYPE_CHECKING:
    import numpy as np

    from farthing.acquisition.acquisition import Acquisition
    from farthing.models.gp import GP
    from farthing.models.linalg import Array
    from farthing.strategies.multifidelity.curve_search import CurveSearch, Option


@dataclass(frozen=True)
class BOCA(CurveGuided):
    """Multi-fidelity optimisation with continuous approximations (after Kandasamy et al., 2017).

    The configuration is the one whose loss at full fidelity might be lowest, μ − √β σ with β_t = 0.5 d log(2t + 1). It
    is evaluated at the cheapest fidelity at which the model is uncertain enough: where the posterior deviation exceeds
    the prior one times the information gap √(1 − ρ²) to full fidelity times (cost/full cost)^q,
    q = 1/(fidelities + d + 2). A paused run of that configuration is continued. The model is that of `TraceKG`, where
    the paper has a Gaussian kernel over the fidelities. Recommends the lowest loss expected at full
    fidelity among the configurations seen.
    """

    def _choice(self, search: "CurveSearch", rng: "np.random.Generator", *, may_be_new: bool) -> Suggestion | None:
        from farthing.acquisition.confidence_bound import ConfidenceBound, boca_beta

        dimension = search.history.problem.space.encoder.dimension
        beta = boca_beta(search.history.configurations, dimension)

        def bound(gp: "GP") -> "Acquisition":
            return ConfidenceBound(gp, beta)

        option = search.best_option(bound, rng, may_be_new=may_be_new)
        return None if option is None else search.suggestion(option, _telling_level(search, option))


def _telling_level(search: "CurveSearch", option: "Option") -> "Array":
    """The cheapest level at which σ(x, s) > √k(s, s) √(1 − ρ²(s, 1)) (cost/full cost)^q; else the most expensive."""
    import numpy as np

    levels, begun = search.targets(option)
    X = np.tile(option.x, (len(levels), 1))
    cost = search.cost(X, levels, np.tile(begun, (len(levels), 1)))
    full_cost = search.cost(X[:1], np.ones_like(levels[:1]), np.zeros_like(levels[:1]))
    rows = np.hstack([X, levels])
    q = 1.0 / (rows.shape[1] + 2)
    threshold = _information_gap(search, option.x, rows) * np.minimum(cost / full_cost, 1.0) ** q
    is_telling = np.sqrt(search.gp.predict(rows)[1]) > threshold
    if not is_telling.any():
        return np.asarray(levels[int(np.argmax(cost))])
    return np.asarray(levels[int(np.argmin(np.where(is_telling, cost, np.inf)))])


def _information_gap(search: "CurveSearch", x: "Array", rows: "Array") -> "Array":
    """√k (1 − ρ²)^½: how far f(x, s) lets f(x, 1) stray, under the prior."""
    import numpy as np

    K = search.gp.kernel.evaluate(search.gp.theta, np.concatenate([search.fidelities.at_full(x[None, :]), rows])).K
    variance = np.diag(K)
    unexplained = 1.0 - K[0, 1:] ** 2 / (variance[0] * variance[1:])
    return np.asarray(np.sqrt(variance[1:] * np.maximum(unexplained, 0.0)))
