"""Several scores of a `SearchCV` are several objectives of its study."""

from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RandomizedSearchCV, cross_validate
from sklearn.tree import DecisionTreeClassifier

import farthing as ft
from farthing.integrations.sklearn import SearchCV

X, Y = load_iris(return_X_y=True)
SPACE = {"depth": ft.Float(0.0, 1.0), "width": ft.Float(0.0, 1.0)}


class Known(ClassifierMixin, BaseEstimator):
    """Its quality and its speed are known: depth brings one and costs the other, width is best at a half."""

    fits: ClassVar[list] = []

    def __init__(self, depth=0.5, width=0.5):
        self.depth = depth
        self.width = width

    def fit(self, X, y):
        Known.fits.append((len(y), self.depth, self.width))
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


def quality(model, X, y):
    return float(np.sqrt(model.depth)) - abs(model.width - 0.5)


def speed(model, X, y):
    return -float(model.depth) - 2 * abs(model.width - 0.5)


def both(model, X, y):
    return {"quality": quality(model, X, y), "speed": speed(model, X, y)}


@pytest.fixture(autouse=True)
def _forget():
    Known.fits = []


def search(**settings):
    chosen = {
        "scoring": {"quality": quality, "speed": speed},
        "refit": "quality",
        "budget": ft.Budget(trials=12),
        "cv": 3,
        "random_state": 0,
        **settings,
    }
    return SearchCV(Known(), SPACE, **chosen)


def dominated(results, names=("quality", "speed")):
    """Whether each row is beaten by another in one score and matched in all."""
    table = np.stack([results[f"mean_test_{name}"] for name in names], axis=1)
    return [bool(np.any(np.all(table >= row, axis=1) & np.any(table > row, axis=1))) for row in table]


def test_several_scores_are_objectives_that_are_maximised():
    found = search(resource=None, cv=2).fit(X, Y)
    assert [(one.name, one.direction) for one in found.study_.problem.objectives] == [
        ("quality", "maximize"),
        ("speed", "maximize"),
    ]
    assert {point.trial.params["width"] for point in found.study_.front} <= set(found.cv_results_["param_width"])
    assert len(found.study_.front) > 1


def test_the_columns_of_each_score_are_those_of_a_randomized_search():
    scoring = ["accuracy", "neg_log_loss"]
    settings = {"scoring": scoring, "refit": "accuracy", "cv": 3, "random_state": 0, "return_train_score": True}
    model, space = LogisticRegression(max_iter=500), {"C": [0.001, 0.1, 1.0]}
    theirs = RandomizedSearchCV(model, space, n_iter=3, **settings).fit(X, Y)
    ours = SearchCV(model, space, n_trials=3, resource=None, **settings).fit(X, Y)
    assert set(theirs.cv_results_) <= set(ours.cv_results_)
    assert ours.multimetric_
    assert ours.scorer_.keys() == theirs.scorer_.keys()
    for name in scoring:
        folds = cross_validate(model.set_params(**ours.best_params_), X, Y, cv=3, scoring=name)["test_score"]
        assert ours.cv_results_[f"mean_test_{name}"][ours.best_index_] == pytest.approx(folds.mean())
        assert ours.cv_results_[f"std_test_{name}"][ours.best_index_] == pytest.approx(folds.std())


@pytest.mark.parametrize("name", ["quality", "speed"])
@pytest.mark.parametrize("strategy", [None, "Random", "ASHA"])
def test_the_best_by_the_score_that_is_named_is_refitted_and_is_on_the_front(name, strategy):
    found = search(refit=name, strategy=strategy).fit(X, Y)
    results, best = found.cv_results_, found.best_index_
    full = np.isclose(results["folds"], 3)
    assert full[best]
    assert not dominated({key: results[key][full] for key in ("mean_test_quality", "mean_test_speed")})[
        np.flatnonzero(full).tolist().index(best)
    ]
    assert found.best_score_ == results[f"mean_test_{name}"][best] == max(results[f"mean_test_{name}"][full])
    assert results[f"rank_test_{name}"][best] == 1
    assert found.best_params_ == results["params"][best]
    assert found.best_estimator_.depth == found.best_params_["depth"]
    assert Known.fits[-1] == (len(Y), found.best_params_["depth"], found.best_params_["width"])
    assert found.score(X, Y) == pytest.approx(found.best_score_), "the score that is named"


def test_a_tie_in_the_score_that_is_named_is_parted_by_the_others():
    def coarse(model, X, y):
        return float(model.depth > 0.2)

    found = search(scoring={"coarse": coarse, "speed": speed}, refit="coarse", strategy="Random", resource=None)
    found.fit(X, Y)
    assert not dominated(found.cv_results_, ("coarse", "speed"))[found.best_index_]
    assert sum(found.cv_results_["rank_test_coarse"] == 1) > 1, "there is a tie"
    tied = found.cv_results_["mean_test_speed"][found.cv_results_["rank_test_coarse"] == 1]
    assert found.cv_results_["mean_test_speed"][found.best_index_] == max(tied)


@pytest.mark.parametrize(("n_splits", "strategy"), [(1, "LogEHVI"), (3, "ParetoHalving")])
def test_the_default_strategy_is_that_of_several_objectives(n_splits, strategy):
    rows = np.arange(len(Y))
    splits = [(rows[rows % 5 != fold], rows[rows % 5 == fold]) for fold in range(n_splits)]
    found = search(cv=splits, resource=None).fit(X, Y)
    assert type(found.study_.strategy).__name__ == strategy


