"""Successive halving of several objectives and under constraints: by rank, with newcomers by a model."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

from farthing.costs import Remaining
from farthing.fields import share
from farthing.strategies.multifidelity.bohb import with_newcomers
from farthing.strategies.multifidelity.halving import ASHA, Rungs, numbers_left
from farthing.strategies.shared.strategy import Randomness
from farthing.trials import History, Suggestion, Trial


@dataclass(frozen=True)
class ParetoHalving(ASHA):
    """Asynchronous successive halving by non-dominated rank, whose new configurations come from a model.

    The best fraction of a rung is continued, of it first those that add the most hypervolume for their cost. Limits
    count as they are expected to be in the end: runs beyond one rank after all that keep it, and are stopped for good
    where no forecast was ever that wrong. New configurations are chosen by log expected hypervolume improvement on the
    highest rung that has enough results, as `LogEHVI` does; a share of them stays random.
    """

    random_share: float = share(1 / 3)

    thinking: ClassVar[float] = 0.06

    def suggest(self, history: History, budget: Remaining, count: int, rng: Randomness) -> Sequence[Suggestion]:
        rungs = self._rungs(history)
        promotions = [rungs.promotion(trial) for trial in islice(self._promotable(rungs), count)]
        numbers = numbers_left(history, budget, count, taken=len(promotions))
        first = with_newcomers(rungs, numbers, rng, random_share=self.random_share)
        return [*promotions, *(rungs.start(one.params, rung=0, note=one.noted()) for one in first)]

    def _promotable(self, rungs: Rungs) -> Iterator[Trial]:
        for rung in reversed(range(len(rungs.levels) - 1)):
            waiting = [trial for trial in rungs.best(rung) if rungs.may_go_on(trial)]
            hopeful = [trial for trial in waiting if not is_beyond(rungs, trial)]
            yield from _by_gain_per_cost(rungs, rung, hopeful) if len(hopeful) > 1 else hopeful


def is_beyond(rungs: Rungs, trial: Trial) -> bool:
    """Whether it can be told that the run will be beyond a limit."""
    return trial.number in rungs.in_the_end and rungs.in_the_end[trial.number].is_beyond


def _by_gain_per_cost(rungs: Rungs, rung: int, waiting: Sequence[Trial]) -> list[Trial]:
    """By the hypervolume of the rung that is lost without a run, for the cost of continuing it; then by place."""
    gains = _gains(rungs, rung)
    worth = {
        trial.number: gain / _cost(rungs, trial) for trial in waiting if (gain := gains.get(trial.number, 0.0)) > 0.0
    }
    return sorted(waiting, key=lambda trial: (-worth.get(trial.number, 0.0), rungs.loss(trial)))


def _gains(rungs: Rungs, rung: int) -> dict[int, float]:
    """The hypervolume that each run of the front of a rung alone dominates, with losses scaled to [0, 1]."""
    import numpy as np

    from farthing.acquisition.hypervolume import hypervolume, non_dominated
    from farthing.strategies.shared.several import measured, reference_of

    ended = [trial for trial in rungs.ended(rung) if rungs.loss(trial) < np.inf]
    losses, excess = measured(rungs.history, ended, rungs.excess_in_the_end)
    keeps = np.flatnonzero(np.all(excess <= 0.0, axis=1))
    if not keeps.size:
        return {}
    known = losses[keeps]
    extent = np.ptp(known, axis=0)
    scaled = (known - known.min(axis=0)) / np.where(extent > 0.0, extent, 1.0)
    on_front = np.flatnonzero(non_dominated(scaled))
    front = scaled[on_front]
    reference = reference_of(front, scaled)
    if known.shape[1] == 1:
        reference = reference + 1.0
    whole = hypervolume(front, reference)
    without = (hypervolume(np.delete(front, i, axis=0), reference) for i in range(len(front)))
    return {ended[keeps[i]].number: whole - rest for i, rest in zip(on_front, without, strict=True)}


def _cost(rungs: Rungs, trial: Trial) -> float:
    """The cost of its promotion, up to a factor that all runs of the rung share: as much more as it has cost so far."""
    history, suggestion = rungs.history, rungs.promotion(trial)
    if history.problem.declared_cost is not None:
        return history.problem.cost_of(trial.params, suggestion.fidelity)
    return sum(one.cost for one in history.lineage(trial.number)) or 1.0
