"""A space that grows while its study goes on."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import farthing as ft
from farthing.cli.app import farthing as program
from farthing.errors import InvalidArgument, InvalidParams, InvalidSpace, StudyMismatch
from farthing.extending import Randomness, Remaining, Strategy
from farthing.testing import check_replay

SMALL = ft.Space({"x": ft.Float(0, 1), "act": ft.Choice("relu", "tanh")})
LARGE = ft.Space({"x": ft.Float(0, 4), "act": ft.Choice("relu", "tanh", "gelu"), "dropout": ft.Float(0, 0.5)})


def loss(trial: ft.RunningTrial) -> float:
    return abs(trial.params["x"] - 3) + trial.params.get("dropout", 0.0)


def study_of(storage: Path | None = None, strategy: Strategy | None = None, trials: int = 6) -> ft.Study:
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
    rng = Randomness(0)
    [again] = study.strategy.suggest(before, Remaining(), 1, rng)
    assert {name: study.trials[5].params[name] for name in SMALL.parameters} == again.params
    later = study.history.before(8)
    assert later.problem.space == LARGE
    [again] = study.strategy.suggest(later, Remaining(), 1, rng)
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
        (ft.Space({"x": ft.Float(0, 1)}), {}, r"retired must have a value.*got none for 'act'.*fill=\{'act': …\}"),
        (ft.Space({"x": ft.Float(0, 1)}), {"act": "gelu"}, "act must be one of"),
        (ft.Space({"y": ft.Float(0, 1)}), {"x": 0.5, "act": "relu"}, "got none for 'y'"),
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


@pytest.mark.parametrize(
    "aims",
    [{"minimize": "loss"}, {"minimize": ["other", "loss"]}, {"minimize": "a", "constraints": {"loss": ft.AtMost(1)}}],
)
def test_a_parameter_named_like_a_value_is_refused_before_anything_is_stored(
    tmp_path: Path, aims: dict[str, Any]
) -> None:
    study = ft.Study(SMALL, storage=tmp_path / "a.db", seed=0, **aims)
    with pytest.raises(InvalidArgument, match="must have a name of its own, got 'loss'"):
        study.extend(ft.Space({**SMALL.parameters, "loss": ft.Float(0, 1)}), fill={"loss": 0.5})
    assert not study.history.events
    assert ft.Study.load("study", tmp_path / "a.db").space == SMALL
    ft.Study(SMALL, storage=tmp_path / "a.db", name="other", learn_from="all", **aims)


def test_starts_that_were_learnt_need_the_value_of_a_new_parameter_too(tmp_path: Path) -> None:
    earlier = ft.Study(SMALL, minimize="loss", storage=tmp_path / "a.db", name="earlier", seed=0)
    earlier.run(loss, budget=ft.Budget(trials=4), executor="inline")
    later = ft.Study(SMALL, minimize="loss", storage=tmp_path / "a.db", name="later", learn_from="earlier", seed=1)
    with pytest.raises(InvalidParams, match="got none for 'dropout'"):
        later.extend(LARGE)
    assert ft.Study.load("later", tmp_path / "a.db").ask().params.keys() == SMALL.parameters.keys()


def test_the_refusal_of_a_changed_space_names_the_difference(tmp_path: Path) -> None:
    study_of(tmp_path / "a.db")
    with pytest.raises(StudyMismatch) as refusal:
        ft.Study(LARGE, minimize="loss", storage=tmp_path / "a.db")
    assert "dropout is new; x is Float(0.0, 4.0) instead of Float(0.0, 1.0)" in str(refusal.value)
    assert "extend(space, fill={…})" in str(refusal.value)


# ---- parameters that are retired ----

WITHOUT = ft.Space({"x": ft.Float(0, 1)})


def curved(trial: ft.RunningTrial) -> float:
    """Tanh is better everywhere, so that a study which may choose it does."""
    return (trial.params["x"] - 0.3) ** 2 - (trial.params["act"] == "tanh")


def retired_study(storage: Path | None = None, strategy: Strategy | None = None) -> ft.Study:
    study = ft.Study(SMALL, minimize="loss", storage=storage, strategy=strategy or ft.LogEI(initial=4), seed=0)
    study.run(curved, budget=ft.Budget(trials=7), executor="inline")
    assert study.best.params["act"] == "tanh"
    study.extend(WITHOUT, fill={"act": "relu"})
    return study


def test_new_trials_have_the_one_value_of_a_retired_parameter_and_old_ones_are_evidence() -> None:
    study = retired_study()
    before = [trial.params for trial in study.trials]
    assert {params["act"] for params in before} == {"relu", "tanh"}
    study.run(curved, budget=ft.Budget(trials=13), executor="inline")
    assert [trial.params for trial in study.trials[:7]] == before, "results keep the values they were measured with"
    assert {trial.params["act"] for trial in study.trials[7:]} == {"relu"}
    assert study.best.params["act"] == "relu"
    assert abs(study.best.params["x"] - 0.3) < 0.05, "what was learnt of x with tanh holds with relu"
    assert study.best.measured is not None
    assert study.best.measured.params["act"] == "relu"
    assert [trial.params["act"] for trial in study.top(20)][-1] == "tanh"


@pytest.mark.parametrize("strategy", [ft.Random(), ft.Sobol(), ft.EIPerCost(initial=4), ft.CMAES()], ids=repr)
def test_every_strategy_keeps_to_the_value(strategy: Strategy) -> None:
    study = retired_study(strategy=strategy)
    study.run(curved, budget=ft.Budget(trials=14), executor="inline")
    assert {trial.params["act"] for trial in study.trials[7:]} == {"relu"}


def test_a_best_that_is_no_longer_possible_says_so() -> None:
    study = ft.Study(SMALL, minimize="loss", seed=0)
    study.add({"x": 0.5, "act": "tanh"}, 0.25)
    study.extend(WITHOUT, fill={"act": "relu"})
    assert "No trial yet has act=relu" in repr(study.best)
    study.add({"x": 0.5}, 0.75)
    assert (study.best.value, study.best.explanation) == (0.75, None)


def test_a_retired_parameter_is_remembered_and_need_not_be_declared_again(tmp_path: Path) -> None:
    retired_study(tmp_path / "a.db")
    loaded = ft.Study.load("study", tmp_path / "a.db")
    assert dict(loaded.space.retired) == {"act": "relu"}
    assert loaded.history.before(5).problem.space == SMALL
    for space in (WITHOUT, loaded.space):
        continued = ft.Study(space, minimize="loss", storage=tmp_path / "a.db")
        continued.enqueue({"x": 0.25})
        assert continued.ask().params == {"x": 0.25, "act": "relu"}
    with pytest.raises(StudyMismatch, match=r"act is missing|is retired"):
        ft.Study(SMALL, minimize="loss", storage=tmp_path / "a.db")


def test_trials_before_it_replay_with_the_parameter_and_later_ones_without() -> None:
    study = retired_study()
    study.run(curved, budget=ft.Budget(trials=10), executor="inline")
    for number in (5, 8):
        before = study.history.before(number)
        [again] = study.strategy.suggest(before, Remaining(), 1, Randomness(0))
        assert again.params == study.trials[number].params
    assert not study.history.before(5).problem.space.retired


def test_a_retired_parameter_can_come_back() -> None:
    study = retired_study()
    study.extend(SMALL)
    assert study.space == SMALL
    assert study.best.params["act"] == "tanh"


def test_another_extension_leaves_what_is_retired_as_it_is() -> None:
    study = retired_study()
    study.extend(ft.Space({"x": ft.Float(0, 2), "y": ft.Int(1, 3)}), fill={"y": 2})
    assert (list(study.space.parameters), dict(study.space.retired)) == (["x", "y", "act"], {"act": "relu"})
    assert all(trial.params["y"] == 2 for trial in study.trials)


def test_numbers_and_conditional_parameters_are_retired_too() -> None:
    wide = ft.Space(
        {
            "rate": ft.Float(1e-3, 1, log=True),
            "layers": ft.Int(1, 8),
            "kind": ft.Choice("sgd", "adam"),
            "momentum": ft.Float(0, 1, when={"kind": "sgd"}),
        }
    )
    study = ft.Study(wide, minimize="loss", strategy=ft.LogEI(initial=4), seed=1)
    study.run(lambda trial: trial.params["rate"], budget=ft.Budget(trials=8), executor="inline")
    study.extend(ft.Space({"kind": wide.parameters["kind"]}), fill={"rate": 0.1, "layers": 3, "momentum": 0.9})
    study.run(lambda trial: trial.params["rate"], budget=ft.Budget(trials=14), executor="inline")
    for trial in study.trials[8:]:
        rest = {"momentum": 0.9} if trial.params["kind"] == "sgd" else {}
        assert trial.params == {"kind": trial.params["kind"], "rate": 0.1, "layers": 3, **rest}


def test_runs_of_another_value_are_neither_promoted_nor_recommended() -> None:
    space = ft.Space(dict(SMALL.parameters), fidelities={"epochs": ft.Fidelity(1, 9, integer=True, trace=True)})
    shorter = ft.Space(dict(WITHOUT.parameters), fidelities=dict(space.fidelities))
    for strategy in (ft.ASHA(), ft.TraceKG()):
        study = ft.Study(space, minimize="loss", strategy=strategy, seed=0)
        study.run(curved, budget=ft.Budget(trials=9), executor="inline")
        so_far = len(study.trials)
        study.extend(shorter, fill={"act": "relu"})
        study.run(curved, budget=ft.Budget(trials=20), executor="inline")
        assert study.best.params["act"] == "relu"
        later = study.trials[so_far:]
        assert {trial.params["act"] for trial in later if trial.resume_from is None} == {"relu"}
        if isinstance(strategy, ft.ASHA):
            assert {trial.params["act"] for trial in later} == {"relu"}


def test_a_population_keeps_its_parameters() -> None:
    space = ft.Space(dict(SMALL.parameters), fidelities={"steps": ft.Fidelity(1, 9, integer=True, trace=True)})
    study = ft.Study(space, minimize="loss", strategy=ft.PBT(population=4, interval=3), seed=0)
    with pytest.raises(InvalidSpace, match=r"A population must keep every parameter.*'act'"):
        study.extend(ft.Space(dict(WITHOUT.parameters), fidelities=dict(space.fidelities)), fill={"act": "relu"})


def test_a_check_of_the_database_knows_the_space_of_today(tmp_path: Path) -> None:
    study = study_of(tmp_path / "a.db")
    study.extend(LARGE, fill={"dropout": 0.0})
    study.run(loss, budget=ft.Budget(trials=8), executor="inline")
    result = CliRunner().invoke(program, ["check", "--storage", str(tmp_path / "a.db")])
    assert result.exit_code == 0, result.output


def test_what_was_learnt_from_earlier_studies_has_the_value_too(tmp_path: Path) -> None:
    earlier = ft.Study(SMALL, minimize="loss", storage=tmp_path / "a.db", name="earlier", seed=0)
    earlier.run(curved, budget=ft.Budget(trials=8), executor="inline")
    assert earlier.best.params["act"] == "tanh"
    later = ft.Study(SMALL, minimize="loss", storage=tmp_path / "a.db", name="later", learn_from="earlier", seed=1)
    later.extend(WITHOUT, fill={"act": "relu"})
    later.run(curved, budget=ft.Budget(trials=6), executor="inline")
    assert {trial.params["act"] for trial in later.trials} == {"relu"}


def test_a_study_that_was_extended_is_replayed_exactly() -> None:
    study = study_of()
    study.extend(LARGE, fill={"dropout": 0.0})
    study.run(loss, budget=ft.Budget(trials=9), executor="inline")
    assert check_replay(study) == []
