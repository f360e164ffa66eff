"""Rungs for runs of any length: halving takes over runs that something else began."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from statistics import median

from farthing.strategies.multifidelity.basket import continuing_saves, starts_at
from farthing.strategies.multifidelity.halving import ParamsKey, Rungs
from farthing.strategies.multifidelity.levels import COMPLETE
from farthing.strategies.multifidelity.runs import Run, runs_of
from farthing.strategies.multifidelity.standings import KeptStandings, Standings
from farthing.trials import Prediction, Suggestion, Trial

RECENT = 32
"""Runs whose costs stand for that of the next one. A limit on time, not tuned."""


@dataclass(frozen=True)
class TracedRungs(Rungs):
    """A run stands on every rung that its curve has passed, with its loss there. The fidelity is the only one.

    Nothing is promoted that is expected to cost more than `limit`, at the cost per fidelity of the run so far.
    """

    limit: float = inf

    @cached_property
    def standings(self) -> Standings:
        return self.history.memo(KeptStandings, self.reduction, self.fidelity, self.lowest)

    @property
    def highest(self) -> Mapping[ParamsKey, int]:
        return self.standings.highest

    def best(self, rung: int) -> Iterator[Trial]:
        """Without those that have a twin above, which in a long study are nearly all: no trials are made of them."""
        standing, keys, highest = self.standings.by_rung[rung], self.standings.keys, self.highest
        for _, number in standing[: len(standing) // self.reduction]:
            if highest.get(keys[number], 0) <= rung:
                yield self.stopped(self.history[number], rung)

    def may_go_on(self, trial: Trial) -> bool:
        """As the run really stands: a complete one has nothing to add."""
        last = self.history[trial.number]
        is_complete = self.history.reach(last) >= COMPLETE
        return not is_complete and super().may_go_on(last) and self._price(trial) <= self.limit

    @property
    def may_start(self) -> bool:
        """Whether another run to the lowest rung is expected to cost no more than the limit."""
        price = self._price_of_a_start
        return price is None or price <= self.limit

    def priced(self, suggestion: Suggestion) -> Suggestion:
        """The suggestion of a promotion or a start with the cost that runs so far let expect; as it is without any."""
        if suggestion.resume_from is None:
            price = self._price_of_a_start
        else:
            rung = bisect_right(self.levels, suggestion.fidelity[self.fidelity]) - 2
            price = self._price(self.stopped(self.history[suggestion.resume_from], rung))
        return replace(suggestion, predicted_cost=Prediction(price)) if price else suggestion

    @cached_property
    def _price_of_a_start(self) -> float | None:
        rates = [_rate(run) for run in runs_of(self.history)[-RECENT:] if run.last is not None]
        return median(rates) * self._share(0) if rates else None

    def _price(self, trial: Trial) -> float:
        """The expected cost of a promotion."""
        rung, run = self.rung_of(trial), self.standings.by_last[trial.number]
        assert rung is not None, "only trials on a rung are promoted"
        begun = starts_at(run, is_saving=self._is_saving)[0]
        return _rate(run) * float(self._share(rung + 1) - begun)

    def _share(self, rung: int) -> float:
        return self.levels[rung] / self.levels[-1]

    @cached_property
    def _is_saving(self) -> bool:
        return continuing_saves(self.history)

    def stopped(self, trial: Trial, rung: int) -> Trial:
        """The last trial of a run as if it had stopped at a rung that it passed."""
        return replace(trial, suggestion=replace(trial.suggestion, fidelity=self._fidelity(rung)))


def _rate(run: Run) -> float:
    """The cost of a full training at the cost per fidelity so far."""
    return run.cost / float(run.reached[0])
