"""Rungs for runs of any length: halving takes over runs that something else began."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from statistics import median

from farthing.strategies.multifidelity.basket import continuing_saves, starts_at
from farthing.strategies.multifidelity.halving import Rungs
from farthing.strategies.multifidelity.levels import COMPLETE
from farthing.strategies.multifidelity.runs import Run, runs_of
from farthing.trials import State, Trial

RECENT = 32
"""Runs whose costs stand for that of the next one. A limit on time, not tuned."""


@dataclass(frozen=True)
class TracedRungs(Rungs):
    """A run stands on every rung that its curve has passed, with its loss there. The fidelity is the only one.

    Nothing is promoted that is expected to cost more than `limit`, at the cost per fidelity of the run so far.
    """

    limit: float = inf

    @cached_property
    def runs(self) -> list[Run]:
        return runs_of(self.history)

    def best(self, rung: int) -> Iterator[Trial]:
        standing = sorted(self.standing[rung])[: len(self.standing[rung]) // self.reduction]
        return (self.stopped(self.history[number], rung) for _, number in standing)

    @cached_property
    def standing(self) -> list[list[tuple[float, int]]]:
        """The loss of each run at each rung that it passed, and the number of its last trial; failures are last."""
        rungs: list[list[tuple[float, int]]] = [[] for _ in self.levels]
        for run in self.runs:
            if run.last is not None:
                for rung, loss in enumerate(self._losses(run, run.last)):
                    rungs[rung].append((loss, run.last.number))
            for failed in run.failed:
                if (rung_of := self.rung_of(failed)) is not None:
                    rungs[rung_of].append((inf, failed.number))
        return rungs

    def may_go_on(self, trial: Trial) -> bool:
        """As the run really stands: a complete one has nothing to add."""
        last = self.history[trial.number]
        is_complete = self.history.reach(last) >= COMPLETE
        return not is_complete and super().may_go_on(last) and self._price(trial) <= self.limit

    @property
    def may_start(self) -> bool:
        """Whether another run to the lowest rung is expected to cost no more than the limit."""
        rates = [_rate(run) for run in self.runs[-RECENT:] if run.last is not None and self.limit < inf]
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

    def _losses(self, run: Run, last: Trial) -> list[float]:
        """The loss of a run at its first report from each level on, as far as it has come."""
        reached = self.history.fidelity_known(last)[self.fidelity]
        passed = [level for level in self.levels if level <= reached]
        if last.state is not State.DONE or not self.history.is_current(last):
            return [inf] * len(passed)
        points = sorted((point.fidelity[self.fidelity], point.loss) for point in run.curve)
        return [points[bisect_left(points, (level, -inf))][1] for level in passed]

    def stopped(self, trial: Trial, rung: int) -> Trial:
        """The last trial of a run as if it had stopped at a rung that it passed."""
        return replace(trial, suggestion=replace(trial.suggestion, fidelity=self._fidelity(rung)))


def _rate(run: Run) -> float:
    """The cost of a full training at the cost per fidelity so far."""
    return run.cost / float(run.reached[0])
