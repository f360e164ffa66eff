"""Successive halving of several objectives and under constraints: by rank, with newcomers by a model."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from farthing.costs import Remaining
from farthing.fields import share
from farthing.strategies.multifidelity.bohb import with_newcomers
from farthing.strategies.multifidelity.halving import ASHA, Rungs, numbers_left
from farthing.strategies.shared.strategy import Randomness
from farthing.trials import History, State, Suggestion, Trial
from farthing.trials.objectives import is_feasible, values_of

PROOFS = 3
"""Runs beyond a limit that were continued and stayed beyond it, after which no other is continued. A guess."""


@dataclass(frozen=True)
class ParetoHalving(ASHA):
    """Asynchronous successive halving by non-dominated rank, whose new configurations come from a model.

    The best fraction of a rung is continued, of it first those that add the most hypervolume for their cost. What
    exceeds a limit comes after all that keeps it, and is not continued at all once several such runs were continued in
    vain. New configurations are chosen by log expected hypervolume improvement on the highest rung that has enough
    results, as `LogEHVI` does; a share of them stays random.
    """

    random_share: float = share(1 / 3)

    thinking: ClassVar[float] = 0.06

    def suggest(self, history: History, budget: Remaining, count: int, rng: Randomness) -> Sequence[Suggestion]:
        rungs = self._rungs(history)
        hopeful = (trial for trial in self._promotable(rungs) if not self._is_hopeless(history, trial))
        promotions = [rungs.promotion(trial) for trial, _ in zip(hopeful, range(count), strict=False)]
        numbers = numbers_left(history, budget, count, taken=len(promotions))
        first = with_newcomers(rungs, numbers, rng, random_share=self.random_share)
        return [*promotions, *(rungs.start(one.params, rung=0, note=one.noted()) for one in first)]

    def _promotable(self, rungs: Rungs) -> Iterator[Trial]:
        for rung in reversed(range(len(rungs.levels) - 1)):
            waiting = [trial for trial in rungs.best(rung) if rungs.may_go_on(trial)]
            yield from _by_gain_per_cost(rungs, rung, waiting) if len(waiting) > 1 else waiting

    def _is_hopeless(self, history: History, trial: Trial) -> bool:
        """Whether it exceeds a limit, and no run that did has come to keep it."""
        if not history.problem.constraints or _keeps_limits(history, trial):
            return False
        ends = [
            _keeps_limits(history, later)
            for later in history
            if later.resume_from is not None
            and later.state is State.DONE
            and not _keeps_limits(history, history[later.resume_from])
        ]
        return len(ends) >= PROOFS and not any(ends)


def _keeps_limits(history: History, trial: Trial) -> bool:
    values = values_of(history.problem, trial)
    return values is not None and is_feasible(history.problem, values)


def _by_gain_per_cost(rungs: Rungs, rung: int, waiting: Sequence[Trial]) -> list[Trial]:
    """By the hypervolume of the rung that is lost without a run, for the cost of continuing it; then by place."""
    import numpy as np

    from farthing.acquisition.hypervolume import hypervolume
    from farthing.strategies.shared.cost_model import predicted_cost
    from farthing.strategies.shared.several import measured, reference_of

    ended = [trial for trial in rungs.ended(rung) if rungs.loss(trial) < np.inf]
    losses, excess = measured(rungs.history, ended)
    keeps = (excess <= 0.0).all(axis=1)
    if not keeps.any():
        return list(waiting)
    known = losses[keeps]
    low, extent = known.min(axis=0), np.ptp(known, axis=0)
    scaled = (losses - low) / np.where(extent > 0.0, extent, 1.0)
    reference = reference_of(scaled[keeps], scaled[keeps])
    whole = hypervolume(scaled[keeps], reference)
    places = {trial.number: i for i, trial in enumerate(ended)}

    def worth(trial: Trial) -> float:
        i = places[trial.number]
        others = keeps & (np.arange(len(ended)) != i)
        gain = whole - hypervolume(scaled[others], reference) if keeps[i] else 0.0
        cost = predicted_cost(rungs.history, rungs.promotion(trial))
        return gain / cost.mean if cost is not None and cost.mean > 0.0 else gain

    return sorted(waiting, key=lambda trial: (-worth(trial), rungs.loss(trial)))
