import warnings
from typing import ClassVar

import numpy as np
import pytest
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_digits, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GroupKFold, RandomizedSearchCV, ShuffleSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import check_is_fitted

import farthing as ft
from farthing.errors import InvalidArgument
from farthing.integrations.sklearn import SearchCV
from farthing.integrations.sklearn_evaluation import Evaluation, Resource
from farthing.integrations.sklearn_folds import Data
from farthing.integrations.sklearn_spaces import GivenSpace

X, Y = load_iris(return_X_y=True)
BIG_X, BIG_Y = (part[:900] for part in load_digits(return_X_y=True))
SPACE = {"C": ft.Float(0.01, 100, log=True)}


def search(estimator=None, space=None, **settings):
    chosen = {"budget": ft.Budget(trials=5), "cv": 3, "random_state": 0, "strategy": ft.Random(), **settings}
    return SearchCV(LogisticRegression(max_iter=500) if estimator is None else estimator, space or SPACE, **chosen)


class Counting(ClassifierMixin, BaseEstimator):
    """Scores by its param and notes what it was fitted to."""

    fits: ClassVar[list] = []

    def __init__(self, x=0.5, n_estimators=8):
        self.x = x
        self.n_estimators = n_estimators

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        Counting.fits.append((len(y), self.n_estimators, None if sample_weight is None else sample_weight.tolist()))
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])

    def score(self, X, y, sample_weight=None):
        return self.x - 0.1 * len(self.classes_)


@pytest.fixture(autouse=True)
def _forget():
    Counting.fits = []


def test_it_is_used_like_a_search_of_scikit_learn():
    found = search().fit(X, Y)
    check_is_fitted(found)
    assert set(found.best_params_) == {"C"}
    assert found.predict(X).shape == Y.shape
    assert found.score(X, Y) > 0.9
    assert found.best_params_["C"] == found.best_estimator_.C
    for name in ("params", "param_C", "mean_test_score", "std_test_score", "rank_test_score", "split0_test_score"):
        assert len(found.cv_results_[name]) == len(found.cv_results_["params"])


def test_the_best_score_is_a_full_cross_validation():
    found = search(strategy=None, budget=ft.Budget(trials=6)).fit(X, Y)
    model = LogisticRegression(max_iter=500, **found.best_params_)
    assert found.best_score_ == pytest.approx(cross_val_score(model, X, Y, cv=3).mean())
    best = found.best_index_
    assert found.cv_results_["folds"][best] == 3
    assert not np.isnan([found.cv_results_[f"split{fold}_test_score"][best] for fold in range(3)]).any()


def test_folds_are_a_fidelity_and_a_continued_trial_pays_only_for_new_ones():
    found = search(
        Counting(), {"x": ft.Float(0.0, 1.0)}, strategy=ft.ASHA(), resource=None, budget=ft.Budget(trials=6), cv=9
    )
    found.fit(X, Y)
    trials = found.study_.trials
    continued = [trial for trial in trials if trial.resume_from is not None]
    assert continued
    reached = {trial.number: trial.fidelity["folds"] for trial in trials}
    paid = sum(reached[t.number] - (reached[t.resume_from] if t.resume_from is not None else 0) for t in trials)
    assert len(Counting.fits) == paid + 1, "and one for the refit"
    assert min(found.cv_results_["folds"]) == 1


def test_training_data_is_a_fidelity_and_the_refit_has_all_of_it():
    found = search(
        Counting(),
        {"x": ft.Float(0.0, 1.0)},
        strategy=ft.Hyperband(),
        budget=ft.Budget(trials=8),
        cv=ShuffleSplit(1, random_state=0),
    )
    found.fit(BIG_X, BIG_Y)
    sizes = [size for size, *_ in Counting.fits]
    assert min(sizes) < 0.5 * max(sizes[:-1])
    assert sizes[-1] == len(BIG_Y)
    assert found.study_.space.fidelities["train_share"].high == 1.0


def test_small_training_sets_have_all_classes_and_are_parts_of_larger_ones():
    data = Data(BIG_X, BIG_Y, [(np.arange(800), np.arange(800, 900))], {})
    work = Evaluation(LogisticRegression(), GivenSpace({}, {}), data, {}, Resource(None, None), seed=0)
    small, large = (work._part(0, np.arange(800), share) for share in (0.1, 0.3))
    assert set(small) < set(large)
    shares = np.bincount(BIG_Y[small]) / len(small)
    assert shares == pytest.approx(np.bincount(BIG_Y[:800]) / 800, abs=0.02)


