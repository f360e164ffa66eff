"""Rungs for runs of any length: halving takes over runs that something else began."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from statistics import median

from farthing.strategies.multifidelity.basket import continuing_saves, starts_at
from farthing.strategies.multifidelity.halving import Rungs
from farthing.strategies.multifidelity.levels import COMPLETE
from farthing.strategies.multifidelity.runs import Run, runs_of
from farthing.trials import Trial


@dataclass(frozen=True)
class TracedRungs(Rungs):
    """A run stands on every rung that its curve has passed, with its loss there. The fidelity is the only one.

    Nothing is promoted that is expected to cost more than `limit`, at the cost per fidelity of the run so far.
    """

    limit: float = inf

    @cached_property
    def runs(self) -> list[Run]:
        return runs_of(self.history)

    @cached_property
    def ended(self) -> list[list[Trial]]:
        rungs: list[list[Trial]] = [[] for _ in self.levels]
        for run in self.runs:
            for trial in (*self._stops(run), *run.failed):
                if (rung := self.rung_of(trial)) is not None:
                    rungs[rung].append(trial)
        return rungs

    def may_go_on(self, trial: Trial) -> bool:
        """As the run really stands: a complete one has nothing to add."""
        last = self.history[trial.number]
        is_complete = self.history.reach(last) >= COMPLETE
        return not is_complete and super().may_go_on(last) and self._price(trial) <= self.limit

    @property
    def may_start(self) -> bool:
        """Whether another run to the lowest rung is expected to cost no more than the limit."""
        rates = [_rate(run) for run in self.runs if run.last is not None]
        return not rates or median(rates) * self._share(0) <= self.limit

    def _price(self, trial: Trial) -> float:
        """The expected cost of a promotion."""
        rung, run = self.rung_of(trial), self._by_last[trial.number]
        assert rung is not None, "only trials on a rung are promoted"
        begun = starts_at(run, is_saving=self._is_saving)[0]
        return _rate(run) * float(self._share(rung + 1) - begun)

    def _share(self, rung: int) -> float:
        return self.levels[rung] / self.levels[-1]

    @cached_property
    def _by_last(self) -> dict[int, Run]:
        return {run.last.number: run for run in self.runs if run.last is not None}

    @cached_property
    def _is_saving(self) -> bool:
        return continuing_saves(self.history)

    def _stops(self, run: Run) -> Iterator[Trial]:
        """The last trial of a run as if it had stopped at each rung that it passed."""
        if run.last is None:
            return
        reached = self.history.fidelity_known(run.last)[self.fidelity]
        for rung, level in enumerate(self.levels):
            if level <= reached:
                suggestion = replace(run.last.suggestion, fidelity=self._fidelity(rung))
                yield replace(run.last, suggestion=suggestion, value=self._value(run, level))

    def _value(self, run: Run, level: float) -> float:
        """The value of a run at its first report from a level on."""
        beyond = [point for point in run.curve if point.fidelity[self.fidelity] >= level]
        first = min(beyond, key=lambda point: point.fidelity[self.fidelity])
        return float(self.history.problem.sign * first.loss)


def _rate(run: Run) -> float:
    """The cost of a full training at the cost per fidelity so far."""
    return run.cost / float(run.reached[0])
