"""Bayesian optimisation of several objectives, and under constraints: expected hypervolume improvement per cost."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from farthing.costs import Remaining
from farthing.strategies.plain.bayesian import EIPerCost, repeated
from farthing.strategies.shared.effort import effort_level
from farthing.strategies.shared.guessing import believed
from farthing.strategies.shared.strategy import Randomness
from farthing.trials import History, Suggestion

if TYPE_CHECKING:
    from farthing.acquisition.acquisition import Acquisition
    from farthing.strategies.shared.modelling import Observations
    from farthing.strategies.shared.several import Models


@dataclass(frozen=True)
class LogEHVI(EIPerCost):
    """Log expected hypervolume improvement per cost, times the probability that every constraint is kept.

    A Gaussian process models each objective, and one each limited quantity. The improvement is exact for up to three
    objectives (Emmerich et al., 2006) over the front of the means at the configurations seen, so that noise makes no
    point of it; more than three are joined by random weights (ParEGO, Knowles, 2006). With one objective it is the
    expected improvement over the best that keeps the constraints. Before anything is expected to keep them, it looks
    for what does. Costs count as in `EIPerCost`.
    """

    takes_objectives: ClassVar[bool] = True
    thinking: ClassVar[float] = 0.06

    def _by_evolution(
        self, history: History, budget: Remaining, count: int, rng: Randomness
    ) -> list[Suggestion] | None:
        return None

    def _observe(self, history: History) -> "Observations":
        from farthing.strategies.shared.several import observe_many

        return observe_many(history)

    def _by_model(
        self, history: History, seen: "Observations", budget: Remaining, count: int, rng: Randomness
    ) -> list[Suggestion]:
        from farthing.strategies.shared.modelling import domain_of
        from farthing.strategies.shared.searching import search_batch
        from farthing.strategies.shared.several import ManyObservations, fit_many

        assert isinstance(seen, ManyObservations), "this strategy observes several losses"
        problem, effort = history.problem, effort_level(self, history, budget)
        is_frugal = effort != "ordinary"
        fitted = fit_many(history, seen, rng, is_frugal=is_frugal, in_haste=effort in ("screen", "several"))
        costs = self._cost_model(history, seen, is_frugal=is_frugal)

        def acquisition(models: "Models") -> "Acquisition":
            improvement = self._priced(models.improvement(), costs, history, budget)
            return believed(improvement, history, results=seen.count)

        rows = search_batch(
            fitted.models,
            count,
            acquisition,
            domain=domain_of(problem.space.encoder),
            seen=seen,
            rng=rng.at("search", len(history)),
            effort=effort,
        )
        encoder, note = problem.space.encoder, fitted.note() | (costs.note() if costs else {})
        suggestions: list[Suggestion] = []
        for row, params in zip(encoder.snap(rows), encoder.decode(rows), strict=True):
            predicted = fitted.predicted(row, problem)
            others = {name: [one.mean, one.deviation] for name, one in predicted.items() if name != problem.value}
            suggestions.append(
                Suggestion(
                    params,
                    problem.space.full_fidelity,
                    predicted_value=predicted.get(problem.value),
                    predicted_cost=costs.predicted(row) if costs else None,
                    note=note | ({"predicted": others} if others else {}) | repeated(history, params),
                )
            )
        return suggestions
