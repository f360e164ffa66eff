"""Tunes a scikit-learn pipeline by cross-validation and transforms nothing twice.

    search = PipelineSearchCV(
        make_pipeline(StandardScaler(), Nystroem(), LogisticRegression()),
        {"nystroem__gamma": ft.Float(1e-3, 1, log=True), "logisticregression__C": ft.Float(1e-2, 100, log=True)},
        n_trials=30,
    )
    search.fit(X, y)

The steps are the stages of a study: what a run of first steps made of every fold is kept, and a trial that changes only
later steps starts from there.
"""

import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from farthing.costs import Budget
from farthing.errors import InvalidArgument, MissingExtra
from farthing.execution import Pipeline
from farthing.files.durable import remove
from farthing.storage import Storage
from farthing.strategies import Strategy
from farthing.study import Study
from farthing.trials import History, Trial
from farthing.validation import listed

try:
    from sklearn.base import is_classifier
    from sklearn.exceptions import FitFailedWarning
    from sklearn.metrics import check_scoring
    from sklearn.model_selection import check_cv
    from sklearn.model_selection._search import BaseSearchCV
    from sklearn.utils import check_random_state, indexable

    from farthing.integrations.sklearn_folds import VALUE, Data, split_name, work_of
    from farthing.integrations.sklearn_identity import digest_of, identity_of
    from farthing.integrations.sklearn_snapshots import Snapshots as Snapshots
    from farthing.integrations.sklearn_steps import SpaceLike, Steps
except ImportError as error:
    raise MissingExtra(
        "farthing.integrations.sklearn needs scikit-learn, which is absent. Run: pip install 'farthing[sklearn]'."
    ) from error

SEARCH = "sklearn_search"
"""The setting of a stored study that says what it is about: the pipeline, the data, and by what it scores."""


