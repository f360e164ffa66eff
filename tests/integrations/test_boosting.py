"""Boosting against the real libraries: rounds as a fidelity, continued models, params that take effect."""

import importlib
import json
from dataclasses import dataclass

import numpy as np
import pytest
from needing import need

import farthing as ft
from farthing.extending import Strategy, Suggestion

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 6))
Y = (X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.3 * RNG.normal(size=600) > 0).astype(float)
ROUNDS = ft.Fidelity(5, 40, integer=True, trace=True, best_so_far=True)
SPACE = ft.Space({"learning_rate": ft.Float(0.01, 0.5, log=True)}, fidelities={"rounds": ROUNDS})


class LightGBM:
    module, fixed = "lightgbm", {"objective": "binary", "num_leaves": 7, "verbosity": -1, "num_threads": 1}

    @staticmethod
    def sets():
        import lightgbm

        train = lightgbm.Dataset(X[:400], Y[:400])
        return train, train.create_valid(X[400:], Y[400:])

    @staticmethod
    def predicted(booster, rounds):
        return booster.predict(X[400:], raw_score=True, num_iteration=rounds)

    trees = staticmethod(lambda booster: booster.num_trees())

    @staticmethod
    def splits(booster):
        frame = booster.trees_to_dataframe()
        return [tree["threshold"].dropna().tolist() for _, tree in frame.groupby("tree_index")]


class XGBoost:
    module, fixed = "xgboost", {"objective": "binary:logistic", "max_depth": 3, "nthread": 1}

    @staticmethod
    def sets():
        import xgboost

        return xgboost.DMatrix(X[:400], Y[:400]), xgboost.DMatrix(X[400:], Y[400:])

    @staticmethod
    def predicted(booster, rounds):
        import xgboost

        return booster.predict(xgboost.DMatrix(X[400:]), output_margin=True, iteration_range=(0, rounds))

    trees = staticmethod(lambda booster: booster.num_boosted_rounds())

    @staticmethod
    def splits(booster):
        frame = booster.trees_to_dataframe()
        return [tree["Split"].dropna().tolist() for _, tree in frame.groupby("Tree")]


@pytest.fixture(params=[LightGBM, XGBoost], ids=lambda library: library.module)
def library(request):
    need(request.param.module)
    return request.param


def trained(library, trial, **settings):
    integration = importlib.import_module(f"farthing.integrations.{library.module}")
    return integration.train_rounds(trial, {**library.fixed, **trial.params}, *library.sets(), **settings)


@dataclass(frozen=True)
class Continuing(Strategy):
    """One run, continued along a schedule."""

    schedule: tuple[int, ...] = ()
    has_end = True

    def suggest(self, history, budget, count, rng):
        place = len(history)
        if place >= len(self.schedule) or history.in_flight:
            return []
        rounds = {"rounds": self.schedule[place]}
        return [Suggestion({"learning_rate": 0.2}, rounds, resume_from=place - 1 if place else None)]

    def resumable(self, history):
        return {trial.number for trial in history.done}


def boosters_of(library, schedule, *, space=SPACE, params=None, **settings):
    """Runs the amounts of rounds one after the other, each trial from the checkpoint of the one before."""
    study = ft.Study(space, minimize="loss", strategy=Continuing(tuple(schedule)), seed=0)
    boosters = []

    def work(trial):
        if params is not None:
            trial.params = params[len(boosters)]
        boosters.append(trained(library, trial, **settings))

    stopped = study.run(work, budget=ft.Budget(trials=len(schedule)), executor="inline", progress=False)
    for trial in study.trials:
        assert trial.failure is None, trial.failure.traceback
    assert stopped
    return study, boosters


def test_a_continued_model_is_the_uninterrupted_one_and_pays_for_the_increment(library):
    _, [whole] = boosters_of(library, [30], every=1)
    study, [_, continued] = boosters_of(library, [12, 30], every=1)
    assert library.trees(continued) == library.trees(whole) == 30
    assert library.predicted(continued, 30) == pytest.approx(library.predicted(whole, 30), abs=1e-5)
    first, second = study.trials
    assert [point.fidelity["rounds"] for point in first.points] == list(range(1, 13))
    assert [point.fidelity["rounds"] for point in second.points] == list(range(13, 31))
    assert second.resume_from == 0


