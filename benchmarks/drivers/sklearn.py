"""Searches over scikit-learn pipelines for equal CPU seconds.

Every evaluation is made for real by the method that asks for it, on one BLAS thread, and costs the CPU seconds that it
took, with hashing and with what is read from and written to caches. All three keep every transformed fold:

- `search-prefix-ei`: the stages of `farthing.integrations.sklearn`, decided by `PrefixEI`;
- `search-optuna-tpe`: the same stages and the same cache, decided by Optuna's TPE;
- `search-randomized`: what `RandomizedSearchCV` does with `Pipeline(memory=…)`, candidate by candidate.
"""

import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.drivers.optuna import suggest, tpe_study
from benchmarks.measuring import CpuMeter
from benchmarks.method import Step
from benchmarks.pipelines.sklearn import Table
from benchmarks.problems import Params, Problem
from benchmarks.problems.data import missing_package
from farthing.costs import Budget
from farthing.execution import Pipeline, as_work
from farthing.space import Space
from farthing.strategies import Strategy
from farthing.strategies.plain.random import Random
from farthing.study import Study
from farthing.trials import Trial


class CpuClock:
    """CPU seconds of this process."""

    def now(self) -> float:
        return time.time()

    def elapsed(self) -> float:
        return time.process_time()


@dataclass(frozen=True)
class Search:
    """A strategy of ours, or Optuna's TPE, on the stages and the cache of `PipelineSearchCV`."""

    name: str
    strategy: Strategy | None = None
    packages: tuple[str, ...] = ("numpy", "scipy", "scikit-learn", "optuna")

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"optuna": "TPESampler"} if self.strategy is None else self.strategy.to_json()

    def missing(self) -> str | None:
        return missing_package("sklearn") or (missing_package("optuna") if self.strategy is None else None)

    def run(self, problem: Problem, *, budget: Budget, seed: int) -> Iterator[Step]:
        assert isinstance(problem, Table)
        space, work = problem.work()
        as_work(work).check(Study(space, maximize="score").problem)
        with closing(
            Study(space, maximize="score", strategy=self.strategy or Random(), seed=seed, clock=CpuClock())
        ) as study:
            deciding = _Optuna(problem.space(), seed=seed) if self.strategy is None else None
            while True:
                yield _one(study, work, deciding, problem)


def _one(study: Study, work: Pipeline, deciding: "_Optuna | None", problem: Table) -> Step:
    meter = CpuMeter()
    one_more = len(study.trials) + 1
    if deciding is not None:
        with meter.running():
            study.enqueue(deciding.ask())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study.run(work, budget=Budget(trials=one_more), executor="inline", progress=False)
    trial: Trial = study.trials[-1]
    assert trial.value is not None, trial.failure
    problem.see(trial.params, trial.value)
    if deciding is not None:
        with meter.running():
            deciding.tell(trial.value)
    best = max(study.history.done, key=lambda trial: trial.value or 0.0)
    return Step(best.params, trial.cost, meter.seconds + trial.overhead)


class _Optuna:
    def __init__(self, space: Space, *, seed: int) -> None:
        self._study = tpe_study("maximize", seed=seed)
        self._space = space
        self._asked: Any = None

    def ask(self) -> Params:
        self._asked = self._study.ask()
        params: Params = suggest(self._asked, self._space)
        return params

    def tell(self, score: float) -> None:
        self._study.tell(self._asked, score)


@dataclass(frozen=True)
class Randomized:
    """`RandomizedSearchCV` with `memory=`, a candidate at a time, as it goes through them with one job."""

    name: str
    packages: tuple[str, ...] = ("numpy", "scipy", "scikit-learn")

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"search": "RandomizedSearchCV", "memory": True}

    def missing(self) -> str | None:
        return missing_package("sklearn")

    def run(self, problem: Problem, *, budget: Budget, seed: int) -> Iterator[Step]:
        from sklearn.model_selection import RandomizedSearchCV

        assert isinstance(problem, Table)
        search, rng = problem.search(), np.random.default_rng(seed)
        best: tuple[float, Params] = (-1.0, {})
        with tempfile.TemporaryDirectory() as memory, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            while True:
                params = _drawn(problem.space(), rng)
                given = {name: [_estimator(search, name, value)] for name, value in params.items()}
                pipeline = search.estimator.set_params(memory=memory)
                began = time.process_time()
                one = RandomizedSearchCV(pipeline, given, n_iter=1, cv=search.cv, refit=False, random_state=0)
                score = float(one.fit(*problem.data).best_score_)
                cost = time.process_time() - began
                problem.see(params, score)
                best = max(best, (score, params), key=lambda pair: pair[0])
                yield Step(best[1], cost, 0.0)


def _drawn(space: Space, rng: np.random.Generator) -> Params:
    """A configuration drawn uniformly, on the scales of the parameters, as `RandomizedSearchCV` would draw it."""
    return dict(space.encoder.decode(space.encoder.snap(rng.random((1, len(space.encoder.names)))))[0])


def _estimator(search: Any, name: str, value: Any) -> Any:
    return search.alternatives[name][value] if name in search.alternatives else value
