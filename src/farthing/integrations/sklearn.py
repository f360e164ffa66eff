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

import hashlib
import numbers
import re
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np

from farthing.costs import Budget
from farthing.errors import InvalidArgument, MissingExtra
from farthing.execution import Pipeline, Stage
from farthing.execution.data_identity import identity_of_data
from farthing.execution.identity import identity_of_function
from farthing.execution.plain_data import NotPlain
from farthing.refusals import listed, refuse_unknown, shown
from farthing.space import Choice, Float, Int, Parameter, Space
from farthing.space.parameters import with_condition
from farthing.space.stages import local_name
from farthing.storage import Storage
from farthing.study import Study
from farthing.systems import Strategy
from farthing.trials import History, Trial

try:
    import sklearn
    from sklearn.base import BaseEstimator, clone, is_classifier
    from sklearn.exceptions import FitFailedWarning
    from sklearn.metrics import check_scoring
    from sklearn.model_selection import check_cv
    from sklearn.model_selection._search import BaseSearchCV
    from sklearn.pipeline import Pipeline as SklearnPipeline
    from sklearn.utils import _safe_indexing, check_random_state, indexable
    from sklearn.utils.validation import _num_samples
except ImportError as error:
    raise MissingExtra(
        "farthing.integrations.sklearn needs scikit-learn, which is absent. Run: pip install 'farthing[sklearn]'."
    ) from error

VALUE = "score"
SEARCH = "sklearn_search"
"""The setting of a stored study that says what data it is about, and by what it scores."""

SpaceLike = Space | Mapping[str, Parameter] | Mapping[str, Mapping[str, Parameter]]


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
        strategy: Strategy | None = None,
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
        steps = _Steps.of(self.estimator, self.space, self.alternatives or {})
        scorers = self._scorers()
        groups = params.pop("groups", None)
        X, y, groups = indexable(X, y, groups)
        data = _Data(X, y, self._splits(X, y, groups), steps.fit_params(params))
        self.study_ = study = self._study(steps, data)
        self._run(study, steps.pipeline(data, scorers, cache_limit=self.cache_limit))
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

    def _study(self, steps: "_Steps", data: "_Data") -> Study:
        seed = None if self.random_state is None else int(check_random_state(self.random_state).randint(2**31 - 1))
        study = Study(
            steps.staged, maximize=VALUE, strategy=self.strategy, storage=self.storage, name=self.name, seed=seed
        )
        counts = self.refit if self.multimetric_ else None
        identity = _digest([data.identity, _identity(self.scoring), counts])
        if study.settings.get(SEARCH) not in (None, identity):
            raise InvalidArgument(
                f"A stored search must go on with the data, the folds and the score it began with, got others for "
                f"{self.name!r}. Give the search a new name, or delete the study."
            )
        study.remember(**{SEARCH: identity})
        return study

    def _run(self, study: Study, work: Pipeline) -> None:
        fails = self.error_score == "raise"

        def stop_at_failure(study: Study, trial: Trial) -> None:
            if fails and trial.failure is not None:
                study.stop()

        ended = study.run(
            work,
            budget=self.budget or Budget(trials=self.n_trials),
            workers=self.workers,
            executor="inline" if self.workers == 1 else "processes",
            callbacks=[stop_at_failure],
            progress=False,
        )
        if ended == "interrupted":
            raise KeyboardInterrupt
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

    def _read(self, history: History, steps: "_Steps", names: Sequence[str], *, n_splits: int) -> None:
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
        self.best_index_ = int(self.refit(results) if callable(self.refit) else ranks.argmin())
        self.best_score_ = results[f"mean_test_{names[0] or VALUE}"][self.best_index_]
        self.best_params_ = chosen[self.best_index_]

    def _refit(self, steps: "_Steps", X: Any, y: Any, params: dict[str, Any]) -> None:
        began = time.perf_counter()
        self.best_estimator_ = steps.with_params(self.best_params_).fit(X, y, **params)
        self.refit_time_ = time.perf_counter() - began
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_


