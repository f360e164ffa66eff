"""Farthing in Optuna: its own tests of samplers, the pruner, and studies that change sides."""

import math
import pickle
import re
import sqlite3
from contextlib import closing

import numpy as np
import pytest
from needing import need

need("optuna")

import optuna  # noqa: E402
from click.testing import CliRunner  # noqa: E402
from optuna.testing.pytest_samplers import (  # noqa: E402
    BasicSamplerTestCase,
    MultiObjectiveSamplerTestCase,
    RelativeSamplerTestCase,
    SingleOnlySamplerTestCase,
)

import farthing as ft  # noqa: E402
from farthing.cli.app import farthing as program  # noqa: E402
from farthing.errors import InvalidArgument  # noqa: E402
from farthing.integrations.optuna import (  # noqa: E402
    FarthingPruner,
    FarthingSampler,
    export_study,
    import_study,
)

optuna.logging.set_verbosity(optuna.logging.WARNING)


class TestFarthingSampler(BasicSamplerTestCase, RelativeSamplerTestCase, MultiObjectiveSamplerTestCase):
    @pytest.fixture
    def sampler(self):
        return lambda: FarthingSampler(seed=0)


class TestFarthingSamplerWithLogEI(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self):
        return lambda: FarthingSampler(ft.LogEI(), seed=1)


def parabola(trial):
    return (trial.suggest_float("x", -5, 5) - 1) ** 2 + (trial.suggest_float("y", -5, 5) + 2) ** 2


def optimized(sampler, objective=parabola, trials=15, **settings):
    study = optuna.create_study(sampler=sampler, **settings)
    study.optimize(objective, n_trials=trials)
    return study


def test_the_strategy_decides_and_finds_the_minimum():
    study = optimized(FarthingSampler(ft.LogEI(), seed=0), trials=20)
    assert study.best_value < 0.05


def test_a_declared_space_gives_the_suggestions_of_a_study_of_our_own():
    space = ft.Space({"x": ft.Float(-5, 5), "y": ft.Float(-5, 5)})
    theirs = optimized(FarthingSampler(ft.LogEI(), space=space, seed=3), trials=10)
    ours = ft.Study(space, minimize="value", strategy=ft.LogEI(), seed=3, cost_unit="runs")
    for _ in range(10):
        trial = ours.ask()
        ours.tell(trial, (trial.params["x"] - 1) ** 2 + (trial.params["y"] + 2) ** 2, cost=1.0)
    assert [trial.params for trial in theirs.trials] == [dict(trial.params) for trial in ours.trials]


def test_the_initial_design_is_spread_around_the_first_trial_which_was_drawn_without_a_space():
    study = optimized(FarthingSampler(ft.LogEI(initial=8), seed=0), trials=8)
    declared = FarthingSampler(
        ft.LogEI(initial=8), space=ft.Space({"x": ft.Float(-5, 5), "y": ft.Float(-5, 5)}), seed=0
    )
    design = optimized(declared, trials=8)
    found, sobol = (
        np.array([[int((trial.params[name] + 5) / 10 * 2**20) for name in "xy"] for trial in one.trials])
        for one in (study, design)
    )
    assert not np.array_equal(found[0], sobol[0])
    assert np.abs((found ^ found[0]) - (sobol ^ sobol[0])).max() <= 4, "the same sequence after a digital shift"


def test_the_direction_is_that_of_the_study():
    study = optimized(
        FarthingSampler(ft.LogEI(), seed=0), lambda trial: -parabola(trial), trials=20, direction="maximize"
    )
    assert study.best_value > -0.05


def test_a_seed_repeats_a_study_and_pickling_changes_nothing():
    first = optimized(FarthingSampler(ft.LogEI(), seed=5), trials=8)
    second = optimized(pickle.loads(pickle.dumps(FarthingSampler(ft.LogEI(), seed=5))), trials=8)
    assert [trial.params for trial in first.trials] == [trial.params for trial in second.trials]


