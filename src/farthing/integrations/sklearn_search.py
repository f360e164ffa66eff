"""Searches the parameters of any scikit-learn estimator, cheap evaluations first."""

import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.metrics._scorer import _BaseScorer
from sklearn.utils import check_random_state, indexable

from farthing.costs import Budget
from farthing.errors import FarthingError, InvalidArgument
from farthing.files.durable import remove
from farthing.integrations.sklearn_base import SearchBase, column
from farthing.integrations.sklearn_evaluation import FIT_TIME, FOLDS, SCORE_TIME, Evaluation, Resource
from farthing.integrations.sklearn_folds import Data, called
from farthing.integrations.sklearn_identity import spelled
from farthing.integrations.sklearn_spaces import GivenSpace, put
from farthing.running.executors import ExecutorName
from farthing.space import Fidelity, Float, Space
from farthing.storage import Storage
from farthing.strategies import Strategy
from farthing.strategies.multifidelity.runs import Run, runs_of
from farthing.study import Study
from farthing.validation import listed, shown


class SearchCV(SearchBase):
    """Searches the parameters of an estimator by cross-validation: few folds and little data first.

    It is used like `RandomizedSearchCV` and `HalvingRandomSearchCV`: `fit`, then `predict`, `best_params_`,
    `best_score_`, `best_estimator_`, `cv_results_`. Trials evaluate some of the folds, on some of the data or with some
    of the iterations; promising ones are continued with further folds and pay only for those. The configuration that is
    recommended is evaluated on all folds with everything, so that `best_score_` is a full cross-validation.

    Args:
        estimator: any estimator.
        space: its parameters, `{"C": ft.Float(0.01, 100, log=True)}`, or a `Space` of them. As in `RandomizedSearchCV`
            a parameter may be a distribution of SciPy, or a list of options, which may be estimators and functions.
        budget: what may be spent: `ft.Budget(cost=60)` is a minute of fitting and scoring.
        n_trials: how many configurations are tried, if there is no budget; each is a row of `cv_results_`.
        resource: what short trials have less of: "n_samples" is the training data, otherwise an integer parameter of
            the estimator such as "n_estimators" or "max_iter"; None always uses everything.
        min_resources, max_resources: its least and its largest amount: samples, or values of the parameter. By default
            a tenth, and all of it.
        scoring, cv, refit, error_score, return_train_score: as in `RandomizedSearchCV`. Several scores are objectives
            of the study, and `study_.front` has what no other configuration beats; `refit` names the score whose best
            is refitted, is a function of `cv_results_` that returns a row, or is False. Where `scoring` is a function
            that returns several, `refit` must name one; it is asked for its names once, which is not counted.
        verbose: 1 shows how it goes.
        strategy, storage, name: of the study; a stored search is continued, with the same data.
        n_jobs: processes that evaluate configurations; None and 1 work in this process, -1 uses all processors.
        random_state: the seed of the search. The estimator has a random state of its own.
    """

    def __init__(
        self,
        estimator: Any,
        space: Space | Mapping[str, Any],
        *,
        budget: Budget | None = None,
        n_trials: int = 20,
        resource: str | None = "n_samples",
        min_resources: int | None = None,
        max_resources: int | None = None,
        scoring: Any = None,
        cv: Any = None,
        refit: Any = True,
        error_score: Any = np.nan,
        return_train_score: bool = False,
        verbose: int = 0,
        strategy: Strategy | str | None = None,
        storage: str | Path | Storage | None = None,
        name: str = "search",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.space = space
        self.budget = budget
        self.n_trials = n_trials
        self.resource = resource
        self.min_resources = min_resources
        self.max_resources = max_resources
        self.scoring = scoring
        self.cv = cv
        self.refit = refit
        self.error_score = error_score
        self.return_train_score = return_train_score
        self.verbose = verbose
        self.strategy = strategy
        self.storage = storage
        self.name = name
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, **params: Any) -> "SearchCV":
        """Runs the search on the data, then fits the best configuration to all of it.

        `groups` goes to the splitter; what else is given goes to the estimator's fit, in parts where it has a value per
        sample, as `sample_weight` has.
        """
        scorers = self._scorers()
        groups = params.pop("groups", None)
        X, y, groups = indexable(X, y, groups)
        data = Data(X, y, self._splits(X, y, groups), {"": params})
        resource = Resource.of(
            self.estimator, data, name=self.resource, least=self.min_resources, most=self.max_resources
        )
        seed = int(check_random_state(self.random_state).randint(2**31 - 1)) if self.random_state is not None else 0
        given = self._given_space()
        identity = [spelled(self.estimator), data.identity, self.resource]
        if given.objects:
            identity.append(spelled(given.objects))
        folds = {FOLDS: Fidelity(1, len(data.splits), integer=True, trace=True)} if len(data.splits) > 1 else {}
        space = Space(dict(given.parameters), fidelities={**resource.fidelities, **folds})
        work = Evaluation(self.estimator, given, data, scorers, resource, seed, self.return_train_score)
        if self._may_return_several():
            work = replace(work, scorers=work.named())
            self.multimetric_ = "" not in work.scorers
        if self.multimetric_:
            self._check_refit(work.scorers)
        self.study_ = study = self._opened(space, identity, objectives=work.objectives)
        self._search(study, work, X, y)
        self._read(study, given, list(work.scorers), n_splits=len(data.splits))
        self.ledger_ = study.ledger
        if self.storage is None:
            remove(study.checkpoints.root)  # it cannot be continued, and the search may live for long
        if self.refit:
            self._refit(resource, X, y, params)
        return self

    def _may_return_several(self) -> bool:
        """Whether the scores' names are those of what a function returns: a scorer of scikit-learn returns one."""
        is_function = callable(self.scoring) and not isinstance(self.scoring, _BaseScorer)
        return is_function and isinstance(self.refit, str)

    def _check_refit(self, names: Collection[str]) -> None:
        is_name = isinstance(self.refit, str) and self.refit in names
        if not (self.refit is False or callable(self.refit) or is_name):
            raise ValueError(
                f"With several scores refit must name one of them, be False, or be a function of cv_results_ that "
                f"returns a row, got {self.refit!r}. Choose one of {listed(names)}."
            )

    def _given_space(self) -> GivenSpace:
        given = dict(self.space.parameters) if isinstance(self.space, Space) else self.space
        if not isinstance(given, Mapping) or (isinstance(self.space, Space) and self.space.fidelities):
            raise InvalidArgument(
                f"The space of a search must have parameters only, got {shown(self.space)}. Write for example "
                '{"C": ft.Float(0.01, 100, log=True)}; resource= says what short trials have less of.'
            )
        return GivenSpace.of(given, self.estimator)

    def _budgets(self, study: Study) -> Iterator[Budget]:
        """Trials until there are n_trials configurations: one that is tried again, on more data, is a trial too."""
        yield from super()._budgets(study)
        is_endless = any(isinstance(one, Float) and one.step is None for one in study.space.parameters.values())
        before = 0
        for _ in range(self.n_trials):
            found = len(_configurations(study))
            if self.budget is not None or found >= self.n_trials or not (is_endless or before < found):
                return
            yield Budget(trials=study.history.configurations + self.n_trials - found)
            before = found

    def _search(self, study: Study, work: Evaluation, X: Any, y: Any) -> None:
        workers = effective_n_jobs(self.n_jobs)
        try:
            self._run(study, work, workers=workers, progress=bool(self.verbose))
        except ValueError:
            if not study.history.done and study.trials:  # the estimator's own error says more
                self._fitted(work.space.params(study.trials[0].params), X, y, work.data.fit_params[""])
            raise
        if self.budget is None and study.space.fidelities and not study.best.is_full:
            with suppress(FarthingError):  # a failure is a row of the results, as any other is
                executor: ExecutorName = "inline" if workers == 1 else "processes"
                study.verify(work, executor=executor, workers=workers, progress=False)

    def _read(self, study: Study, given: GivenSpace, names: Sequence[str], *, n_splits: int) -> None:
        """A row for each configuration, with what its fullest evaluation gave."""
        found = _configurations(study)
        runs = [max(of_one, key=lambda run: _reach(study, run)) for of_one in found]
        chosen = [given.params(run.params) for run in runs]
        is_full = np.array([run.last is not None and study.history.is_full(run.last) for run in runs])
        table = _Table([_metrics(run) for run in runs], n_splits)
        results: dict[str, Any] = {**table.spread(FIT_TIME), **table.spread(SCORE_TIME)}
        results |= {f"param_{name}": column(name, chosen) for name in study.space.parameters} | {"params": chosen}
        for name in names:
            results |= self._scores(table, name, is_full)
        results |= {amount: np.array([_reached(run, amount) for run in runs]) for amount in study.space.fidelities}
        costs = [sum(run.cost for run in of_one) for of_one in found]
        counts = self.refit if self.refit in names else names[0]
        self._choose(results | {"cost": np.array(costs)}, [counts, *(name for name in names if name != counts)])

    def _scores(self, table: "_Table", name: str, is_full: Any) -> dict[str, Any]:
        """The scores under one name. What was evaluated in full ranks first."""
        score = called(name)
        columns = table.splits(score) | table.spread(score, missing=self._missing_score)
        means = columns[f"mean_{score}"]
        order = list(zip(~is_full, np.where(np.isnan(means), np.inf, -means), strict=True))
        columns[f"rank_{score}"] = np.array([1 + sum(other < own for other in order) for own in order], dtype=np.int32)
        if self.return_train_score:
            train = called(name, of="train")
            columns |= table.splits(train) | table.spread(train, missing=self._missing_score)
        return columns

    def _refit(self, resource: Resource, X: Any, y: Any, params: Mapping[str, Any]) -> None:
        began = time.perf_counter()
        full = {resource.key: resource.fidelity.high} if resource.fidelity is not None else {}
        self.best_estimator_ = self._fitted({**self.best_params_, **resource.params(full)}, X, y, params)
        self.refit_time_ = time.perf_counter() - began
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_

    def _fitted(self, chosen: Mapping[str, Any], X: Any, y: Any, params: Mapping[str, Any]) -> Any:
        model = put(self.estimator, chosen)
        return model.fit(X, **params) if y is None else model.fit(X, y, **params)