def test_without_short_trials_every_configuration_is_evaluated_on_all_folds():
    found = search(strategy="LogEHVI", cv=5, budget=ft.Budget(trials=6)).fit(X, Y)
    assert found.cv_results_["folds"].tolist() == [5] * 6


def test_a_function_of_the_results_chooses_the_row():
    found = search(refit=lambda results: int(np.argmax(results["mean_test_quality"] + results["mean_test_speed"])))
    found.fit(X, Y)
    sums = found.cv_results_["mean_test_quality"] + found.cv_results_["mean_test_speed"]
    assert found.best_index_ == sums.argmax()
    assert found.best_estimator_.depth == found.best_params_["depth"]
    assert not hasattr(found, "best_score_"), "no score is named, as in scikit-learn's searches"


def test_without_a_refit_no_row_is_the_best_and_the_front_is_there():
    found = search(refit=False).fit(X, Y)
    assert not any(hasattr(found, name) for name in ("best_index_", "best_params_", "best_score_", "best_estimator_"))
    assert len(found.study_.front) >= 1
    assert {"rank_test_quality", "rank_test_speed"} <= found.cv_results_.keys()


def test_a_function_that_returns_several_scores_is_asked_once_for_each_fold():
    asked = []

    def noting(model, X, y):
        asked.append(len(y))
        return both(model, X, y)

    found = search(scoring=noting, refit="speed", strategy="Random", resource=None).fit(X, Y)
    folds = len(Known.fits) - 1  # all but the refit, one of them for the names
    assert len(asked) == folds
    apart = search(refit="speed", strategy="Random", resource=None).fit(X, Y)
    for name in ("mean_test_quality", "mean_test_speed", "rank_test_quality", "rank_test_speed"):
        assert found.cv_results_[name].tolist() == apart.cv_results_[name].tolist()
    assert found.best_params_ == apart.best_params_
    assert found.score(X, Y) == pytest.approx(found.best_score_)


def test_a_function_that_returns_one_score_remains_one_score():
    found = search(scoring=quality, refit="quality", strategy="Random").fit(X, Y)
    assert "mean_test_score" in found.cv_results_
    assert not found.multimetric_


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"refit": True},
            "refit must name one of them, be False, or be a function .* got True. Choose one of 'quality'",
        ),
        ({"refit": "latency"}, "got 'latency'. Choose one of 'quality', 'speed'"),
        ({"refit": {"quality": 1, "speed": 1}}, "got {'quality': 1, 'speed': 1}. Choose one of 'quality', 'speed'"),
        ({"refit": ["quality"]}, r"got \['quality'\]. Choose one of 'quality', 'speed'"),
        ({"scoring": both, "refit": "latency"}, "got 'latency'. Choose one of 'quality', 'speed'"),
        ({"scoring": both, "refit": True}, "A scorer must return a number, got .*with refit= the name of one"),
    ],
)
def test_a_refit_that_says_nothing_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        search(**settings).fit(X, Y)


def leaves(model, X, y):
    return -float(model.get_n_leaves())


def search_of_trees(**settings):
    space = {"max_depth": ft.Int(1, 8), "min_samples_leaf": ft.Int(1, 20)}
    chosen = {"scoring": {"accuracy": "accuracy", "leaves": leaves}, "refit": "accuracy", "cv": 3, **settings}
    return SearchCV(DecisionTreeClassifier(random_state=0), space, random_state=0, **chosen)


def test_a_stored_search_is_continued_and_may_refit_by_another_of_its_scores(tmp_path):
    storage = f"sqlite:///{tmp_path / 'search.db'}"
    first = search_of_trees(storage=storage, n_trials=4).fit(X, Y)
    second = search_of_trees(storage=storage, n_trials=7, refit="leaves").fit(X, Y)
    assert second.cv_results_["params"][: len(first.cv_results_["params"])] == first.cv_results_["params"]
    assert second.best_index_ == np.argmin(second.cv_results_["rank_test_leaves"])
    with pytest.raises(ft.FarthingError):
        search_of_trees(storage=storage, scoring={"accuracy": "accuracy", "recall": "recall_macro"}).fit(X, Y)


def test_processes_find_what_one_process_finds():
    settings = {"strategy": "Random", "budget": ft.Budget(trials=4), "resource": None}
    alone, together = (search_of_trees(n_jobs=jobs, **settings).fit(X, Y) for jobs in (None, 2))
    for name in ("mean_test_accuracy", "mean_test_leaves"):
        assert sorted(alone.cv_results_[name]) == sorted(together.cv_results_[name])


def test_a_configuration_that_fails_is_a_row_of_missing_scores():
    def picky(model, X, y):
        if model.depth > 0.6:
            raise RuntimeError("too deep")
        return float(model.depth)

    found = search(scoring={"picky": picky, "speed": speed}, refit="picky", strategy="Random")
    with pytest.warns(FitFailedWarning, match="configurations failed"):
        found.fit(X, Y)
    assert np.isnan(found.cv_results_["mean_test_picky"]).any()
    assert found.best_params_["depth"] <= 0.6


def test_trees_by_accuracy_and_size():
    found = search_of_trees(refit="leaves", n_trials=8).fit(X, Y)
    model = DecisionTreeClassifier(random_state=0, **found.best_params_)
    assert found.best_score_ == cross_validate(model, X, Y, cv=3, scoring=leaves)["test_score"].mean()
    assert found.predict(X).shape == Y.shape