def test_a_study_is_continued_from_its_storage(tmp_path):
    storage = f"sqlite:///{tmp_path / 'optuna.db'}"
    whole = optimized(FarthingSampler(ft.LogEI(), seed=5), trials=8)
    for trials in (5, 3):
        optimized(
            FarthingSampler(ft.LogEI(), seed=5), trials=trials, storage=storage, study_name="s", load_if_exists=True
        )
    stored = optuna.load_study(study_name="s", storage=storage)
    assert [trial.params for trial in stored.trials] == [trial.params for trial in whole.trials]


def test_threads_are_given_different_params():
    study = optuna.create_study(sampler=FarthingSampler(ft.LogEI(), seed=0))
    study.optimize(parabola, n_trials=12, n_jobs=3)
    assert len({tuple(trial.params.values()) for trial in study.trials}) == 12


def branching(trial):
    if trial.suggest_categorical("kind", ["tree", "net"]) == "net":
        return trial.suggest_float("rate", 0.1, 1.0)
    return trial.suggest_int("depth", 1, 9) / 10


def test_what_define_by_run_hides_is_said_once_for_each_parameter(caplog):
    optimized(FarthingSampler(ft.LogEI(), seed=0), branching, trials=12)
    said = [record.getMessage() for record in caplog.records]
    assert 1 <= len(said) == len(set(said)) <= 2
    assert re.search(r"'(rate|depth)' is drawn at random", caplog.text)
    assert "FarthingSampler(space=ft.Space(…))" in caplog.text


def test_a_declared_space_hides_nothing(caplog):
    space = ft.Space(
        {
            "kind": ft.Choice("tree", "net"),
            "rate": ft.Float(0.1, 1.0, when={"kind": "net"}),
            "depth": ft.Int(1, 9, when={"kind": "tree"}),
        }
    )
    study = optimized(FarthingSampler(ft.LogEI(), space=space, seed=0), branching, trials=12)
    assert not caplog.records
    assert study.best_value < 0.15


def test_a_space_with_fidelities_is_refused():
    space = ft.Space({"x": ft.Float(0, 1)}, fidelities={"epochs": ft.Fidelity(1, 9)})
    with pytest.raises(InvalidArgument, match=r"must have parameters only, got .* Leave fidelities to FarthingPruner"):
        FarthingSampler(space=space)


# --------------------------------------------------------------------------------------------------------- the pruner


def curve(trial):
    """Ends at |x|, from 3 down; good runs and bad ones are told apart early."""
    x = trial.suggest_float("x", 0.0, 1.0)
    for step in range(27):
        trial.report(x + 2.0 * 0.8**step, step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return x + 2.0 * 0.8**27


def test_bad_runs_are_pruned_and_the_best_one_is_not():
    study = optimized(optuna.samplers.RandomSampler(seed=0), curve, trials=30, pruner=FarthingPruner(max_steps=27))
    states = [trial.state for trial in study.trials]
    pruned = [trial for trial in study.trials if trial.state is optuna.trial.TrialState.PRUNED]
    assert len(pruned) >= 10
    assert optuna.trial.TrialState.PRUNED not in states[:5]
    assert min(trial.params["x"] for trial in study.trials) == pytest.approx(study.best_params["x"])
    assert sum(trial.last_step + 1 for trial in study.trials) < 0.7 * 30 * 27


def test_a_pruner_of_a_study_to_maximize_keeps_the_highest():
    study = optuna.create_study(
        direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0), pruner=FarthingPruner(max_steps=27)
    )

    def rising(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        for step in range(1, 28):
            trial.report(x - 2.0 * 0.8**step, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return x - 2.0 * 0.8**27

    study.optimize(rising, n_trials=25)
    assert max(trial.params["x"] for trial in study.trials) == pytest.approx(study.best_params["x"])
    assert any(trial.state is optuna.trial.TrialState.PRUNED for trial in study.trials)


@pytest.mark.parametrize(
    ("settings", "rule"),
    [({"max_steps": 0}, "max_steps must be"), ({"max_steps": 9, "chance": 1.5}, "The chance must be")],
)
def test_a_pruner_checks_its_arguments(settings, rule):
    with pytest.raises(InvalidArgument, match=rule):
        FarthingPruner(**settings)


# ------------------------------------------------------------------------------------------------------ changing sides


def mixed(trial):
    kind = trial.suggest_categorical("model kind", ["tree", "net"])
    x = trial.suggest_float("x", 1e-3, 1.0, log=True)
    size = trial.suggest_int("depth", 1, 9) if kind == "tree" else 5
    for step in range(1, 5):
        trial.report(x + size / step, step)
        if trial.number % 3 == 2 and step == 2:
            raise optuna.TrialPruned
    if trial.number == 4:
        raise ValueError("diverged")
    return x + size / 4


def study_of_optuna(**settings):
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1), study_name="mixed", **settings)
    study.optimize(mixed, n_trials=12, catch=(ValueError,))
    return study