@pytest.mark.parametrize(("name", "least"), [("n_estimators", 2), ("n_estimators", None)])
def test_an_integer_parameter_is_a_fidelity(name, least):
    found = search(
        Counting(n_estimators=27),
        {"x": ft.Float(0.0, 1.0)},
        resource=name,
        min_resources=least,
        strategy=ft.Hyperband(),
        budget=ft.Budget(trials=8),
        cv=ShuffleSplit(1, random_state=0),
    ).fit(X, Y)
    amounts = [amount for _, amount, _ in Counting.fits]
    assert min(amounts) == 2
    assert found.best_estimator_.n_estimators == 27
    assert max(found.cv_results_[name]) == 27


def test_sample_weights_go_with_their_samples():
    weights = np.arange(len(Y), dtype=float)
    search(Counting(), {"x": ft.Float(0.0, 1.0)}, budget=ft.Budget(trials=1)).fit(X, Y, sample_weight=weights)
    *parts, whole = [given for _, _, given in Counting.fits]
    assert whole == weights.tolist()
    assert sorted({weight for part in parts for weight in part}) == weights.tolist()
    assert all(len(part) == 100 for part in parts)


def test_groups_go_to_the_splitter():
    groups = np.repeat(np.arange(15), 10)
    found = search(cv=GroupKFold(3)).fit(X, Y, groups=groups)
    assert found.n_splits_ == 3
    with pytest.raises(ValueError, match="groups"):
        search(cv=GroupKFold(3)).fit(X, Y)


def test_parameters_inside_a_pipeline_are_named_as_in_scikit_learn():
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    found = search(pipeline, {"logisticregression__C": ft.Float(0.01, 100, log=True)}).fit(X, Y)
    assert found.best_params_["logisticregression__C"] == found.best_estimator_[-1].C


def test_processes_find_what_one_process_finds():
    settings = {"budget": ft.Budget(trials=3)}
    alone, together = (search(n_jobs=jobs, **settings).fit(X, Y) for jobs in (None, 2))
    assert alone.cv_results_["params"] == together.cv_results_["params"]
    assert alone.cv_results_["mean_test_score"] == pytest.approx(together.cv_results_["mean_test_score"])


def test_several_scores_and_the_one_that_counts():
    found = search(scoring=["accuracy", "neg_log_loss"], refit="neg_log_loss").fit(X, Y)
    assert found.best_score_ == max(found.cv_results_["mean_test_neg_log_loss"])
    assert "split2_test_accuracy" in found.cv_results_


def test_a_stored_search_is_continued(tmp_path):
    storage = f"sqlite:///{tmp_path / 'search.db'}"
    first = search(storage=storage, budget=ft.Budget(trials=2)).fit(X, Y)
    second = search(storage=storage, budget=ft.Budget(trials=4)).fit(X, Y)
    assert second.cv_results_["params"][:2] == first.cv_results_["params"]
    with pytest.raises(InvalidArgument, match="must continue with the estimator or pipeline, the data, the folds"):
        search(storage=storage).fit(X[:, :2], Y)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (stats.uniform(2, 3), ft.Float(2, 5)),
        (stats.loguniform(1e-3, 10), ft.Float(1e-3, 10, log=True)),
        (stats.reciprocal(1e-3, 10), ft.Float(1e-3, 10, log=True)),
        (stats.randint(2, 9), ft.Int(2, 8)),
        (range(10, 51, 20), ft.Int(10, 50, step=20)),
        ([0.1, 1.0, 10.0], ft.Choice(0.1, 1.0, 10.0)),
        (np.array([1, 2, 4]), ft.Choice(1, 2, 4)),
        (["l2", None, "l2"], ft.Choice("l2", None)),
        ([(50,), (50, 20)], ft.Choice((50,), (50, 20))),
        (ft.Int(1, 3), ft.Int(1, 3)),
    ],
    ids=range(10),  # a distribution is named by its address
)
def test_what_scikit_learns_searches_take_is_a_parameter(given, meant):
    assert GivenSpace.of({"C": given}, LogisticRegression()).parameters["C"] == meant


