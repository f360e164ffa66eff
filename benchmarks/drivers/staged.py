"""Drives strategies for pipelines on a history in memory, with a cache of stages that never forgets.

Every stage that ran is measured, every stage that was kept is marked as such, as a pipeline's run would have it. All
methods have the cache: one that does not know of it saves when it happens to repeat a prefix. That is generous to those
that remember the latest configuration only, and the same for them as long as they never go back.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from benchmarks.drivers.optuna import suggest, tpe_study
from benchmarks.measuring import CpuMeter
from benchmarks.method import Step
from benchmarks.problems import Problem
from benchmarks.problems.data import missing_package
from farthing.costs import Budget, Remaining
from farthing.space.stages import prefix
from farthing.strategies import Randomness, Strategy
from farthing.trials import History, Measurement, Params, State, Suggestion, Trial
from farthing.trials import Problem as Study


@runtime_checkable
class StagedProblem(Problem, Protocol):
    """A problem that says what each of its stages costs under given params. Its value is to be made small."""

    def stage_costs(self, params: Params) -> Sequence[float]: ...


@runtime_checkable
class NoisyProblem(Problem, Protocol):
    """A problem whose measurements differ from its value, the same for every method at the same number."""

    def measured_value(self, params: Params, *, seed: int, number: int) -> float: ...


@dataclass(frozen=True)
class Staged:
    """One strategy, told what every stage cost as it runs."""

    name: str
    strategy: Strategy
    packages: tuple[str, ...] = ("numpy", "scipy")

    @property
    def settings(self) -> Mapping[str, Any]:
        return self.strategy.to_json()

    def missing(self) -> str | None:
        return None

    def run(self, problem: Problem, *, budget: Budget, seed: int) -> Iterator[Step]:
        assert isinstance(problem, StagedProblem)
        study, rng = Study(problem.space(), seed=seed, cost_unit="cost"), Randomness(seed)
        history, cache, spent = History(study), _Cache(problem, study), 0.0
        while True:
            left = Remaining(cost=float("inf") if budget.cost is None else budget.cost - spent)
            meter = CpuMeter()
            with meter.running():
                [suggestion] = self.strategy.suggest(history, left, 1, rng)
            trial, moved = cache.evaluate(len(history), suggestion)
            spent += trial.cost
            history = history.updated([trial], version=trial.number)
            best = min(history.done, key=lambda trial: trial.value or 0.0)
            tallies = {"regret": trial.value or 0.0, "movement": moved}
            yield Step(best.params, trial.cost, meter.seconds, tallies=tallies)


@dataclass(frozen=True)
class StagedTPE:
    """Optuna's TPE with its defaults, which knows nothing of stages, with the same cache."""

    name: str
    packages: tuple[str, ...] = ("optuna", "numpy")

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"optuna": "TPESampler"}

    def missing(self) -> str | None:
        return missing_package("optuna")

    def run(self, problem: Problem, *, budget: Budget, seed: int) -> Iterator[Step]:
        assert isinstance(problem, StagedProblem)
        optuna, study = tpe_study("minimize", seed=seed), Study(problem.space(), seed=seed, cost_unit="cost")
        cache, done = _Cache(problem, study), list[Trial]()
        while True:
            meter = CpuMeter()
            with meter.running():
                asked = optuna.ask()
                params = suggest(asked, problem.space())
            trial, moved = cache.evaluate(len(done), Suggestion(params))
            done.append(trial)
            with meter.running():
                optuna.tell(asked, trial.value)
            best = min(done, key=lambda trial: trial.value or 0.0)
            yield Step(
                best.params, trial.cost, meter.seconds, tallies={"regret": trial.value or 0.0, "movement": moved}
            )


class _Cache:
    """What has been computed, and the configuration before."""

    def __init__(self, problem: StagedProblem, study: Study) -> None:
        self._problem, self._space, self._seed = problem, study.space, study.seed
        self._known: set[object] = set()
        self._before: Params | None = None

    def evaluate(self, number: int, suggestion: Suggestion) -> tuple[Trial, float]:
        """The trial, and its movement cost Γ: the price of the stages but the last that differ from the one before."""
        value = self._measured(suggestion.params, number)
        points = [*self._stages(suggestion.params), Measurement(value=value)]
        moved = self._movement(suggestion.params)
        self._before = suggestion.params
        return Trial(number, suggestion, State.DONE, measurements=tuple(points), value=value), moved

    def _measured(self, params: Params, number: int) -> float:
        if isinstance(self._problem, NoisyProblem):
            return self._problem.measured_value(params, seed=self._seed, number=number)
        return self._problem.full_value(params)

    def _stages(self, params: Params) -> Iterator[Measurement]:
        prices = self._problem.stage_costs(params)
        for step, price in enumerate(prices):
            key = prefix(self._space, params, step + 1)
            is_kept = key in self._known and step < len(prices) - 1
            self._known.add(key)
            yield (
                Measurement(step=step, saved={"cache": price})
                if is_kept
                else Measurement(step=step, cost={"stage": price})
            )

    def _movement(self, params: Params) -> float:
        prices = self._problem.stage_costs(params)[:-1]
        if self._before is None:
            return sum(prices)
        before = self._before
        return sum(
            price
            for step, price in enumerate(prices, start=1)
            if prefix(self._space, params, step) != prefix(self._space, before, step)
        )