class PipelineSearchCV(BaseSearchCV):  # type: ignore[misc]
    """Searches the parameters of a `sklearn.pipeline.Pipeline` and transforms nothing twice.

    It is used like `RandomizedSearchCV`: `fit`, then `predict`, `best_params_`, `best_score_`, `best_estimator_`,
    `cv_results_`. `study_` is the study, as long as the search is not pickled, and `ledger_` its bill.

    Args:
        estimator: the pipeline. The last step is fitted and scored; those before it transform.
        space: parameters by their names in the pipeline, `{"clf__C": ft.Float(…)}`; or step by step,
            `{"clf": {"C": ft.Float(…)}}`; or a `Space` of either.
        n_trials: how many configurations are tried.
        budget: what may be spent, instead of `n_trials`: `ft.Budget(cost=60)` is a minute of work.
        alternatives: for a step whose own name is a `Choice` in the space, the estimators by their options:
            `{"reduce": {"pca": PCA(), "kernel": Nystroem()}}`.
        scoring, cv, refit: as in `RandomizedSearchCV`. Scorers get the fitted last step and transformed data, and
            return a number.
        error_score: "raise" ends the search with the first trial that fails; a number goes in its place.
        strategy, storage, name: of the study; a stored search is continued, with the same data.
        workers: processes that evaluate configurations. 1 works in this process.
        cache_limit: bytes for transformed data, or a text such as "2 GB"; 0 keeps none.
        random_state: the seed of the search. The steps have random states of their own.
    """

    def __init__(
        self,
        estimator: Any,
        space: SpaceLike,
        *,
        n_trials: int = 20,
        budget: Budget | None = None,
        alternatives: Mapping[str, Mapping[Any, Any]] | None = None,
        scoring: Any = None,
        cv: Any = None,
        refit: Any = True,
        error_score: Any = np.nan,
        strategy: Strategy | str | None = None,
        storage: str | Path | Storage | None = None,
        name: str = "pipeline",
        workers: int = 1,
        cache_limit: int | str | None = "10 GB",
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.space = space
        self.n_trials = n_trials
        self.budget = budget
        self.alternatives = alternatives
        self.scoring = scoring
        self.cv = cv
        self.refit = refit
        self.error_score = error_score
        self.strategy = strategy
        self.storage = storage
        self.name = name
        self.workers = workers
        self.cache_limit = cache_limit
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, **params: Any) -> "PipelineSearchCV":
        """Runs the search on the data, then fits the best pipeline to all of it.

        `groups` goes to the splitter; `step__name` to the fit of that step, in parts where it has a value per sample.
        """
        steps = Steps.of(self.estimator, self.space, self.alternatives or {})
        scorers = self._scorers()
        groups = params.pop("groups", None)
        X, y, groups = indexable(X, y, groups)
        data = Data(X, y, self._splits(X, y, groups), steps.fit_params(params))
        self.study_ = study = self._study(steps, data)
        self._run(study, work_of(steps, data, scorers, cache_limit=self.cache_limit))
        if self.storage is None:
            remove(study.checkpoints.root)  # it cannot be continued, and the search may live for long
        self._read(study.history, steps, list(scorers), n_splits=len(data.splits))
        self.ledger_ = study.ledger
        if self.refit:
            self._refit(steps, X, y, params)
        return self

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "study_"}

    def _scorers(self) -> dict[str, Any]:
        """The scorers by name; a single one has no name."""
        many = self.scoring if isinstance(self.scoring, Mapping) else None
        if isinstance(self.scoring, list | tuple | set):
            many = {name: name for name in self.scoring}
        self.multimetric_ = many is not None
        if many is None:
            self.scorer_ = check_scoring(self.estimator, self.scoring)
            return {"": self.scorer_}
        if self.refit not in many:
            raise ValueError(
                f"With several scores refit must name the one that counts, got {self.refit!r}. "
                f"Choose one of {listed(many)}."
            )
        self.scorer_ = {name: check_scoring(self.estimator, scoring) for name, scoring in many.items()}
        counts = str(self.refit)
        return {counts: self.scorer_[counts], **self.scorer_}

    def _splits(self, X: Any, y: Any, groups: Any) -> list[tuple[Any, Any]]:
        splitter = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        self.n_splits_ = splitter.get_n_splits(X, y, groups)
        return list(splitter.split(X, y, groups))

    def _study(self, steps: Steps, data: Data) -> Study:
        seed = None if self.random_state is None else int(check_random_state(self.random_state).randint(2**31 - 1))
        study = Study(
            steps.staged, maximize=VALUE, strategy=self.strategy, storage=self.storage, name=self.name, seed=seed
        )
        counts = self.refit if self.multimetric_ else None
        identity = digest_of([steps.fixed, data.identity, identity_of(self.scoring), counts])
        if study._settings.get(SEARCH) not in (None, identity):
            raise InvalidArgument(
                f"A stored search must continue with the pipeline, the data, the folds and the score it began with, "
                f"got others for {self.name!r}. Give the search a new name, or delete the study."
            )
        study._remember(**{SEARCH: identity})
        return study

    def _run(self, study: Study, work: Pipeline) -> None:
        fails = self.error_score == "raise"

        def stop_at_failure(study: Study, trial: Trial) -> None:
            if fails and trial.failure is not None:
                study.stop()

        study.run(
            work,
            budget=self.budget or Budget(trials=self.n_trials),
            workers=self.workers,
            executor="inline" if self.workers == 1 else "processes",
            callbacks=[stop_at_failure],
            progress=False,
            keep_going=True,  # as scikit-learn's searches do: what fails scores nan
        )
        failures = [trial.failure for trial in study.trials if trial.failure is not None]
        if failures and (fails or not study.history.done):
            what = "A trial" if fails else f"All {len(failures)} trials"
            raise ValueError(f"{what} failed: {failures[0].reason}\n{failures[0].traceback}")
        if failures:
            warnings.warn(
                f"{len(failures)} of {len(study.trials)} configurations failed and score {self.error_score}, the first "
                f"with: {failures[0].reason}. Use error_score='raise' to see where.",
                FitFailedWarning,
                stacklevel=3,
            )

    def _read(self, history: History, steps: Steps, names: Sequence[str], *, n_splits: int) -> None:
        trials = [trial for trial in history if trial.is_finished]
        chosen = [steps.params_of(trial.params) for trial in trials]
        missing = float("nan") if self.error_score == "raise" else float(self.error_score)
        results: dict[str, Any] = {"mean_fit_time": np.array([trial.cost / n_splits for trial in trials])}
        results |= {f"param_{name}": _column(name, chosen) for name in steps.names} | {"params": chosen}
        for name in names:
            results |= _score_columns(trials, name, n_splits=n_splits, missing=missing)
        results |= {"cost": np.array([trial.cost for trial in trials])}
        self.cv_results_ = results
        ranks = results[f"rank_test_{names[0] or VALUE}"]
        chosen_index: Any = self.refit(results) if callable(self.refit) else ranks.argmin()
        self.best_index_ = int(chosen_index)
        self.best_score_ = results[f"mean_test_{names[0] or VALUE}"][self.best_index_]
        self.best_params_ = chosen[self.best_index_]

    def _refit(self, steps: Steps, X: Any, y: Any, params: dict[str, Any]) -> None:
        began = time.perf_counter()
        self.best_estimator_ = steps.with_params(self.best_params_).fit(X, y, **params)
        self.refit_time_ = time.perf_counter() - began
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_


def _column(name: str, chosen: Sequence[Mapping[str, Any]]) -> Any:
    """The values of a parameter; where it was not active it is masked."""
    column: Any = np.ma.MaskedArray(np.empty(len(chosen), dtype=object), mask=True)
    for row, params in enumerate(chosen):
        if name in params:
            column[row] = params[name]
    return column


def _score_columns(trials: Sequence[Trial], name: str, *, n_splits: int, missing: float) -> dict[str, Any]:
    """The scores under one name: of each fold, their mean, deviation and rank; trials that failed come last."""
    metrics = [trial.points[-1].metrics if trial.points else {} for trial in trials]
    keys = [split_name(name, fold) for fold in range(n_splits)]
    splits = {key: np.array([_number(point.get(key), missing) for point in metrics]) for key in keys}
    table = np.array(list(splits.values()))
    means, called = table.mean(axis=0), f"test_{name or VALUE}"
    order = np.where(np.isnan(means), np.inf, -means)
    ranks = np.array([1 + int(np.sum(order < own)) for own in order], dtype=np.int32)
    return {**splits, f"mean_{called}": means, f"std_{called}": table.std(axis=0), f"rank_{called}": ranks}


def _number(score: float | None, missing: float) -> float:
    return missing if score is None else score
