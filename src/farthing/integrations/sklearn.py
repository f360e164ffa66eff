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
from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np

from farthing.costs import Budget
from farthing.errors import MissingExtra
from farthing.files.durable import remove
from farthing.storage import Storage
from farthing.strategies import Strategy
from farthing.trials import History

try:
    from sklearn.utils import indexable

    from farthing.integrations.sklearn_base import SearchBase, column, score_columns
    from farthing.integrations.sklearn_folds import Data, work_of
    from farthing.integrations.sklearn_search import SearchCV as SearchCV
    from farthing.integrations.sklearn_steps import SpaceLike, Steps
except ImportError as error:
    raise MissingExtra(
        "farthing.integrations.sklearn needs scikit-learn, which is absent. Run: pip install 'farthing[sklearn]'."
    ) from error


class PipelineSearchCV(SearchBase):
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
        if self.multimetric_:
            scorers = {self.refit: scorers[self.refit], **scorers}  # the one that counts comes first
        groups = params.pop("groups", None)
        X, y, groups = indexable(X, y, groups)
        data = Data(X, y, self._splits(X, y, groups), steps.fit_params(params))
        self.study_ = study = self._opened(steps.staged, [steps.fixed, data.identity])
        self._run(study, work_of(steps, data, scorers, cache_limit=self.cache_limit), workers=self.workers)
        if self.storage is None:
            remove(study.checkpoints.root)  # it cannot be continued, and the search may live for long
        self._read(study.history, steps, list(scorers), n_splits=len(data.splits))
        self.ledger_ = study.ledger
        if self.refit:
            self._refit(steps, X, y, params)
        return self

    def _read(self, history: History, steps: Steps, names: Sequence[str], *, n_splits: int) -> None:
        trials = [trial for trial in history if trial.is_finished]
        chosen = [steps.params_of(trial.params) for trial in trials]
        results: dict[str, Any] = {"mean_fit_time": np.array([trial.cost / n_splits for trial in trials])}
        results |= {f"param_{name}": column(name, chosen) for name in steps.names} | {"params": chosen}
        for name in names:
            results |= score_columns(trials, name, n_splits=n_splits, missing=self._missing_score)
        self._choose(results | {"cost": np.array([trial.cost for trial in trials])}, names[:1])

    def _refit(self, steps: Steps, X: Any, y: Any, params: dict[str, Any]) -> None:
        began = time.perf_counter()
        self.best_estimator_ = steps.with_params(self.best_params_).fit(X, y, **params)
        self.refit_time_ = time.perf_counter() - began
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_


# ------------------------------------------------------------
# States of scikit-learn estimators that train on while they are tuned.


class Snapshots:
    """Copies of the state of estimators that are trained by `partial_fit` or with `warm_start`, for `OnlineTuner`.

        snapshots = Snapshots(model)
        tuner = ft.OnlineTuner(space, rounds=100, save=snapshots.save, restore=snapshots.restore)

    The estimators stay the same objects. Their settings are part of the state: set the params again in every round.
    """

    def __init__(self, *estimators: Any) -> None:
        self._estimators = estimators

    def save(self) -> list[dict[str, Any]]:
        """The states of all estimators, which later training does not change."""
        return [deepcopy(vars(estimator)) for estimator in self._estimators]

    def restore(self, saved: Sequence[dict[str, Any]]) -> None:
        """Puts the estimators back into these states, which can be used again."""
        for estimator, state in zip(self._estimators, saved, strict=True):
            own = vars(estimator)
            own.clear()
            own.update(deepcopy(state))
