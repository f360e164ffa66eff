"""The folds of a cross-validation on their way through the steps of a pipeline, as the stages of a study."""

import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import sklearn
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from farthing.execution import Pipeline, Stage
from farthing.integrations.sklearn_identity import digest_of, identity_of
from farthing.integrations.sklearn_steps import Steps, identifier
from farthing.validation import shown

VALUE = "score"


@dataclass(frozen=True)
class Data:
    """The data of a search: inputs, targets, folds, and further arguments of the steps' fits."""

    X: Any
    y: Any
    splits: list[tuple[Any, Any]]
    fit_params: Mapping[str, Mapping[str, Any]]

    @cached_property
    def identity(self) -> str:
        parts = (self.X, self.y, self.splits, dict(self.fit_params))
        return digest_of([identity_of(part) for part in parts])

    def inputs(self) -> list[tuple[Any, Any]]:
        return [(_safe_indexing(self.X, train), _safe_indexing(self.X, test)) for train, test in self.splits]

    def targets(self, fold: int) -> tuple[Any, Any]:
        if self.y is None:
            return None, None
        train, test = self.splits[fold]
        return _safe_indexing(self.y, train), _safe_indexing(self.y, test)

    def fit_params_of(self, step: str, fold: int) -> dict[str, Any]:
        return self.fit_params_at(step, self.splits[fold][0])

    def fit_params_at(self, step: str, rows: Any) -> dict[str, Any]:
        """The arguments of a step's fit to these rows: of what has a value per sample, those of the rows."""
        given, count = self.fit_params.get(step, {}), _num_samples(self.X)
        return {name: _safe_indexing(part, rows) if _has_length(part, count) else part for name, part in given.items()}


@dataclass(frozen=True)
class Transform:
    """A step that transforms: fitted to the training part of each fold, it transforms both parts."""

    steps: Steps
    place: int
    data: Data

    def __call__(self, previous: Any, **params: Any) -> list[tuple[Any, Any]]:
        inputs = self.data.inputs() if previous is None else previous
        with sklearn.config_context(**self.steps.config):
            return [self._fold(fold, train, test, params) for fold, (train, test) in enumerate(inputs)]

    def _fold(self, fold: int, train: Any, test: Any, params: Mapping[str, Any]) -> tuple[Any, Any]:
        step = self.steps.step(self.place, params)
        if step is None:
            return train, test
        given = self.data.fit_params_of(self.steps.estimator.steps[self.place][0], fold)
        y = self.data.targets(fold)[0]
        if hasattr(step, "fit_transform"):
            return step.fit_transform(train, y, **given), step.transform(test)
        fitted = step.fit(train, y, **given)
        return fitted.transform(train), fitted.transform(test)


@dataclass(frozen=True)
class Score:
    """The last step: fitted to the training part of each fold and scored on the other."""

    steps: Steps
    place: int
    data: Data
    scorers: dict[str, Any]

    def __call__(self, previous: Any, **params: Any) -> dict[str, float]:
        inputs = self.data.inputs() if previous is None else previous
        with sklearn.config_context(**self.steps.config):
            scores = [self._fold(fold, train, test, params) for fold, (train, test) in enumerate(inputs)]
        named = {split_name(name, fold): scores[fold][name] for name in self.scorers for fold in range(len(scores))}
        first = next(iter(self.scorers))
        return {VALUE: float(np.mean([score[first] for score in scores])), **named}

    def _fold(self, fold: int, train: Any, test: Any, params: Mapping[str, Any]) -> dict[str, float]:
        step = self.steps.step(self.place, params)
        given = self.data.fit_params_of(self.steps.estimator.steps[self.place][0], fold)
        y_train, y_test = self.data.targets(fold)
        fitted = step.fit(train, **given) if y_train is None else step.fit(train, y_train, **given)
        targets = () if y_test is None else (y_test,)
        return {name: as_score(scorer(fitted, test, *targets)) for name, scorer in self.scorers.items()}


def as_score(given: Any) -> float:
    is_number = np.ndim(given) == 0 and isinstance(given, numbers.Number | np.ndarray)
    if not is_number:
        raise ValueError(
            f"A scorer must return a number, got {shown(given)}. For several scores give scoring={{name: scorer}}, or "
            "to SearchCV a function that returns them by name and with refit= the name of one."
        )
    return float(np.asarray(given))


def split_name(name: str, fold: int) -> str:
    return f"split{fold}_{called(name)}"


def called(name: str, *, of: str = "test") -> str:
    """The name that scikit-learn gives a score; a single one has none."""
    return f"{of}_{name or VALUE}"


def _has_length(part: Any, count: int) -> bool:
    return hasattr(part, "__len__") and not isinstance(part, str | Mapping) and len(part) == count


def work_of(steps: Steps, data: Data, scorers: Mapping[str, Any], *, cache_limit: int | str | None) -> Pipeline:
    """The steps as work: each a stage that takes and returns a pair of inputs for each fold."""
    *first, last = (identifier(step) for step, _ in steps.estimator.steps)
    stages = {stage: Stage(Transform(steps, place, data), steps.version(place)) for place, stage in enumerate(first)}
    scoring = Stage(Score(steps, len(first), data, dict(scorers)), version="")
    return Pipeline(source_version=data.identity, cache_limit=cache_limit, **stages, **{last: scoring})