@dataclass(frozen=True)
class _Table:
    """The scores of each row's folds. Folds that were not evaluated are nan."""

    rows: Sequence[Mapping[str, float | None]]
    n_splits: int

    def splits(self, name: str) -> dict[str, Any]:
        keys = [f"split{fold}_{name}" for fold in range(self.n_splits)]
        return {key: np.array([row.get(key, np.nan) for row in self.rows], float) for key in keys}

    def spread(self, name: str, *, missing: float = np.nan) -> dict[str, Any]:
        """Mean and deviation over the folds that were evaluated."""
        table = np.array(list(self.splits(name).values()))
        means, deviations = np.full(len(self.rows), missing), np.full(len(self.rows), np.nan)
        has_any = np.isfinite(table).any(axis=0)
        means[has_any], deviations[has_any] = (
            np.nanmean(table[:, has_any], axis=0),
            np.nanstd(table[:, has_any], axis=0),
        )
        return {f"mean_{name}": means, f"std_{name}": deviations}


def _configurations(study: Study) -> list[list[Run]]:
    """The runs of each configuration: one may be tried again, with more data, and its recommended value measured."""
    runs = [run for run in runs_of(study.history) if not run.is_running]
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(json.dumps(run.params, sort_keys=True), []).append(run)
    return list(found.values())


def _reach(study: Study, run: Run) -> float:
    return -1.0 if run.last is None else study.history.reach(run.last)


def _metrics(run: Run) -> Mapping[str, float | None]:
    return run.last.points[-1].metrics if run.last and run.last.points else {}


def _reached(run: Run, amount: str) -> float:
    trial = run.last or run.trials[-1]
    return float(trial.fidelity[amount])