def test_an_import_has_params_curves_and_durations():
    theirs = study_of_optuna()
    ours = import_study(theirs)
    assert ours.name == "mixed"
    assert ours.space.parameters["model_kind"] == ft.Choice("tree", "net")
    assert ours.space.parameters["x"] == ft.Float(1e-3, 1.0, log=True)
    assert ours.space.parameters["depth"] == ft.Int(1, 9, when={"model_kind": "tree"})
    assert ours.space.fidelities["steps"] == ft.Fidelity(1, 4, integer=True, trace=True)
    assert len(ours.trials) == 12
    for one, other in zip(theirs.trials, ours.trials, strict=True):
        assert list(one.params.values()) == [other.params[name.replace(" ", "_")] for name in one.params]
        assert other.cost == pytest.approx(one.duration.total_seconds())
        if one.state is not optuna.trial.TrialState.FAIL:
            curve = {point.fidelity["steps"]: point.value for point in other.points}
            assert curve == one.intermediate_values
            assert other.value == (one.value if one.value is not None else one.intermediate_values[2])
    assert [trial.state for trial in ours.trials].count("failed") == 1
    assert ours.trials[2].fidelity == {"steps": 2}
    assert ours.trials[4].failure.reason == "It failed in Optuna."


def test_an_imported_study_goes_on():
    ours = import_study(study_of_optuna())
    trial = ours.ask()
    ours.tell(trial, 0.5)
    assert ours.trials[-1].value == 0.5


def test_a_study_learns_from_an_imported_one(tmp_path):
    storage = f"sqlite:///{tmp_path / 'ours.db'}"
    with import_study(study_of_optuna(), storage=storage) as earlier:
        best, space, value = earlier.best.params, earlier.space, earlier.problem.value
    with ft.Study(space, minimize=value, storage=storage, name="next", learn_from="all") as study:
        assert (study.best.source, study.best.params) == ("mixed", best)
        assert study.ask().params == best
        assert study.trials[0].note["learned"] == [0, "mixed"]


def test_there_and_back_is_the_same(tmp_path):
    theirs = study_of_optuna()
    ours = import_study(theirs)
    again = export_study(ours, f"sqlite:///{tmp_path / 'back.db'}", study_name="back")
    for one, other in zip(theirs.trials, again.trials, strict=True):
        assert other.params == one.params
        assert other.state == one.state
        assert other.value == one.value
        assert other.duration.total_seconds() == pytest.approx(one.duration.total_seconds(), abs=1e-5)
        if one.state is not optuna.trial.TrialState.FAIL:
            assert other.intermediate_values == one.intermediate_values
    assert again.best_trial.user_attrs["farthing_trial"] == theirs.best_trial.number


def test_ranges_that_changed_are_joined_and_kinds_that_changed_are_refused():
    study = optuna.create_study()
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)
    study.optimize(lambda trial: trial.suggest_float("x", -1, 0.5), n_trials=2)
    assert import_study(study).space.parameters["x"] == ft.Float(-1, 1)
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1, step=0.25), n_trials=1)
    with pytest.raises(InvalidArgument, match=r"one kind and one scale in all trials, got .* for 'x'"):
        import_study(study)