@dataclass(frozen=True)
class _Steps:
    """A pipeline and what is tuned of it. `parameters` are by their names in scikit-learn: `step` or `step__param`."""

    estimator: Any
    parameters: Mapping[str, Parameter]
    alternatives: Mapping[str, Mapping[Any, Any]]
    config: Mapping[str, Any] = field(default_factory=sklearn.get_config)
    """scikit-learn's own settings, which worker processes do not inherit."""

    @classmethod
    def of(cls, estimator: Any, space: SpaceLike, alternatives: Mapping[str, Mapping[Any, Any]]) -> "_Steps":
        if not isinstance(estimator, SklearnPipeline):
            raise InvalidArgument(
                f"The estimator must be a sklearn.pipeline.Pipeline, got {shown(estimator)}. "
                f"Wrap it: make_pipeline(StandardScaler(), estimator)."
            )
        steps = cls(estimator, _by_full_name(space), alternatives)
        steps._check()
        return steps

    @property
    def names(self) -> list[str]:
        return list(self.parameters)

    @cached_property
    def staged(self) -> Space:
        """The space of the study: parameters keep their names, as far as these are identifiers."""
        names = {name: _identifier(name) for name in self.parameters}
        named = {name: _renamed(parameter, names) for name, parameter in self.parameters.items()}
        return Space(
            stages={
                _identifier(step): {names[name]: named[name] for name in named if _step_of(name) == step}
                for step, _ in self.estimator.steps
            }
        )

    def params_of(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """A trial's params under scikit-learn's names."""
        return {name: params[_identifier(name)] for name in self.parameters if _identifier(name) in params}

    def with_params(self, params: Mapping[str, Any]) -> Any:
        """An unfitted pipeline with these params."""
        chosen = {name: self._alternative(name, value) for name, value in params.items() if "__" not in name}
        pipeline = clone(self.estimator).set_params(**chosen)
        return pipeline.set_params(**{name: value for name, value in params.items() if "__" in name})

    def fit_params(self, params: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """What the fit of each step is given, out of `step__name` as scikit-learn has it."""
        steps = dict(self.estimator.steps)
        wrong = next((name for name in params if "__" not in name or _step_of(name) not in steps), None)
        if wrong is not None:
            raise TypeError(
                f"Arguments of fit must be groups or of a step, as in clf__sample_weight, got {wrong!r}. "
                f"The steps are {listed(steps)}."
            )
        return {step: {_local(name): params[name] for name in params if _step_of(name) == step} for step in steps}

    def pipeline(self, data: "_Data", scorers: Mapping[str, Any], *, cache_limit: int | str | None) -> Pipeline:
        """The steps as work: each a stage that takes and returns a pair of inputs for each fold."""
        *first, last = (_identifier(step) for step, _ in self.estimator.steps)
        stages = {
            stage: Stage(_Transform(self, place, data), self._version(place)) for place, stage in enumerate(first)
        }
        scoring = Stage(_Score(self, len(first), data, dict(scorers)), version="")
        return Pipeline(source_version=data.identity, cache_limit=cache_limit, **stages, **{last: scoring})

    def step(self, place: int, params: Mapping[str, Any]) -> Any:
        """A fresh estimator for that step under these params, or None for one that passes everything through."""
        chosen = self.with_params(self.params_of(params)).steps[place][1]
        return None if isinstance(chosen, str) else chosen

    def _version(self, place: int) -> str:
        step, estimator = self.estimator.steps[place]
        settings = [sklearn.__version__, self.config["transform_output"]]
        return _digest([settings, _spelled(estimator), _spelled(self.alternatives.get(step))])

    def _alternative(self, name: str, value: Any) -> Any:
        options = self.alternatives.get(name, {})
        return clone(options[value]) if value in options else value

    def _check(self) -> None:
        steps = [step for step, _ in self.estimator.steps]
        refuse_unknown((_step_of(name) for name in self.parameters), steps, what="Steps", error=InvalidArgument)
        refuse_unknown(self.alternatives, self.parameters, what="Steps with alternatives", error=InvalidArgument)
        for name, parameter in self.parameters.items():
            if "__" not in name:
                self._check_choice_of_step(name, parameter)
        known = self.estimator.get_params()
        fixed = [name for name in self.parameters if _step_of(name) not in self.parameters]
        refuse_unknown(fixed, known, what="Parameters of the pipeline", error=InvalidArgument)
        _ = self.staged  # refuses conditions that cannot be meant
        for name in self.parameters:
            if "__" in name and _step_of(name) in self.parameters:
                self._check_param_of_alternatives(name)

    def _check_choice_of_step(self, step: str, parameter: Parameter) -> None:
        if not isinstance(parameter, Choice):
            raise InvalidArgument(f"A step itself must be a Choice, got {parameter!r} for {step!r}. See alternatives=.")
        options = [*self.alternatives.get(step, {}), "passthrough"]
        refuse_unknown(parameter.options, options, what=f"Options of the step {step!r}", error=InvalidArgument)

    def _check_param_of_alternatives(self, name: str) -> None:
        """Refuses a parameter that some estimator has not that its step may be when the parameter is active."""
        step, options = _step_of(name), self.alternatives.get(_step_of(name), {})
        having = [option for option in options if _local(name) in options[option].get_params()]
        without = next((option for option in self._options_behind(name, step) if option not in having), None)
        if without is not None:
            remedy = f"Add when={{{step!r}: {having}}}." if having else "Check the spelling."
            raise InvalidArgument(
                f"A parameter must be one of every estimator that its step may be, got {name!r}, which {without!r} "
                f"has not. {remedy}"
            )

    def _options_behind(self, name: str, step: str) -> list[Any]:
        """What the step may be while the parameter is active, by its own condition and those of its parents."""
        if name == step:
            choice = self.parameters[step]
            assert isinstance(choice, Choice), "checked before"
            return list(choice.options)
        when = self.parameters[name].when
        behind = [self._options_behind(parent, step) for parent in (*when, step)]
        allowed = when.get(step, behind[-1])
        return [option for option in allowed if all(option in options for options in behind)]


def _by_full_name(space: SpaceLike) -> dict[str, Parameter]:
    """The parameters as `step__param`, however they were given; conditions name their parents in the same way."""
    if isinstance(space, Space):
        full = {name: f"{step}__{local_name(name)}" for step, names in space.stages.items() for name in names}
        return {full.get(name, name): _renamed(parameter, full) for name, parameter in space.parameters.items()}
    flat: dict[str, Parameter] = {}
    for step, own in space.items():
        if isinstance(own, Mapping):
            full = {name: f"{step}__{name}" for name in own}
            flat |= {full[name]: _renamed(_parameter(name, given), full) for name, given in own.items()}
        else:
            flat[step] = _parameter(step, own)
    return flat


def _parameter(name: str, given: object) -> Parameter:
    if not isinstance(given, Float | Int | Choice):
        raise InvalidArgument(
            f"A parameter must be a Float, an Int or a Choice, got {shown(given)} for {name!r}. "
            f"Write ft.Choice(0.1, 1, 10) for a list, ft.Float(0.1, 10, log=True) for a distribution."
        )
    return given


def _renamed(parameter: Parameter, names: Mapping[str, str]) -> Parameter:
    """The parameter with other names for the parents in its condition."""
    return with_condition(parameter, {names.get(parent, parent): values for parent, values in parameter.when.items()})


def _identifier(name: str) -> str:
    return re.sub(r"\W|^(?=\d)", "_", name)


def _step_of(name: str) -> str:
    return name.partition("__")[0]


def _local(name: str) -> str:
    return name.partition("__")[2]


@dataclass(frozen=True)
class _Data:
    """What is searched on: inputs, targets, folds, and what the steps' fits are given besides."""

    X: Any
    y: Any
    splits: list[tuple[Any, Any]]
    fit_params: Mapping[str, Mapping[str, Any]]

    @cached_property
    def identity(self) -> str:
        parts = (self.X, self.y, self.splits, dict(self.fit_params))
        return _digest([_identity(part) for part in parts])

    def inputs(self) -> list[tuple[Any, Any]]:
        return [(_safe_indexing(self.X, train), _safe_indexing(self.X, test)) for train, test in self.splits]

    def targets(self, fold: int) -> tuple[Any, Any]:
        if self.y is None:
            return None, None
        train, test = self.splits[fold]
        return _safe_indexing(self.y, train), _safe_indexing(self.y, test)

    def fit_params_of(self, step: str, fold: int) -> dict[str, Any]:
        train, count = self.splits[fold][0], _num_samples(self.X)
        given = self.fit_params.get(step, {})
        return {name: _safe_indexing(part, train) if _has_length(part, count) else part for name, part in given.items()}


@dataclass(frozen=True)
class _Transform:
    """A step that transforms: fitted to the training part of each fold, it transforms both parts."""

    steps: _Steps
    place: int
    data: _Data

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
class _Score:
    """The last step: fitted to the training part of each fold and scored on the other."""

    steps: _Steps
    place: int
    data: _Data
    scorers: dict[str, Any]

    def __call__(self, previous: Any, **params: Any) -> dict[str, float]:
        inputs = self.data.inputs() if previous is None else previous
        with sklearn.config_context(**self.steps.config):
            scores = [self._fold(fold, train, test, params) for fold, (train, test) in enumerate(inputs)]
        named = {_split(name, fold): scores[fold][name] for name in self.scorers for fold in range(len(scores))}
        first = next(iter(self.scorers))
        return {VALUE: float(np.mean([score[first] for score in scores])), **named}

    def _fold(self, fold: int, train: Any, test: Any, params: Mapping[str, Any]) -> dict[str, float]:
        step = self.steps.step(self.place, params)
        given = self.data.fit_params_of(self.steps.estimator.steps[self.place][0], fold)
        y_train, y_test = self.data.targets(fold)
        fitted = step.fit(train, **given) if y_train is None else step.fit(train, y_train, **given)
        targets = () if y_test is None else (y_test,)
        return {name: _as_score(scorer(fitted, test, *targets)) for name, scorer in self.scorers.items()}


def _as_score(given: Any) -> float:
    is_number = np.ndim(given) == 0 and isinstance(given, numbers.Number | np.ndarray)
    if not is_number:
        raise ValueError(
            f"A scorer must return a number, got {shown(given)}. For several scores give scoring={{name: scorer}}."
        )
    return float(given)


def _split(name: str, fold: int) -> str:
    return f"split{fold}_test_{name or VALUE}"


def _has_length(part: Any, count: int) -> bool:
    return hasattr(part, "__len__") and not isinstance(part, str | Mapping) and len(part) == count


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
    keys = [_split(name, fold) for fold in range(n_splits)]
    splits = {key: np.array([_number(point.get(key), missing) for point in metrics]) for key in keys}
    table = np.array(list(splits.values()))
    means, called = table.mean(axis=0), f"test_{name or VALUE}"
    order = np.where(np.isnan(means), np.inf, -means)
    ranks = np.array([1 + int(np.sum(order < own)) for own in order], dtype=np.int32)
    return {**splits, f"mean_{called}": means, f"std_{called}": table.std(axis=0), f"rank_{called}": ranks}


def _number(score: float | None, missing: float) -> float:
    return missing if score is None else score


def _identity(thing: Any) -> str:
    """What tells data and functions apart; what is neither counts by its pickle, which is only ever hashed."""
    for identity in (identity_of_data, identity_of_function):
        with suppress(NotPlain):
            return identity(thing)
    return hashlib.sha256(cloudpickle.dumps(thing)).hexdigest()


def _spelled(thing: Any) -> Any:
    """An estimator by its class and params, and those of what it is made of."""
    if isinstance(thing, Mapping):
        return {str(name): _spelled(part) for name, part in thing.items()}
    if isinstance(thing, list | tuple):
        return [_spelled(part) for part in thing]
    if not isinstance(thing, BaseEstimator):
        return _identity(thing)
    params = {name: _spelled(part) for name, part in thing.get_params(deep=False).items()}
    return [identity_of_function(type(thing)), params, getattr(thing, "_sklearn_output_config", None)]


def _digest(form: Any) -> str:
    return hashlib.sha256(repr(form).encode()).hexdigest()
