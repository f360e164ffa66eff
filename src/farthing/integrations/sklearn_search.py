"""Searches the parameters of any scikit-learn estimator, cheap evaluations first."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import clone
from sklearn.utils import check_random_state, indexable

from farthing.costs import Budget
from farthing.errors import InvalidArgument
from farthing.files.durable import remove
from farthing.integrations.sklearn_base import SearchBase, column
from farthing.integrations.sklearn_evaluation import FOLDS, Evaluation, Resource
from farthing.integrations.sklearn_folds import VALUE, Data, split_name
from farthing.integrations.sklearn_identity import spelled
from farthing.space import Fidelity, Parameter, Space
from farthing.storage import Storage
from farthing.strategies import Strategy
from farthing.strategies.multifidelity.runs import Run, runs_of
from farthing.study import Study
from farthing.validation import refuse_unknown, shown


class SearchCV(SearchBase):
    """Searches the parameters of an estimator by cross-validation: few folds and little data first.

    It is used like `RandomizedSearchCV` and `HalvingRandomSearchCV`: `fit`, then `predict`, `best_params_`,
    `best_score_`, `best_estimator_`, `cv_results_`. Trials evaluate some of the folds, on some of the data or with some
    of the iterations; promising ones are continued with further folds and pay only for those. The configuration that is
    recommended is evaluated on all folds with everything, so that `best_score_` is a full cross-validation.

    Args:
        estimator: any estimator.
        space: its parameters, `{"C": ft.Float(0.01, 100, log=True)}`, or a `Space` of them.
        budget: what may be spent: `ft.Budget(cost=60)` is a minute of fitting and scoring.
        n_trials: how many configurations are tried, if there is no budget.
        resource: what short trials have less of: "n_samples" is the training data, otherwise an integer parameter of
            the estimator such as "n_estimators" or "max_iter"; None always uses everything.
        min_resources, max_resources: its least and its largest amount: samples, or values of the parameter. By default
            a tenth, and all of it.
        scoring, cv, refit, error_score: as in `RandomizedSearchCV`. Scorers return a number.
        strategy, storage, name: of the study; a stored search is continued, with the same data.
        n_jobs: processes that evaluate configurations; None and 1 work in this process, -1 uses all processors.
        random_state: the seed of the search. The estimator has a random state of its own.
    """

    def __init__(
        self,
        estimator: Any,
        space: Space | Mapping[str, Parameter],
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
        self.study_ = study = self._opened(
            self._space(resource, len(data.splits)), [spelled(self.estimator), data.identity, self.resource]
        )
        work = Evaluation(self.estimator, data, scorers, resource, seed)
        self._search(study, work, X, y)
        self._read(study, list(scorers), resource, n_splits=len(data.splits))
        self.ledger_ = study.ledger
        if self.storage is None:
            remove(study.checkpoints.root)  # it cannot be continued, and the search may live for long
        if self.refit:
            self._refit(resource, X, y, params)
        return self

    def _space(self, resource: Resource, n_splits: int) -> Space:
        given = dict(self.space.parameters) if isinstance(self.space, Space) else self.space
        if not isinstance(given, Mapping) or (isinstance(self.space, Space) and self.space.fidelities):
            raise InvalidArgument(
                f"The space of a search must have parameters only, got {shown(self.space)}. Write for example "
                '{"C": ft.Float(0.01, 100, log=True)}; resource= says what short trials have less of.'
            )
        refuse_unknown(given, self.estimator.get_params(), what="Parameters of the estimator", error=InvalidArgument)
        folds = {FOLDS: Fidelity(1, n_splits, integer=True, trace=True)} if n_splits > 1 else {}
        return Space(dict(given), fidelities={**resource.fidelities, **folds})

    def _search(self, study: Study, work: Evaluation, X: Any, y: Any) -> None:
        workers = effective_n_jobs(self.n_jobs)
        try:
            self._run(study, work, workers=workers)
        except ValueError:
            if not study.history.done and study.trials:  # the estimator's own error says more
                self._fitted({**study.trials[0].params}, X, y, work.data.fit_params[""])
            raise

    def _read(self, study: Study, names: Sequence[str], resource: Resource, *, n_splits: int) -> None:
        runs = [run for run in runs_of(study.history) if not run.is_running]
        chosen = [dict(run.params) for run in runs]
        is_full = np.array([run.last is not None and study.history.is_full(run.last) for run in runs])
        results: dict[str, Any] = {"mean_fit_time": np.array([run.cost / n_splits for run in runs])}
        results |= {f"param_{name}": column(name, chosen) for name in study.space.parameters} | {"params": chosen}
        for name in names:
            results |= self._scores(runs, name, is_full, n_splits=n_splits)
        results |= {amount: np.array([_reached(run, amount) for run in runs]) for amount in study.space.fidelities}
        self._choose(results | {"cost": np.array([run.cost for run in runs])}, names[0])

    def _scores(self, runs: Sequence[Run], name: str, is_full: Any, *, n_splits: int) -> dict[str, Any]:
        """The scores under one name. Folds that were not evaluated are nan; what was evaluated in full ranks first."""
        metrics = [run.last.points[-1].metrics if run.last and run.last.points else {} for run in runs]
        keys = [split_name(name, fold) for fold in range(n_splits)]
        table = np.array([[_number(point.get(key)) for point in metrics] for key in keys])
        has_any = np.isfinite(table).any(axis=0)
        means, deviations = np.full(len(runs), self._missing_score), np.full(len(runs), np.nan)
        means[has_any] = np.nanmean(table[:, has_any], axis=0)
        deviations[has_any] = np.nanstd(table[:, has_any], axis=0)
        order = list(zip(~is_full, np.where(np.isnan(means), np.inf, -means), strict=True))
        ranks = np.array([1 + sum(other < own for other in order) for own in order], dtype=np.int32)
        called = f"test_{name or VALUE}"
        splits = dict(zip(keys, table, strict=True))
        return {**splits, f"mean_{called}": means, f"std_{called}": deviations, f"rank_{called}": ranks}

    def _refit(self, resource: Resource, X: Any, y: Any, params: Mapping[str, Any]) -> None:
        began = time.perf_counter()
        full = {resource.key: resource.fidelity.high} if resource.fidelity is not None else {}
        self.best_estimator_ = self._fitted({**self.best_params_, **resource.params(full)}, X, y, params)
        self.refit_time_ = time.perf_counter() - began
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_

    def _fitted(self, chosen: Mapping[str, Any], X: Any, y: Any, params: Mapping[str, Any]) -> Any:
        model = clone(self.estimator).set_params(**chosen)
        return model.fit(X, **params) if y is None else model.fit(X, y, **params)


def _reached(run: Run, amount: str) -> float:
    trial = run.last or run.trials[-1]
    return float(trial.fidelity[amount])


def _number(score: float | None) -> float:
    return float("nan") if score is None else score