def test_of_another_distribution_the_ends_are_searched_and_the_middle_is_expected():
    exponential = GivenSpace.of({"C": stats.expon(scale=100)}, LogisticRegression()).parameters["C"]
    assert (exponential.low, exponential.high) == (0, pytest.approx(100 * np.log(1000)))
    assert exponential.guess == pytest.approx((100 * np.log(4 / 3), 100 * np.log(4)))
    counts = GivenSpace.of({"C": stats.poisson(8)}, LogisticRegression()).parameters["C"]
    assert (counts.low, counts.high, counts.guess) == (0, 18, (6, 10))


def test_distributions_and_lists_are_searched_as_in_a_randomized_search():
    space = {"C": stats.loguniform(0.01, 100), "solver": ["lbfgs", "newton-cg"], "fit_intercept": [True, False]}
    found = search(space=space).fit(X, Y)
    theirs = RandomizedSearchCV(LogisticRegression(), space, n_iter=2, cv=3, random_state=0).fit(X, Y)
    assert set(found.best_params_) == set(theirs.best_params_)
    assert all(0.01 <= C <= 100 for C in found.cv_results_["param_C"])
    assert {type(found.best_params_[name]) for name in ("fit_intercept", "solver")} == {bool, str}


def test_estimators_and_functions_are_options(tmp_path):
    pipeline = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    space = {
        "standardscaler": [StandardScaler(), MinMaxScaler(), "passthrough"],
        "logisticregression": [LogisticRegression(max_iter=500), SVC()],
        "logisticregression__C": stats.loguniform(0.01, 100),
    }
    settings = {"storage": f"sqlite:///{tmp_path / 'search.db'}", "n_jobs": 2, "budget": ft.Budget(trials=8)}
    found = search(pipeline, space, **settings).fit(X, Y)
    used = {type(chosen) for chosen in found.cv_results_["param_logisticregression"]}
    assert used == {LogisticRegression, SVC}
    assert isinstance(found.best_params_["logisticregression"], LogisticRegression | SVC)
    assert type(found.best_estimator_[-1]) is type(found.best_params_["logisticregression"])
    assert found.best_estimator_[-1] is not found.best_params_["logisticregression"], "what was given stays unfitted"
    again = search(pipeline, space, **settings).fit(X, Y)
    assert len(again.study_.trials) == len(found.study_.trials)
    other = {**space, "logisticregression": [LogisticRegression(max_iter=400), SVC()]}
    with pytest.raises(ft.FarthingError):
        search(pipeline, other, **settings).fit(X, Y)


def test_params_of_an_estimator_that_is_an_option_are_searched_while_it_is_chosen():
    pipeline = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    space = {
        "logisticregression": [LogisticRegression(max_iter=500), SVC()],
        "logisticregression__gamma": ft.Float(0.01, 1, when={"logisticregression": "SVC()"}),
    }
    found = search(pipeline, space, budget=ft.Budget(trials=8)).fit(X, Y)
    for params in found.cv_results_["params"]:
        assert ("logisticregression__gamma" in params) == isinstance(params["logisticregression"], SVC)


def test_each_configuration_is_one_row_and_n_trials_counts_them():
    space = {"C": stats.loguniform(1e-2, 1e2), "gamma": stats.loguniform(1e-5, 1)}
    found = SearchCV(SVC(), space, n_trials=12, cv=3, random_state=0).fit(BIG_X, BIG_Y)
    rows = [tuple(params.items()) for params in found.cv_results_["params"]]
    assert len(rows) == len(set(rows)) == 12
    assert found.cv_results_["cost"].sum() == pytest.approx(found.study_.history.cost)


def test_a_space_of_fewer_configurations_ends_the_search():
    found = SearchCV(LogisticRegression(max_iter=500), {"C": [0.1, 1.0]}, n_trials=6, cv=3, random_state=0).fit(X, Y)
    assert sorted(found.cv_results_["param_C"]) == [0.1, 1.0]


class Ticking(Counting):
    """Takes a second for each sample that it fits, and a hundred more for each set that it scores."""

    clock: ClassVar[ft.FakeClock] = ft.FakeClock()

    def fit(self, X, y, sample_weight=None):
        Ticking.clock.advance(len(y))
        return super().fit(X, y, sample_weight)

    def score(self, X, y, sample_weight=None):
        Ticking.clock.advance(100 + len(y))
        return len(y)


