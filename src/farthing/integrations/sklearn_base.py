"""The common part of the searches: scorers, folds, the study and its run, and the columns of `cv_results_`."""

import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import check_random_state

from farthing.costs import Budget
from farthing.errors import InvalidArgument
from farthing.execution import Work
from farthing.integrations.sklearn_folds import VALUE, called, split_name
from farthing.integrations.sklearn_identity import digest_of, identity_of
from farthing.session import session_of
from farthing.space import Space
from farthing.study import Study
from farthing.trials import Trial
from farthing.validation import listed

SEARCH = "sklearn_search"
"""The setting of a stored study that says what it is about: the estimator, the data, and by what it scores."""


class SearchBase(BaseSearchCV):  # type: ignore[misc]
    """A search whose trials are those of a study.

    Those that inherit have in common the arguments estimator, budget, n_trials, scoring, cv, refit, error_score,
    strategy, storage, name and random_state.
    """

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "study_"}

    def _scorers(self) -> dict[str, Any]:
        """The scorers by name; a single one has no name."""
        many = self.scoring if isinstance(self.scoring, Mapping) else None
        if isinstance(self.scoring, list | tuple | set):
            many = {name: name for name in (sorted(self.scoring) if isinstance(self.scoring, set) else self.scoring)}
        self.multimetric_ = many is not None
        if many is None:
            self.scorer_ = check_scoring(self.estimator, self.scoring)
            return {"": self.scorer_}
        self._check_refit(many)
        self.scorer_ = {name: check_scoring(self.estimator, scoring) for name, scoring in many.items()}
        return dict(self.scorer_)

    def _check_refit(self, names: Collection[str]) -> None:
        """Refuses a `refit` that does not say which of several scores counts."""
        if not (isinstance(self.refit, str) and self.refit in names):
            raise ValueError(
                f"With several scores refit must name the one that counts, got {self.refit!r}. "
                f"Choose one of {listed(names)}."
            )

    def _splits(self, X: Any, y: Any, groups: Any) -> list[tuple[Any, Any]]:
        splitter = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        self.n_splits_ = splitter.get_n_splits(X, y, groups)
        return list(splitter.split(X, y, groups))

    def _opened(self, space: Space, identity: Sequence[Any], *, objectives: Sequence[str] = ()) -> Study:
        """The study of a search with this identity: a stored one is continued if it is the same.

        It has these objectives, or the one score that counts.
        """
        seed = None if self.random_state is None else int(check_random_state(self.random_state).randint(2**31 - 1))
        study = Study(
            space,
            maximize=objectives or VALUE,
            strategy=self.strategy,
            storage=self.storage,
            name=self.name,
            seed=seed,
        )
        counts = self.refit if self.multimetric_ and not objectives and isinstance(self.refit, str) else None
        digest = digest_of([*identity, identity_of(self.scoring), counts])
        if session_of(study).settings.get(SEARCH) not in (None, digest):
            raise InvalidArgument(
                f"A stored search must continue with the estimator or pipeline, the data, the folds and the score it "
                f"began with, got others for {self.name!r}. Give the search a new name, or delete the study."
            )
        session_of(study).remember(**{SEARCH: digest})
        return study

    def _budgets(self, study: Study) -> Iterator[Budget]:
        """The budgets to run with, one after the other."""
        yield self.budget or Budget(trials=self.n_trials)

    def _run(self, study: Study, work: Work, *, workers: int, progress: bool = False) -> None:
        fails = self.error_score == "raise"

        def stop_at_failure(study: Study, trial: Trial) -> None:
            if fails and trial.failure is not None:
                study.stop()

        for budget in self._budgets(study):
            study.run(
                work,
                budget=budget,
                workers=workers,
                executor="inline" if workers == 1 else "processes",
                callbacks=[stop_at_failure],
                progress=progress,
                keep_going=True,  # as scikit-learn's searches do: what fails scores nan
                verify=self.budget is not None,  # which pays for it, too
            )
            if fails and any(trial.failure for trial in study.trials):
                break
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

    def _choose(self, results: dict[str, Any], names: Sequence[str]) -> None:
        """Sets the results, and the best row by the first of these scores; the others part ties.

        As in scikit-learn's searches, of several scores none is the best if `refit` names none.
        """
        self.cv_results_ = results
        if not self.refit and self.multimetric_:
            return
        ranks = [results[f"rank_{called(name)}"] for name in names]
        chosen: Any = self.refit(results) if callable(self.refit) else np.lexsort(ranks[::-1])[0]
        self.best_index_ = int(chosen)
        self.best_params_ = results["params"][self.best_index_]
        if not (callable(self.refit) and self.multimetric_):
            self.best_score_ = results[f"mean_{called(names[0])}"][self.best_index_]

    @property
    def _missing_score(self) -> float:
        return float("nan") if self.error_score == "raise" else float(self.error_score)


def column(name: str, chosen: Sequence[Mapping[str, Any]]) -> Any:
    """The values of a parameter; where it was not active it is masked."""
    column: Any = np.ma.MaskedArray(np.empty(len(chosen), dtype=object), mask=True)
    for row, params in enumerate(chosen):
        if name in params:
            column[row] = params[name]
    return column


def score_columns(trials: Sequence[Trial], name: str, *, n_splits: int, missing: float) -> dict[str, Any]:
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
