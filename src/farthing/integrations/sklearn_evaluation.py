"""One trial of a cross-validation: some of the folds, on some of the data or with some of the iterations."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.base import is_classifier
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from farthing.errors import InvalidArgument
from farthing.execution import RunningTrial
from farthing.integrations.sklearn_folds import VALUE, Data, as_score, called
from farthing.integrations.sklearn_spaces import GivenSpace, put
from farthing.space import Fidelity
from farthing.validation import refuse_unknown

FOLDS, SHARE, SAMPLES = "folds", "train_share", "n_samples"
"""The fidelities of a search, and scikit-learn's name of the resource that is the training data."""

FIT_TIME, SCORE_TIME = "fit_time", "score_time"
STATE_FILE = "folds.json"
LEAST_SHARE, LEAST_OF_A_CLASS, LEAST_OF_ALL = 0.1, 20, 50
"""The smallest training set: a tenth of the data, with this many samples for each class, or in all. Guesses."""
MOST_SMALLEST = 0.7
"""If the smallest training set is a larger share than this, all of the data is used at once. A guess."""


@dataclass(frozen=True)
class Resource:
    """The resource of which short trials have less: data, or a parameter of the estimator such as `n_estimators`."""

    name: str | None
    fidelity: Fidelity | None

    @classmethod
    def of(cls, estimator: Any, data: Data, *, name: str | None, least: int | None, most: int | None) -> "Resource":
        if name is None:
            return cls(None, None)
        if name == SAMPLES:
            return cls(name, _share_of_samples(estimator, data, least))
        known = estimator.get_params()
        refuse_unknown([name], [SAMPLES, *known], what="The resource", error=InvalidArgument)
        high = known[name] if most is None else most
        if not isinstance(high, int) or high < 2:
            raise InvalidArgument(
                f"A resource must have a largest amount, got {high!r} for {name!r}. Set max_resources=."
            )
        low = max(1, high // 10) if least is None else least
        return cls(name, Fidelity(low, high, integer=True))

    @property
    def fidelities(self) -> dict[str, Fidelity]:
        return {} if self.fidelity is None else {self.key: self.fidelity}

    @property
    def key(self) -> str:
        return SHARE if self.name == SAMPLES else str(self.name)

    def share(self, trial: RunningTrial) -> float:
        return float(trial.fidelity[SHARE]) if SHARE in trial.fidelity else 1.0

    def params(self, amounts: Mapping[str, float]) -> dict[str, Any]:
        """The estimator's own params for these amounts, where the resource is one of them."""
        is_param = self.fidelity is not None and self.name != SAMPLES
        return {self.key: int(amounts[self.key])} if is_param else {}


def _share_of_samples(estimator: Any, data: Data, least: int | None) -> Fidelity | None:
    count = min(_num_samples(train) for train, _ in data.splits)
    if least is None:
        classes = len(np.unique(np.asarray(data.y))) if is_classifier(estimator) and data.y is not None else 0
        least = max(int(LEAST_SHARE * count), LEAST_OF_A_CLASS * classes, LEAST_OF_ALL)
    return Fidelity(least / count, 1.0) if least <= MOST_SMALLEST * count else None


@dataclass(frozen=True)
class Evaluation:
    """The work of a search. What folds gave is left in the checkpoint, so that a continued trial pays for new ones.

    A fold gives its scores and its seconds, by the names of scikit-learn: `test_score`, `fit_time`. Smaller training
    sets are parts of larger ones, and of a classifier's each has all classes in their proportions.
    """

    estimator: Any
    space: GivenSpace
    data: Data
    scorers: Mapping[str, Any]
    resource: Resource
    seed: int
    return_train_score: bool = False
    config: Mapping[str, Any] = field(default_factory=sklearn.get_config)
    """scikit-learn's own settings, which worker processes do not inherit."""

    def __call__(self, trial: RunningTrial) -> dict[str, float] | None:
        wanted = int(trial.fidelity.get(FOLDS, len(self.data.splits)))
        amounts = {name: amount for name, amount in trial.fidelity.items() if name != FOLDS}
        folds = _folds_before(trial.resume_dir, amounts)[:wanted]
        with sklearn.config_context(**self.config):
            for fold in range(len(folds), wanted):
                folds.append(self._fold(fold, trial))
                if FOLDS in trial.fidelity:
                    trial.report(self._means(folds), metrics=_by_split(folds), folds=fold + 1)
        if FOLDS not in trial.fidelity:
            return {**self._means(folds), **_by_split(folds)}
        state = {"amounts": amounts, FOLDS: folds}
        (trial.checkpoint_dir / STATE_FILE).write_text(json.dumps(state))
        return None

    @property
    def objectives(self) -> list[str]:
        """The scores as objectives of the study; of a single one none, because the study knows it as its score."""
        return list(self.scorers) if len(self.scorers) > 1 else []

    def named(self) -> dict[str, Any]:
        """The scorers with the names of what a function returns for the estimator as it is, fitted to the least data.

        Nothing else tells them, and the study must know its objectives before its first trial.
        """
        (scorer,) = self.scorers.values()
        train, test = self.data.splits[0]
        share = self.resource.fidelity.low if self.resource.key == SHARE and self.resource.fidelity else 1.0
        part = self._part(0, np.asarray(train), share)
        model = put(self.estimator, {}).fit(*self._rows(part), **self.data.fit_params_at("", part))
        said = scorer(model, *self._rows(test))
        return dict.fromkeys(said, scorer) if isinstance(said, Mapping) else dict(self.scorers)

    def _means(self, folds: list[dict[str, float]]) -> dict[str, float]:
        """The mean of each objective over the folds."""
        names = {name: name for name in self.objectives} or {VALUE: next(iter(self.scorers))}
        return {value: float(np.mean([fold[called(name)] for fold in folds])) for value, name in names.items()}

    def _fold(self, fold: int, trial: RunningTrial) -> dict[str, float]:
        train, test = self.data.splits[fold]
        part = self._part(fold, np.asarray(train), self.resource.share(trial))
        model = put(self.estimator, {**self.space.params(trial.params), **self.resource.params(trial.fidelity)})
        began = trial.spent
        model.fit(*self._rows(part), **self.data.fit_params_at("", part))
        fitted = trial.spent
        with trial.timing("validation"):
            scores = self._scores(model, test, of="test")
            times = {FIT_TIME: fitted - began, SCORE_TIME: trial.spent - fitted}
            return {**scores, **times, **(self._scores(model, part, of="train") if self.return_train_score else {})}

    def _scores(self, model: Any, rows: Any, *, of: str) -> dict[str, float]:
        given = self._rows(rows)
        scorers = {id(scorer): scorer for scorer in self.scorers.values()}  # a function may give several scores
        said = {key: scorer(model, *given) for key, scorer in scorers.items()}
        return {
            called(name, of=of): as_score(_of_several(said[id(scorer)], name)) for name, scorer in self.scorers.items()
        }

    def _rows(self, rows: Any) -> tuple[Any, ...]:
        """The inputs and, where there are, the targets."""
        X, y = self.data.X, self.data.y
        return tuple(_safe_indexing(part, rows) for part in (X, y) if part is not None)

    def _part(self, fold: int, train: Any, share: float) -> Any:
        """The first samples of an order that is the same in every trial; all of them as they are."""
        if share >= 1.0:
            return train
        rng = np.random.default_rng([self.seed, fold])
        jitter = rng.random(len(train))
        if self.data.y is None or not is_classifier(self.estimator):
            places = jitter
        else:
            _, kinds = np.unique(np.asarray(_safe_indexing(self.data.y, train)), return_inverse=True)
            places = np.empty(len(train))
            for kind in np.unique(kinds):
                own = np.flatnonzero(kinds == kind)
                places[own[np.argsort(jitter[own])]] = (np.arange(len(own)) + 0.5) / len(own)
        order = np.argsort(places, kind="stable")
        return train[np.sort(order[: max(1, round(share * len(train)))])]


def _of_several(said: Any, name: str) -> Any:
    """The score of this name, where a function returned several."""
    return said.get(name, said) if isinstance(said, Mapping) else said


def _by_split(folds: list[dict[str, float]]) -> dict[str, float]:
    return {f"split{place}_{name}": value for place, fold in enumerate(folds) for name, value in fold.items()}


def _folds_before(folder: Path | None, amounts: Mapping[str, float]) -> list[dict[str, float]]:
    """The scores of the folds of the trial that is continued, if it was with as much of everything else."""
    if folder is None:
        return []
    state = json.loads((folder / STATE_FILE).read_text())
    return list(state.get(FOLDS, ())) if state["amounts"] == dict(amounts) else []