def test_a_fold_gives_its_scores_and_the_seconds_of_its_fit_and_of_its_test():
    rows, targets = np.arange(150), np.tile([0, 1, 2], 50)
    data = Data(X, targets, [(rows[rows >= size], rows[:size]) for size in (10, 30, 110)], {})
    given = GivenSpace.of({"x": ft.Float(0.0, 1.0)}, Ticking())
    folds = {"folds": ft.Fidelity(1, 3, integer=True, trace=True)}
    study = ft.Study(ft.Space(given.parameters, fidelities=folds), maximize="score", clock=Ticking.clock)
    scorers = {"": lambda model, *rows: model.score(*rows)}
    work = Evaluation(Ticking(), given, data, scorers, Resource(None, None), seed=0, return_train_score=True)
    study.run(work, budget=ft.Budget(trials=1), executor="inline", progress=False)
    metrics = study.verify(work, executor="inline", progress=False).points[-1].metrics
    assert [metrics[f"split{fold}_fit_time"] for fold in range(3)] == [140, 120, 40]
    assert [metrics[f"split{fold}_score_time"] for fold in range(3)] == [110, 130, 210], (
        "of the test, as scikit-learn's"
    )
    assert [metrics[f"split{fold}_test_score"] for fold in range(3)] == [10, 30, 110]
    assert [metrics[f"split{fold}_train_score"] for fold in range(3)] == [140, 120, 40]


def test_times_and_train_scores_have_their_mean_and_their_spread_over_the_folds():
    found = search(return_train_score=True).fit(X, Y)
    points = [trial.points[-1].metrics for trial in found.study_.trials]
    for name in ("fit_time", "score_time", "train_score"):
        of_folds = np.array([[metrics[f"split{fold}_{name}"] for fold in range(3)] for metrics in points])
        assert found.cv_results_[f"mean_{name}"] == pytest.approx(of_folds.mean(axis=1))
        assert found.cv_results_[f"std_{name}"] == pytest.approx(of_folds.std(axis=1))
    assert "split2_train_score" in found.cv_results_


def test_train_scores_are_left_out_unless_they_are_asked_for():
    assert not [name for name in search().fit(X, Y).cv_results_ if "train_score" in name]


def test_the_columns_are_those_of_a_randomized_search():
    settings = {"cv": 3, "random_state": 0, "return_train_score": True}
    theirs = RandomizedSearchCV(LogisticRegression(max_iter=500), {"C": [0.1, 1.0]}, n_iter=2, **settings).fit(X, Y)
    ours = search(space={"C": [0.1, 1.0]}, return_train_score=True).fit(X, Y)
    assert set(theirs.cv_results_) <= set(ours.cv_results_)


def test_verbose_shows_how_it_goes(capfd):
    search(budget=ft.Budget(trials=1)).fit(X, Y)
    assert capfd.readouterr() == ("", "")
    search(budget=ft.Budget(trials=1), verbose=1).fit(X, Y)
    assert "".join(capfd.readouterr())


def test_a_seed_repeats_a_search():
    first, second = (
        search(RandomForestClassifier(5, random_state=0), {"max_depth": ft.Int(1, 9)}).fit(X, Y) for _ in range(2)
    )
    assert first.cv_results_["params"] == second.cv_results_["params"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"space": {"c": ft.Float(0, 1)}}, "must be among"),
        ({"space": ft.Space({"C": ft.Float(0, 1)}, fidelities={"a": ft.Fidelity(1, 2)})}, "must have parameters only"),
        ({"resource": "n_estimator"}, "must be among"),
        ({"space": {"C": 3.0}}, "a list of options, or a distribution of SciPy, got 3.0"),
        ({"space": [{"C": [1, 2]}, {"C": [3]}]}, "must have parameters only"),
        ({"resource": "solver"}, "must have a largest amount"),
    ],
)
def test_what_cannot_be_meant_is_refused(change, message):
    with pytest.raises(InvalidArgument, match=message):
        search(**change).fit(X, Y)


@pytest.mark.parametrize(
    ("last", "name", "more"),
    [
        (LogisticRegression(), "C", set()),
        (Ridge(), "alpha", {"check_supervised_y_2d"}),  # Ridge takes several targets; RandomizedSearchCV fails too
    ],
    ids=["classifier", "regressor"],
)
def test_scikit_learns_own_checks_hold(last, name, more):
    found = search(last, {name: ft.Float(0.1, 1)}, budget=ft.Budget(trials=2), cv=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(found, on_fail=None)
    assert {result["check_name"] for result in results if result["status"] == "failed"} == more
    assert sum(result["status"] == "passed" for result in results) > 40
