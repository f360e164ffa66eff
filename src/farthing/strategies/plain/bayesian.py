"""Bayesian optimisation with a Gaussian process: expected improvement, and expected improvement per cost."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, ClassVar

from farthing.costs import Remaining
from farthing.fields import whole
from farthing.strategies.shared.effort import effort_level, seconds_of_a_trial, share_left
from farthing.strategies.shared.guessing import believed
from farthing.strategies.shared.starts import designed, new_ones, next_starts, starts_in_vain
from farthing.strategies.shared.strategy import Randomness, Strategy
from farthing.trials import History, Json, Params, Suggestion

if TYPE_CHECKING:
    from farthing.acquisition.acquisition import Acquisition
    from farthing.models.gp import GP
    from farthing.models.linalg import Array
    from farthing.strategies.shared.cost_model import FullCost
    from farthing.strategies.shared.modelling import Observations
    from farthing.strategies.shared.surrogate import Surrogate


@dataclass(frozen=True)
class LogEI(Strategy):
    """Log expected improvement over the best loss seen (Ament et al., 2023), at full fidelity, blind to cost.

    The first `initial` configurations fill the space evenly (None: two more than there are parameters, at most ten).
    Trials in flight count as if they had returned the model's prediction. Where suggesting takes too long beside the
    work, the search is shorter and hyperparameters are refitted less often. In a space with conditions a branch that
    looked bad is looked into again when the best result has stalled.
    """

    initial: int | None = whole(None, least=1)

    takes_starts: ClassVar[bool] = True
    thinking: ClassVar[float] = 0.02

    def suggest(self, history: History, budget: Remaining, count: int, rng: Randomness) -> Sequence[Suggestion]:
        full = history.problem.space.full_fidelity
        suggestions = [Suggestion(first.params, full, note=first.noted()) for first in next_starts(history)[:count]]
        if len(suggestions) == count:
            return suggestions
        seen, begun = self._observe(history), history.configurations + len(suggestions)
        size = 0 if seen.count == 0 else self._design_size(history, seen) + starts_in_vain(history)
        wanted = count if seen.count == 0 else size - begun
        design = designed(history, max(0, min(count - len(suggestions), wanted)), rng, ahead=len(suggestions))
        new = new_ones([one.params for one in design], history) if seen.count else None
        suggestions += [
            Suggestion(one.params, full, note=one.noted()) for one in design if new is None or one.params in new
        ]
        if len(suggestions) < count:
            from farthing.models.linalg import one_thread

            with one_thread():
                suggestions += self._by_model(history, seen, budget, count - len(suggestions), rng)
        return suggestions

    def _observe(self, history: History) -> "Observations":
        from farthing.strategies.shared.modelling import observe

        return observe(history)

    def _design_size(self, history: History, seen: "Observations") -> int:
        return self.initial or usual_design(history)

    def _by_model(
        self, history: History, seen: "Observations", budget: Remaining, count: int, rng: Randomness
    ) -> list[Suggestion]:
        from farthing.strategies.shared.modelling import domain_of, kernel_over
        from farthing.strategies.shared.searching import search_batch
        from farthing.strategies.shared.surrogate import Compression, fit_surrogate

        encoder, effort = history.problem.space.encoder, effort_level(self, history, budget)
        is_frugal = effort != "ordinary"
        kernel, compression = kernel_over(encoder), Compression.of(seen.loss)
        surrogate = fit_surrogate(
            seen.X,
            seen.loss,
            kernel,
            history,
            compression=compression,
            is_frugal=is_frugal,
            in_haste=effort in ("screen", "several"),
        )
        costs = self._cost_model(history, seen, is_frugal=is_frugal)
        own = looks_elsewhere(history, seen)

        def acquisition(gp: "GP") -> "Acquisition":
            improvement = self._improvement(gp, history, own=own)
            return believed(self._priced(improvement, costs, history, budget), history, results=seen.count)

        rows = search_batch(
            surrogate.gp,
            count,
            acquisition,
            domain=domain_of(encoder),
            seen=seen,
            rng=rng.at("search", len(history)),
            effort=effort,
        )
        return _described(rows, history, surrogate, costs, why=ELSEWHERE if own else None)

    def _cost_model(self, history: History, seen: "Observations", *, is_frugal: bool) -> "FullCost | None":
        return None

    def _improvement(self, gp: "GP", history: History, *, own: bool) -> "Acquisition":
        """Over the best of all, or each branch of the space over its own."""
        from farthing.acquisition.expected_improvement import LogExpectedImprovement, LogOwnImprovement
        from farthing.strategies.shared.modelling import incumbent, known_rows

        encoder = history.problem.space.encoder
        if own:
            return LogOwnImprovement(gp, known_rows(gp, encoder))
        return LogExpectedImprovement(gp, best=incumbent(gp, encoder))

    def _priced(
        self, improvement: "Acquisition", costs: "FullCost | None", history: History, budget: Remaining
    ) -> "Acquisition":
        return improvement


@dataclass(frozen=True)
class EIPerCost(LogEI):
    """Expected improvement per cost, EI/c^γ: the most improvement for the money, not for the number of trials.

    The cost of a configuration is the declared one, or learnt from the costs so far. Costs count if they differ
    much and can be predicted from the parameters; otherwise this is `LogEI`. If they count, configurations that are
    predicted to cost more than the rest of the budget are not suggested, and the initial design ends early: the rest of
    it would be bought at any price. With `cooling` (CArBO, Lee et al., 2020) γ is the share of the budget that is left:
    cheap configurations first, and the best ones at the end, cheap or not.

    Trials of less than 30 ms that take less time than the model are suggested by an evolution strategy around the best
    one, if the budget allows many of them; the note says so.
    """

    cooling: bool = True

    def suggest(self, history: History, budget: Remaining, count: int, rng: Randomness) -> Sequence[Suggestion]:
        found = self._by_evolution(history, budget, count, rng)
        return super().suggest(history, budget, count, rng) if found is None else found

    def _by_evolution(
        self, history: History, budget: Remaining, count: int, rng: Randomness
    ) -> list[Suggestion] | None:
        """None where the model pays."""
        if budget == Remaining(effort=budget.effort):
            return None
        from farthing.models.linalg import one_thread
        from farthing.strategies.shared.evolution import evolved

        if (short := short_trials(self, history, budget)) is None:
            return None
        full = history.problem.space.full_fidelity
        with one_thread():
            found = evolved(history, count, rng)
        return [Suggestion(params, full, note={"why": short.why, **note}) for params, note in found]

    def _design_size(self, history: History, seen: "Observations") -> int:
        from farthing.strategies.shared.cost_model import FEWEST_COSTS

        whole = super()._design_size(history, seen)
        may_end = self.initial is None and FEWEST_COSTS <= history.configurations < whole
        return FEWEST_COSTS if may_end and self._is_steered(history, seen) else whole

    def _is_steered(self, history: History, seen: "Observations") -> bool:
        from farthing.models.linalg import one_thread

        with one_thread():
            costs = self._cost_model(history, seen, is_frugal=False)
            return costs is not None and costs.steers

    def _cost_model(self, history: History, seen: "Observations", *, is_frugal: bool) -> "FullCost | None":
        from farthing.strategies.shared.cost_model import full_cost

        return full_cost(history, seen.loss, is_frugal=is_frugal)

    def _priced(
        self, improvement: "Acquisition", costs: "FullCost | None", history: History, budget: Remaining
    ) -> "Acquisition":
        from farthing.acquisition.acquisition import Affordable, LogValuePerCost

        if costs is None or not costs.steers:
            return improvement
        exponent = share_left(history, budget) if self.cooling else 1.0
        per_cost = LogValuePerCost(improvement, costs, exponent=exponent)
        limit = min(budget.cost, budget.seconds if history.problem.cost_unit == "seconds" else math.inf)
        return Affordable(per_cost, costs, limit) if 0.0 < limit < math.inf else per_cost


STALLED = 0.1
"""Less progress than this, as a part of the distance from the median result to the best, is none. Chosen by
`benchmarks.tuning.branch_rules` (`benchmarks/results/tuning-conditional.jsonl.xz`)."""
ELSEWHERE = "most improvement over the best of its own branch, because the best of all has stalled"


def looks_elsewhere(history: History, seen: "Observations") -> bool:
    """Whether a space has branches, and the best result has stalled for as many trials as a design has by default."""
    import numpy as np

    if not any(parameter.when for parameter in history.problem.space.parameters.values()):
        return False
    best = seen.loss.min()
    is_as_good = seen.loss <= best + STALLED * (np.median(seen.loss) - best)
    return bool(seen.count - 1 - np.argmax(is_as_good) >= usual_design(history))


def usual_design(history: History) -> int:
    return min(10, history.problem.space.encoder.dimension + 2)


def _described(
    rows: "Array", history: History, surrogate: "Surrogate", costs: "FullCost | None", *, why: str | None
) -> list[Suggestion]:
    """Suggestions of these rows, with what the models expect of each and what is to be remembered of the models."""
    encoder, note = history.problem.space.encoder, surrogate.note() | (costs.note() if costs else {})
    note |= {"why": why} if why else {}
    return [
        Suggestion(
            params,
            history.problem.space.full_fidelity,
            predicted_value=surrogate.predicted(row, sign=history.problem.sign),
            predicted_cost=costs.predicted(row) if costs else None,
            note=note | repeated(history, params),
        )
        for row, params in zip(encoder.snap(rows), encoder.decode(rows), strict=True)
    ]


def repeated(history: History, params: Params) -> dict[str, Json]:
    """The reason for an exact repeat, which is made once every configuration of a finite space was tried."""
    encoder = history.problem.space.encoder
    if len(encoder.categories) + len(encoder.discrete) < encoder.dimension:
        return {}
    number = next((trial.number for trial in history if trial.params == params), None)
    if number is None:
        return {}
    return {"why": f"the params of trial {number} again, because every configuration was tried"}


# ------------------------------------------------------------
# Recognises studies of many trials that take less time than a model takes to suggest one.


SHORT = 0.03
"""Seconds of a trial below which evolution beats every model at equal CPU time, on continuous spaces."""
MANY = 40
"""Trials for each parameter that the budget must allow: with fewer a model is better, however long it takes.
A guess, not tuned."""
PATIENCE = 30.0
"""Seconds that models may take for all trials that are left, where the budget counts trials and not time. A guess."""


@dataclass(frozen=True)
class ShortTrials:
    """About the `seconds` of a trial, and of a suggestion by a model; the number of trials that are `left`."""

    seconds: float
    model_seconds: float
    left: float

    @property
    def why(self) -> str:
        trial, model = f"{1e3 * self.seconds:.2g} ms", f"{1e3 * self.model_seconds:.2g} ms"
        allows = f"the budget allows {self.left:.0f} more"
        return f"evolution: trials take about {trial}, a model {model} for each, and {allows}"


def short_trials(strategy: Strategy, history: History, budget: Remaining) -> ShortTrials | None:
    """None where a model pays: trials are long, the model is quick, or only some are left."""
    seconds, model = seconds_of_a_trial(history), strategy.thinking
    if seconds is None or seconds > SHORT or model <= seconds:
        return None
    in_seconds = min(budget.seconds, budget.cost if history.problem.cost_is_time else inf)
    left = min(budget.trials, in_seconds / seconds)
    is_patient = min(budget.seconds, budget.cost) == inf and left * model <= PATIENCE
    if left == inf or is_patient or len(history) + left < MANY * history.problem.space.encoder.dimension:
        return None
    return ShortTrials(seconds, model, left)