def test_a_parameter_that_nothing_explains_is_refused_and_a_space_helps():
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))

    def odd(trial):
        x = trial.suggest_float("x", 0, 1)
        return x + (trial.suggest_float("y", 0, 1) if x > 0.5 else 0.0)

    study.optimize(odd, n_trials=6)
    with pytest.raises(InvalidArgument, match="must depend on a categorical one, got 'y'"):
        import_study(study)


def two_values(trial):
    x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
    return x * x + 0.5 * y, 1 - (1 - x) ** 2 - 0.5 * y


def test_a_sampler_finds_the_front_of_several_objectives():
    """Half of the design's points have y above 0.5, where nothing is on the front, which is y = 0."""
    study = optimized(FarthingSampler(seed=0), two_values, trials=16, directions=["minimize", "maximize"])
    assert np.median([trial.params["y"] for trial in study.trials[10:]]) < 0.1
    again = optimized(FarthingSampler(ft.LogEHVI(), seed=0), two_values, trials=12, directions=["minimize", "maximize"])
    assert len(again.best_trials) > 2


def test_a_strategy_of_one_value_is_refused_for_several_as_optuna_asks():
    study = optuna.create_study(sampler=FarthingSampler(ft.LogEI(), seed=0), directions=["minimize", "maximize"])
    with pytest.raises(ValueError, match="multi-objective"):
        study.optimize(two_values, n_trials=1)


def test_studies_of_several_objectives_change_sides():
    theirs = optimized(FarthingSampler(seed=0), two_values, trials=6, directions=["maximize", "minimize"])
    with pytest.raises(InvalidArgument, match="Each objective needs a name, got value='value' for 2"):
        import_study(theirs)
    ours = import_study(theirs, value=["speed", "error"])
    assert ours.problem.aim == "minimize error; maximize speed"
    for trial, other in zip(ours.trials, theirs.trials, strict=True):
        assert [trial.points[-1].metrics["speed"], trial.value] == other.values
    back = export_study(ours)
    assert [one.values for one in back.trials] == [
        [value, speed] for speed, value in (one.values for one in theirs.trials)
    ]
    assert {one.number for one in back.best_trials} == {one.number for one in theirs.best_trials}


def within(params):
    """At most 0 where x and y together are small."""
    return params["x"] + params["y"] - 1.0


def towards_the_corner(trial):
    return -trial.suggest_float("x", 0, 1) - trial.suggest_float("y", 0, 1)


def said_of_itself(trial):
    value = towards_the_corner(trial)
    trial.set_constraint("room", within(trial.params))
    return value


@pytest.mark.parametrize("says", ["the sampler", "the trial"])
def test_a_sampler_keeps_constraints_as_optuna_says_them(says):
    if says == "the trial" and not hasattr(optuna.Trial, "set_constraint"):
        pytest.skip("it is of Optuna 5")
    theirs = (lambda trial: [within(trial.params)]) if says == "the sampler" else None
    sampler = FarthingSampler(seed=0, constraints_func=theirs)
    study = optimized(sampler, towards_the_corner if theirs else said_of_itself, trials=20)
    beyond = [within(trial.params) for trial in study.trials[10:]]
    assert np.median(np.abs(beyond)) < 0.05, "the best lies on the limit"
    assert np.mean(np.array(beyond) < 0.05) > 0.7
    assert min(trial.value for trial in study.trials if within(trial.params) <= 0.0) < -0.95


def test_a_strategy_that_knows_no_constraints_is_refused_with_them():
    with pytest.raises(InvalidArgument, match="LogEI"):
        FarthingSampler(ft.LogEI(), constraints_func=lambda trial: [0.0])


def test_a_constraint_that_is_no_number_is_refused():
    study = optuna.create_study(sampler=FarthingSampler(seed=0, constraints_func=lambda trial: [math.nan]))
    with pytest.raises(InvalidArgument, match="A constraint must be a number, got nan"):
        study.optimize(towards_the_corner, n_trials=1)


