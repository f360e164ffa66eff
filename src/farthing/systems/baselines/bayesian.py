"""Bayesian optimisation with a Gaussian process: expected improvement, and expected improvement per cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from farthing.costs import Remaining
from farthing.errors import InvalidArgument
from farthing.systems.baselines.random import sobol_params
from farthing.systems.randomness import Randomness
from farthing.systems.strategy import Strategy
from farthing.trials import History, State, Suggestion, Trial

if TYPE_CHECKING:

    from farthing.acquisition.acquisition import Acquisition
    from farthing.models.gp import GP
    from farthing.systems.cost_model import CostModel
    from farthing.systems.modelling import Observations

RECENT = 5
"""Trials over which the price of suggesting is compared with the price of the work."""


@dataclass(frozen=True)
class LogEI(Strategy):
    """Log expected improvement over the best loss seen (Ament et al., 2023), at full fidelity, blind to cost.

    The first `initial` configurations fill the space evenly (None: two more than there are parameters, at most ten).
    Trials in flight count as if they had returned what the model expects of them. Once suggesting has become dearer
    than the work itself, the search is shorter and hyperparameters are refitted less often.
    """

    initial: int | None = None

    def __post_init__(self) -> None:
        if self.initial is not None and (isinstance(self.initial, bool) or self.initial < 1):
            raise InvalidArgument(
                f"An initial design needs at least one configuration, got {self.initial!r}. Leave it out for a default."
            )

    def suggest(self, history: History, budget: Remaining, count: int, rng: Randomness) -> Sequence[Suggestion]:
        from farthing.systems.modelling import observe

        seen = observe(history)
        wanted = count if seen.count == 0 else self._design_size(history) - history.configurations
        design = sobol_params(history, max(0, min(count, wanted)), rng)
        full = history.problem.space.full_fidelity
        suggestions = [Suggestion(params, full) for params in design]
        if len(suggestions) < count:
            from farthing.models.threads import one_thread

            with one_thread():
                suggestions += self._by_model(history, seen, budget, count - len(suggestions), rng)
        return suggestions

    def _design_size(self, history: History) -> int:
        return self.initial or min(10, history.problem.space.encoder.dimension + 2)

    def _by_model(
        self, history: History, seen: "Observations", budget: Remaining, count: int, rng: Randomness
    ) -> list[Suggestion]:
        from farthing.acquisition.batch import select_batch
        from farthing.systems.modelling import domain_of, kernel_over
        from farthing.systems.searching import search
        from farthing.systems.surrogate import fit_surrogate

        encoder, is_frugal = history.problem.space.encoder, suggesting_is_dear(history)
        surrogate = fit_surrogate(seen.X, seen.loss, kernel_over(encoder), history, is_frugal=is_frugal)
        costs = self._cost_model(history, seen)
        domain = domain_of(encoder)
        generator = rng.at("search", len(history))
        rows = select_batch(
            surrogate.gp,
            count,
            pending=seen.pending,
            acquisition=lambda processes: self._acquisition(processes[0], costs, history, budget),
            maximizer=lambda function: search(function, domain, seen, rng=generator, is_frugal=is_frugal),
        )
        return [
            Suggestion(
                params,
                history.problem.space.full_fidelity,
                predicted_value=surrogate.predicted(row, sign=history.problem.sign),
                predicted_cost=costs.predicted(row) if costs else None,
                note=surrogate.note() | (costs.note() if costs else {}),
            )
            for row, params in zip(encoder.snap(rows), encoder.decode(rows), strict=True)
        ]

    def _cost_model(self, history: History, seen: "Observations") -> "CostModel | None":
        return None

    def _acquisition(self, gp: "GP", costs: "CostModel | None", history: History, budget: Remaining) -> "Acquisition":
        from farthing.acquisition.expected_improvement import LogExpectedImprovement

        return LogExpectedImprovement(gp, best=float(gp.mean(gp.X).min()))


@dataclass(frozen=True)
class EIPerCost(LogEI):
    """Expected improvement per cost, EI/c^γ: what is bought is improvement for money, not for trials.

    The cost of a configuration is the declared one, or learnt from what was paid so far; where costs do not vary this
    is `LogEI`. With `cooling` (CArBO, Lee et al., 2020) γ is the share of the budget that is left: cheap configurations
    first, and the best ones at the end, whatever they cost.
    """

    cooling: bool = True

    def _cost_model(self, history: History, seen: "Observations") -> "CostModel | None":
        from farthing.systems.cost_model import cost_model

        return cost_model(history, seen)

    def _acquisition(self, gp: "GP", costs: "CostModel | None", history: History, budget: Remaining) -> "Acquisition":
        from farthing.acquisition.per_cost import LogValuePerCost

        improvement = super()._acquisition(gp, costs, history, budget)
        if costs is None:
            return improvement
        exponent = share_left(history, budget) if self.cooling else 1.0
        return LogValuePerCost(improvement, costs, exponent=exponent)


def share_left(history: History, budget: Remaining) -> float:
    """How much of the budget is left, by the limit that is nearest to its end; all of it where there is none."""
    from farthing.acquisition.per_cost import cooling_exponent

    spent = {"cost": history.cost, "seconds": history.cost, "trials": float(history.configurations)}
    left = {"cost": budget.cost, "seconds": budget.seconds, "trials": budget.trials}
    finite = {name: amount for name, amount in left.items() if amount < float("inf")}
    return min((cooling_exponent(amount, amount + spent[name]) for name, amount in finite.items()), default=1.0)


def suggesting_is_dear(history: History) -> bool:
    """Whether the last suggestions took longer than the work they were for. Only measured seconds can be compared."""
    recent = [trial for trial in history.done[-RECENT:] if _is_measured(trial)]
    if not history.problem.measures_cost or len(recent) < RECENT:
        return False
    return sum(trial.overhead for trial in recent) > sum(trial.cost for trial in recent)


def _is_measured(trial: Trial) -> bool:
    return trial.state is State.DONE and not any(point.charged for point in trial.measurements)
