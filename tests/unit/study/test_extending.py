"""A space that grows while its study goes on."""

from pathlib import Path

import pytest

import farthing as ft
from farthing.errors import InvalidParams, InvalidSpace, StudyMismatch

SMALL = ft.Space({"x": ft.Float(0, 1), "act": ft.Choice("relu", "tanh")})
LARGE = ft.Space({"x": ft.Float(0, 4), "act": ft.Choice("relu", "tanh", "gelu"), "dropout": ft.Float(0, 0.5)})


def loss(trial: ft.RunningTrial) -> float:
    return abs(trial.params["x"] - 3) + trial.params.get("dropout", 0.0)


def study_of(storage: Path | None = None, strategy: ft.Strategy | None = None, trials: int = 6) -> ft.Study:
    study = ft.Study(SMALL, minimize="loss", storage=storage, strategy=strategy or ft.LogEI(initial=4), seed=0)
    study.run(loss, budget=ft.Budget(trials=trials), executor="inline")
    return study


def test_old_trials_get_the_filled_value_and_new_ones_use_the_new_space() -> None:
    study = study_of()
    study.extend(LARGE, fill={"dropout": 0.0})
    assert study.space == LARGE
    assert all(trial.params["dropout"] == 0.0 for trial in study.trials)
    assert list(study.trials[0].params) == list(LARGE.parameters)
    study.run(loss, budget=ft.Budget(trials=20), executor="inline")
    assert study.best.params["x"] > 2, "the optimum lies in the part that was added"
    assert any(trial.params["dropout"] > 0 for trial in study.trials)


def test_it_is_an_event_that_other_programs_and_a_resume_see(tmp_path: Path) -> None:
    study = study_of(tmp_path / "a.db")
    other = ft.Study.load("study", tmp_path / "a.db")
    assert other.space == SMALL
    study.extend(LARGE, fill={"dropout": 0.25})
    assert other.history.problem.space == LARGE
    assert other.trials == study.trials
    loaded = ft.Study.load("study", tmp_path / "a.db")
    assert (loaded.space, loaded.best.params["dropout"]) == (LARGE, 0.25)
    continued = ft.Study(LARGE, minimize="loss", storage=tmp_path / "a.db")
    assert continued.run(loss, budget=ft.Budget(trials=8), executor="inline").reason is ft.StopReason.BUDGET_SPENT


def test_trials_before_it_replay_in_the_old_space() -> None:
    study = study_of()
    suggested = study.history.before(5)
    study.extend(LARGE, fill={"dropout": 0.0})
    study.run(loss, budget=ft.Budget(trials=9), executor="inline")
    before = study.history.before(5)
    assert (before.problem.space, list(before)) == (SMALL, list(suggested))
    rng = ft.Randomness(0)
    [again] = study.strategy.suggest(before, ft.Remaining(), 1, rng)
    assert {name: study.trials[5].params[name] for name in SMALL.parameters} == again.params
    later = study.history.before(8)
    assert later.problem.space == LARGE
    [again] = study.strategy.suggest(later, ft.Remaining(), 1, rng)
    assert again.params == study.trials[8].params


def test_a_trial_that_waits_is_filled_too() -> None:
    study = study_of(trials=1)
    study.enqueue({"x": 0.5, "act": "relu"})
    study.extend(LARGE, fill={"dropout": 0.0})
    assert study.ask().params == {"x": 0.5, "act": "relu", "dropout": 0.0}


def test_conditional_parameters_are_filled_where_they_are_active() -> None:
    conditional = ft.Space({**SMALL.parameters, "slope": ft.Float(0, 1, when={"act": "relu"})})
    study = study_of()
    study.extend(conditional, fill={"slope": 0.5})
    assert {trial.params["act"]: "slope" in trial.params for trial in study.trials} == {"relu": True, "tanh": False}


def test_it_can_grow_twice() -> None:
    study = study_of()
    study.extend(ft.Space({**SMALL.parameters, "a": ft.Float(0, 1)}), fill={"a": 0.25})
    study.run(loss, budget=ft.Budget(trials=8), executor="inline")
    study.extend(ft.Space({**study.space.parameters, "b": ft.Float(0, 1)}), fill={"b": 0.75})
    assert all({"a", "b"} <= trial.params.keys() for trial in study.trials)
    assert study.history.before(3).problem.space == SMALL
    assert list(study.history.before(7).problem.space.parameters) == ["x", "act", "a"]


@pytest.mark.parametrize(
    ("space", "fill", "complaint"),
    [
        (LARGE, {}, r"must have a value for the trials so far, got none for 'dropout'.*fill=\{'dropout': …\}"),
        (LARGE, {"dropout": 0.9}, r"dropout must lie in \[0.0, 0.5\], got 0.9"),
        (LARGE, {"dropout": 0.0, "x": 1.0}, "'x'"),
        (SMALL, {}, "must differ from the old one"),
        (ft.Space({"x": ft.Float(0, 1)}), {}, "must keep every parameter, got one without 'act'"),
        (ft.Space({"x": ft.Float(0.9, 1), "act": ft.Choice("relu", "tanh")}), {}, "possible in an extended space"),
        (ft.Space(dict(SMALL.parameters), fidelities={"n": ft.Fidelity(1, 9)}), {}, "the same fidelities.*n is new"),
        (ft.Space(stages={"one": {"x": ft.Float(0, 1)}}), {}, "in stages cannot be extended"),
    ],
)
def test_what_cannot_be_meant_is_refused(space: ft.Space, fill: dict[str, object], complaint: str) -> None:
    study = study_of()
    with pytest.raises((InvalidSpace, InvalidParams), match=complaint):
        study.extend(space, fill=fill)
    assert study.space == SMALL


def test_the_refusal_of_a_changed_space_names_the_difference(tmp_path: Path) -> None:
    study_of(tmp_path / "a.db")
    with pytest.raises(StudyMismatch) as refusal:
        ft.Study(LARGE, minimize="loss", storage=tmp_path / "a.db")
    assert "dropout is new; x is Float(0.0, 4.0) instead of Float(0.0, 1.0)" in str(refusal.value)
    assert "extend(space, fill={…})" in str(refusal.value)
