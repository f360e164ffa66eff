"""The standings of a history's runs on the rungs of one fidelity, kept up to date as the history grows."""

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from farthing.strategies.multifidelity.halving import ParamsKey, Rungs, params_key
from farthing.strategies.multifidelity.runs import Run, runs_of
from farthing.trials import History, Problem, State, Trial
from farthing.trials.memos import places_changed

Standing = tuple[float, int]
"""A loss, and the number of the trial that stands for it."""


@dataclass(frozen=True)
class Standings:
    """A run stands on every rung that its curve has passed, with its loss there; failures stand last.

    `by_rung` has the standings of each rung, the best first: each is of the last trial of a run, or of one that failed.
    `keys` are those of the params of these trials, `highest` says how high each configuration stands that has not
    failed, and `by_last` has the runs by the numbers of their last trials.
    """

    by_rung: Sequence[Sequence[Standing]]
    keys: Mapping[int, ParamsKey]
    highest: Mapping[ParamsKey, int]
    by_last: Mapping[int, Run]


@dataclass(frozen=True)
class _OfRun:
    """One run's share: standings with their rungs, and its trials' params and rungs as far as none failed."""

    run: Run
    standings: Sequence[tuple[int, Standing]]
    keys: Mapping[int, ParamsKey]
    trained: Mapping[int, int]

    @classmethod
    def of(cls, run: Run, rungs: Rungs) -> "_OfRun":
        standings = [] if run.last is None else list(enumerate(_on_its_way(run, run.last, rungs)))
        for failed in run.failed:
            if (rung := rungs.rung_of(failed)) is not None:
                standings.append((rung, (inf, failed.number)))
        keys = {trial.number: params_key(trial.params) for trial in run.trials}
        going = [trial for trial in run.trials if trial.state not in (State.FAILED, State.LOST)]
        return cls(run, standings, keys, {trial.number: rungs.rung_of(trial) or 0 for trial in going})


def _on_its_way(run: Run, last: Trial, rungs: Rungs) -> list[Standing]:
    """The loss of a run at its first report from each level on, as far as it has come."""
    reached = rungs.history.fidelity_known(last)[rungs.fidelity]
    passed = [level for level in rungs.levels if level <= reached]
    if last.state is not State.DONE or not rungs.history.is_current(last):
        return [(inf, last.number) for _ in passed]
    points = sorted((point.fidelity[rungs.fidelity], point.loss) for point in run.curve)
    return [(points[bisect_left(points, (level, -inf))][1], last.number) for level in passed]


class KeptStandings:
    """The standings of the history that was asked about last: of the next one only the runs that changed move."""

    def __init__(self, reduction: int, fidelity: str, lowest: float) -> None:
        self._reduction = reduction
        self._fidelity = fidelity
        self._lowest = lowest
        self._problem: Problem | None = None
        self._runs: list[Run] = []

    def of(self, history: History) -> Standings:
        rungs, runs = Rungs(history, self._reduction, self._fidelity, self._lowest), runs_of(history)
        if history.problem is not self._problem or len(runs) < len(self._runs):
            self._begin(history.problem, levels=len(rungs.levels))
        changed = places_changed(self._runs, runs)
        for place in changed:
            self._take_back(place)
        for place in changed:
            self._enter(place, _OfRun.of(runs[place], rungs))
        self._runs = runs
        return Standings(
            [standings.copy() for standings in self._by_rung],
            self._keys.copy(),
            self._highest.copy(),
            self._by_last.copy(),
        )

    def _begin(self, problem: Problem, *, levels: int) -> None:
        self._problem = problem
        self._runs = []
        self._kept: dict[int, _OfRun] = {}
        self._by_rung: list[list[Standing]] = [[] for _ in range(levels)]
        self._keys: dict[int, ParamsKey] = {}
        self._trained: dict[ParamsKey, dict[int, int]] = {}
        self._highest: dict[ParamsKey, int] = {}
        self._by_last: dict[int, Run] = {}

    def _enter(self, place: int, now: _OfRun) -> None:
        self._kept[place] = now
        for rung, standing in now.standings:
            insort(self._by_rung[rung], standing)
        self._keys |= now.keys
        for number, rung in now.trained.items():
            self._train(now.keys[number], {**self._trained.get(now.keys[number], {}), number: rung})
        if now.run.last is not None:
            self._by_last[now.run.last.number] = now.run

    def _take_back(self, place: int) -> None:
        if (before := self._kept.pop(place, None)) is None:
            return
        for rung, standing in before.standings:
            del self._by_rung[rung][bisect_left(self._by_rung[rung], standing)]
        for number in before.trained:
            trained = self._trained[before.keys[number]]
            self._train(before.keys[number], {other: rung for other, rung in trained.items() if other != number})
        for number in before.keys:
            del self._keys[number]
        if before.run.last is not None:
            del self._by_last[before.run.last.number]

    def _train(self, key: ParamsKey, rungs: dict[int, int]) -> None:
        """Says which trials of a configuration have not failed, and on which rungs they stand."""
        self._trained[key] = rungs
        if rungs:
            self._highest[key] = max(rungs.values())
        else:
            self._highest.pop(key, None)