def test_constraints_change_sides():
    sampler = FarthingSampler(seed=0, constraints_func=lambda trial: [within(trial.params)])
    theirs = optimized(sampler, towards_the_corner, trials=12)
    ours = import_study(theirs)
    assert ours.problem.constraints == {"constraint_0": ft.AtMost(0.0)}
    assert [trial.points[-1].metrics["constraint_0"] for trial in ours.trials] == [
        within(trial.params) for trial in theirs.trials
    ]
    assert within(ours.best.params) <= 0.0
    back = export_study(ours)
    assert [one.system_attrs["constraints"] for one in back.trials] == [
        one.system_attrs["constraints"] for one in theirs.trials
    ]


# ---------------------------------------------------------------------------------------------------- the command line


def farthing(*arguments):
    return CliRunner().invoke(program, [str(part) for part in arguments])


def test_the_command_line_imports_several_objectives_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = {"storage": "sqlite:///optuna.db", "study_name": "two", "directions": ["maximize", "minimize"]}
    optimized(FarthingSampler(seed=0), two_values, trials=3, **settings)
    arguments = ("import", "optuna", "sqlite:///optuna.db", "--study", "two", "--storage", "ours.db")
    assert "Each objective needs a name" in farthing(*arguments).output
    assert farthing(*arguments, "--value", "speed", "--value", "error").exit_code == 0
    assert "two: minimize error; maximize speed" in farthing("show", "two", "--storage", "ours.db").output


def test_the_command_line_imports_a_study_and_exports_it_back(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    theirs = study_of_optuna(storage="sqlite:///optuna.db")
    said = farthing("import", "optuna", "sqlite:///optuna.db", "--study", "mixed", "--storage", "ours.db")
    assert said.exit_code == 0, said.output
    assert "Imported 12 trials into 'mixed'" in said.output
    with ft.Study.load("mixed", "ours.db") as ours:
        assert ours.history.cost == pytest.approx(sum(trial.duration.total_seconds() for trial in theirs.trials))
    assert farthing("show", "mixed", "--storage", "ours.db").exit_code == 0
    assert farthing("export", "mixed", "--storage", "ours.db", "--optuna", "sqlite:///back.db").exit_code == 0
    back = optuna.load_study(study_name="mixed", storage="sqlite:///back.db")
    assert [trial.params for trial in back.trials] == [trial.params for trial in theirs.trials]
    again = farthing("export", "mixed", "--storage", "ours.db", "--optuna", "sqlite:///back.db")
    assert again.exit_code == 1
    assert "must be new in Optuna, got 'mixed'" in again.output


def test_the_command_line_names_what_is_not_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study_of_optuna(storage="sqlite:///optuna.db")
    said = farthing("import", "optuna", "sqlite:///optuna.db", "--study", "mixd", "--storage", "ours.db")
    assert said.exit_code == 1
    assert "must be there and have the study, got 'sqlite:///optuna.db' and 'mixd'" in said.output


def tables_in(path):
    with closing(sqlite3.connect(path)) as database:
        return {name for (name,) in database.execute("select name from sqlite_master")}


def test_a_misspelt_storage_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = farthing("import", "optuna", "sqlite:///misspelt.db", "--study", "mixed", "--storage", "ours.db")
    assert said.exit_code == 1
    assert "got 'sqlite:///misspelt.db' and 'mixed': there is no such file" in said.output
    with pytest.raises(InvalidArgument, match="there is no such file"):
        import_study("sqlite:///misspelt.db", study_name="mixed")
    assert not list(tmp_path.iterdir())
    said = farthing("import", "optuna", "optuna.log", "--study", "mixed", "--storage", "ours.db")
    assert "got 'optuna.log' and 'mixed'" in said.output
    assert not list(tmp_path.iterdir())


def test_a_database_of_others_stays_as_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ft.Study(ft.Space({"x": ft.Float(0, 1)}), minimize="loss", storage="ours.db", name="own").close()
    before = tables_in("ours.db")
    said = farthing("import", "optuna", "sqlite:///ours.db", "--study", "own", "--storage", "ours.db")
    assert said.exit_code == 1
    assert "it holds no studies of Optuna" in said.output
    assert tables_in("ours.db") == before