def test_params_take_effect_after_a_restore(library):
    slow = {"learning_rate": 1e-6}
    _, [before, after] = boosters_of(library, [10, 20], params=[{"learning_rate": 0.3}, slow])
    moved = np.abs(library.predicted(after, 20) - library.predicted(before, 10)).max()
    assert moved < 1e-3, "with a rate of a millionth the ten further rounds change nothing"
    _, [before, after] = boosters_of(library, [10, 20], params=[slow, {"learning_rate": 0.3}])
    assert np.abs(library.predicted(after, 20) - library.predicted(before, 10)).max() > 0.1


def test_a_continued_model_draws_other_rows_than_it_began_with(library):
    bags = {"bagging_freq": 1, "bagging_fraction": 0.5} if library is LightGBM else {"subsample": 0.5}
    flat = {"learning_rate": 1e-9}
    _, [_, after] = boosters_of(replace_fixed(library, bags), [5, 10], params=[flat, flat])
    trees = library.splits(after)
    assert len(trees) == 10
    assert trees[:5] != trees[5:], "with a rate of nearly nothing the same rows would give the same trees"


def test_reports_come_every_so_many_rounds_and_at_the_end(library):
    study, _ = boosters_of(library, [25], every=10)
    assert [point.fidelity["rounds"] for point in study.trials[0].points] == [10, 20, 25]


def test_early_stopping_ends_a_run_which_is_then_full(library):
    space = ft.Space(
        {"learning_rate": ft.Float(0.01, 2.0)},
        fidelities={"rounds": ft.Fidelity(5, 400, integer=True, trace=True, best_so_far=True)},
    )
    study, [booster] = boosters_of(library, [400], space=space, params=[{"learning_rate": 0.9}], early_stopping=10)
    [trial] = study.trials
    reached = max(point.fidelity["rounds"] for point in trial.points)
    assert reached == library.trees(booster) < 400
    assert study.history.is_full(trial)
    state = json.loads((study.checkpoints.path(trial.checkpoint) / "boosting.json").read_text())
    assert state["rounds"] - state["best_round"] == 10


def test_a_study_continues_good_models(library):
    study = ft.Study(SPACE, minimize="loss", strategy=ft.ASHA(), seed=0)
    study.run(
        lambda trial: trained(library, trial) and None, budget=ft.Budget(trials=6), executor="inline", progress=False
    )
    assert not [trial.failure for trial in study.trials if trial.failure]
    assert any(trial.resume_from is not None for trial in study.trials)
    assert study.ledger.saved["warm starts"] > 0


def test_metrics_are_chosen_by_name(library):
    extra = {"metric": ["binary_logloss", "auc"]} if library is LightGBM else {"eval_metric": ["logloss", "auc"]}
    other = replace_fixed(library, extra)
    study, _ = boosters_of(other, [10], metric="auc")
    assert 0.5 < study.trials[0].value <= 1.0
    with pytest.raises(AssertionError, match="The metric must be one that the library computes, got 'f1'"):
        boosters_of(other, [10], metric="f1")


def replace_fixed(library, extra):
    return type(library.__name__, (library,), {"fixed": {**library.fixed, **extra}})


def test_a_space_without_rounds_is_refused(library):
    study = ft.Study(ft.Space({"learning_rate": ft.Float(0.01, 0.5)}), minimize="loss", strategy=ft.Random(), seed=0)
    study.run(lambda trial: trained(library, trial), budget=ft.Budget(trials=1), executor="inline", progress=False)
    assert "Boosting needs one trace fidelity" in study.trials[0].failure.reason


def test_early_stopping_needs_runs_that_are_worth_their_best_point(library):
    plain = ft.Space(SPACE.parameters, fidelities={"rounds": ft.Fidelity(5, 40, integer=True, trace=True)})
    with pytest.raises(AssertionError, match="Add best_so_far=True"):
        boosters_of(library, [10], space=plain, early_stopping=5)
