"""Hydra: sweeps of a small application in processes of their own, with the real library, and its syntax as a space."""

import dataclasses
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from needing import need

need("hydra")
need("hydra_plugins.hydra_joblib_launcher")

from hydra.core.override_parser.overrides_parser import OverridesParser  # noqa: E402
from hydra.core.utils import JobReturn, JobStatus  # noqa: E402
from omegaconf import OmegaConf  # noqa: E402

import farthing as ft  # noqa: E402
from farthing.errors import InvalidArgument, InvalidSpace  # noqa: E402
from farthing.integrations.hydra import SECONDS_OF_ERROR, CheckpointKeys, LauncherExecutor, Ran, Timed  # noqa: E402
from farthing.integrations.hydra_space import HydraSpace, quoted  # noqa: E402
from hydra_plugins.farthing_sweeper import BudgetConf  # noqa: E402

CONFIG = """
defaults:
  - optimizer: sgd
  - override hydra/sweeper: farthing
  - _self_
x: 0.0
epochs: 9
task: loss
save_to: null
begin_with: null
hydra:
  sweep: {dir: sweep, subdir: "${hydra.job.num}"}
  sweeper: {minimize: error, budget: {trials: 4}, strategy: Sobol, seed: 0}
"""

APPLICATION = '''
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hydra
from hydra.core.config_store import ConfigStore


@dataclass
class Config:
    """A whole number of epochs stays one: Hydra refuses 3.0."""

    x: float
    epochs: int
    task: str
    save_to: Any
    begin_with: Any
    optimizer: Any


ConfigStore.instance().store(name="schema", node=Config)


def loss(config):
    return (config.x - 1) ** 2 + (config.optimizer.name == "sgd") + 1 / config.epochs


def fails_on_the_left(config):
    if config.x < 0:
        raise ValueError("x is on the left")
    return loss(config)


def dollars(config):
    return {"error": loss(config), "cost": 1.5}


def no_dollars(config):
    return loss(config)


def gain(config):
    return -loss(config)


def error_and_size(config):
    return {"error": loss(config), "size": -config.x}


def continued(config):
    """Saves how far it came, and says where it went on from."""
    before = int(Path(config.begin_with, "epochs").read_text()) if config.begin_with else 0
    assert before < config.epochs
    Path(config.save_to, "epochs").write_text(str(config.epochs))
    with Path(os.environ["STEPS"]).open("a") as steps:
        steps.write(f"{before} {config.epochs}\\n")
    return loss(config)


def dies_once(config):
    """In the second job that runs, by the signal that the environment names."""
    jobs = Path(os.environ["JOBS"])
    with jobs.open("a") as file:
        file.write(f"{config.x}\\n")
    if len(jobs.read_text().splitlines()) == 2:
        os.kill(os.getpid(), int(os.environ["SIGNAL"]))
    return loss(config)


TASKS = [loss, fails_on_the_left, dollars, no_dollars, gain, error_and_size, continued, dies_once]


@hydra.main(version_base="1.3", config_path="conf", config_name="config")
def main(config):
    print("imports farthing" if "farthing" in sys.modules else "imports no farthing")
    return {task.__name__: task for task in TASKS}[config.task](config)


if __name__ == "__main__":
    main()
'''


class Application:
    """A small application with a configuration, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "conf" / "optimizer").mkdir(parents=True)
        (folder / "application.py").write_text(APPLICATION, encoding="utf-8")
        (folder / "conf" / "config.yaml").write_text(CONFIG.replace("- optimizer", "- schema\n  - optimizer"))
        for name, more in {"sgd": "momentum: 0.0", "adam": "beta: 0.9"}.items():
            (folder / "conf" / "optimizer" / f"{name}.yaml").write_text(f"name: {name}\nlr: 0.1\n{more}\n")

    def configure(self, **sweeper: Any) -> None:
        """Sets keys of `hydra.sweeper` in the configuration."""
        path = self.folder / "conf" / "config.yaml"
        config = OmegaConf.load(path)
        for key, value in sweeper.items():
            OmegaConf.update(config, f"hydra.sweeper.{key}", value, merge=False)
        OmegaConf.save(config, path)

    def run(self, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "application.py", *arguments],
            cwd=self.folder,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    def sweep(self, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        """Runs a sweep, which must succeed."""
        ended = self.run("--multirun", *arguments, **environment)
        assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"
        return ended

    def refused(self, *arguments: str) -> str:
        """What a sweep says that is refused before a job has run."""
        ended = self.run("--multirun", *arguments)
        assert ended.returncode == 1
        assert "Launching" not in ended.stdout
        assert "Traceback" not in ended.stderr
        return ended.stderr

    @property
    def results(self) -> Any:
        return OmegaConf.to_container(OmegaConf.load(self.folder / "sweep" / "optimization_results.yaml"))

    @property
    def jobs(self) -> list[int]:
        """The numbers of the jobs that have a folder."""
        return sorted(int(path.parent.name) for path in (self.folder / "sweep").glob("*/.hydra"))

    def overrides(self, job: int) -> list[str]:
        found = OmegaConf.to_container(OmegaConf.load(self.folder / "sweep" / str(job) / ".hydra" / "overrides.yaml"))
        assert isinstance(found, list)
        return list(map(str, found))

    def config(self, job: int) -> Any:
        return OmegaConf.load(self.folder / "sweep" / str(job) / ".hydra" / "config.yaml")

    def study(self, name: str = "application") -> ft.Study:
        return ft.Study.load(name, f"sqlite:///{self.folder / 'sweep.db'}")


@pytest.fixture
def application(tmp_path: Path) -> Application:
    return Application(tmp_path)


IN_A_FILE = "hydra.sweeper.storage=sqlite:///sweep.db"


# ----------------------------------------------------------------------------------------------------------------------
# Sweeps.


def test_a_sweep_runs_until_its_budget_of_trials_is_spent_and_writes_what_other_sweepers_do(application):
    ended = application.sweep("x=interval(-5,5)", "optimizer=sgd,adam", "epochs=3")
    assert application.jobs == [0, 1, 2, 3]
    assert OmegaConf.load(application.folder / "sweep" / "multirun.yaml").hydra.sweeper.budget.trials == 4
    assert [override.split("=")[0] for override in application.overrides(2)] == ["epochs", "x", "optimizer"]
    results = application.results
    assert results["name"] == "farthing"
    assert results["best_params"].keys() == {"x", "optimizer"}
    assert results["trials"] == 4
    assert results["cost"] > 0
    assert results["cost_unit"] == "seconds"
    configs = [application.config(job) for job in application.jobs]
    errors = [(one.x - 1) ** 2 + (one.optimizer.name == "sgd") + 1 / 3 for one in configs]
    assert results["best_value"] == pytest.approx(min(errors))
    assert "the budget is spent" in ended.stdout


def test_the_seed_decides_what_a_sweep_tries(application):
    for folder, seed in {"sweep": 0, "again": 0, "other": 1}.items():
        application.sweep("x=interval(-5,5)", f"hydra.sweep.dir={folder}", f"hydra.sweeper.seed={seed}")
    read = [
        OmegaConf.load(application.folder / name / "3/.hydra/config.yaml").x for name in ("sweep", "again", "other")
    ]
    assert read[0] == read[1] != read[2]


def test_hydra_finds_the_plugin_and_runs_without_a_sweep_do_not_import_farthing(application):
    listed = application.run("--info", "plugins").stdout
    assert re.search(r"Sweeper:\s*\n(.*\n)*?.*FarthingSweeper", listed)
    assert application.run().stdout.splitlines() == ["imports no farthing"]


def test_a_sweep_ends_when_the_dollars_of_its_jobs_are_spent(application):
    application.configure(budget={"cost": 5.0}, cost_unit="dollars")
    application.sweep("x=interval(-5,5)", "task=dollars", IN_A_FILE)
    assert (application.results["cost"], application.results["cost_unit"]) == (4.5, "dollars")
    assert application.jobs == [0, 1, 2]
    with application.study() as study:
        assert not any(point.metrics for trial in study.trials for point in trial.measurements)


def test_a_job_must_say_its_cost_where_nothing_measures_it(application):
    ended = application.run("--multirun", "x=interval(-5,5)", "task=no_dollars", "hydra.sweeper.cost_unit=dollars")
    assert ended.returncode == 1
    assert "A job must return its cost where nothing measures dollars, got" in ended.stdout
    assert "A sweep needs a job that succeeds, got none." in ended.stderr


def test_the_cost_is_the_seconds_of_the_tasks_and_those_of_failed_jobs_count(application):
    ended = application.sweep("x=interval(-5,5)", "task=fails_on_the_left", IN_A_FILE)
    assert "ValueError: x is on the left" in ended.stdout
    with application.study() as study:
        failed = [trial for trial in study.trials if trial.state == "failed"]
        assert [trial.params["x"] < 0 for trial in study.trials] == [trial in failed for trial in study.trials]
        assert 0 < len(failed) < 4
        assert all(trial.cost > 0 for trial in study.trials)
        assert application.results["cost"] == pytest.approx(study.history.cost)


def test_a_sweep_of_which_every_job_fails_is_ended_early(application):
    ended = application.run(
        "--multirun", "x=interval(-5,-1)", "task=fails_on_the_left", "hydra.sweeper.budget.trials=9"
    )
    assert ended.returncode == 1
    assert application.jobs == [0, 1, 2]
    assert "A sweep needs a job that succeeds, got none." in ended.stderr
    assert not (application.folder / "sweep" / "optimization_results.yaml").exists()


def test_a_value_can_be_maximized(application):
    application.configure(minimize=None, maximize="gain")
    application.sweep("x=interval(-5,5)", "task=gain")
    gains = [-((config.x - 1) ** 2 + 1 + 1 / 9) for config in map(application.config, application.jobs)]
    assert application.results["best_value"] == pytest.approx(max(gains))


def test_several_objectives_give_a_front(application):
    application.configure(minimize=["error", "size"], constraints={"size": {"at_most": 4.0}})
    application.sweep("x=interval(-5,5)", "task=error_and_size")
    points = [config.x for config in map(application.config, application.jobs)]
    solutions = application.results["solutions"]
    assert all(one["values"]["size"] == pytest.approx(-one["params"]["x"]) for one in solutions)
    best = min((x for x in points if x > -4), key=lambda x: (x - 1) ** 2)
    assert best in [pytest.approx(one["params"]["x"]) for one in solutions]
    assert {one["params"]["x"] for one in solutions} <= set(points)


def test_a_fidelity_is_an_override_and_whole_numbers_stay_whole(application):
    application.configure(
        strategy={"name": "ASHA", "reduction": 3}, fidelities={"epochs": "int(interval(1, 9))"}, budget={"trials": 8}
    )
    application.sweep("x=interval(-5,5)")
    amounts = [application.config(job).epochs for job in application.jobs]
    assert set(amounts) <= {1, 3, 9}
    assert len(set(amounts)) > 1
    assert application.results["best_fidelity"]["epochs"] in amounts


def test_a_run_is_continued_from_its_checkpoint(application):
    application.configure(
        strategy="ASHA",
        fidelities={"epochs": {"int": [1, 9], "trace": True}},
        budget={"trials": 8},
        checkpoint_key="save_to",
        resume_key="begin_with",
    )
    steps = application.folder / "steps"
    application.sweep("x=interval(-5,5)", "task=continued", "hydra.job.chdir=true", IN_A_FILE, STEPS=str(steps))
    taken = [tuple(map(int, line.split())) for line in steps.read_text().splitlines()]
    assert {before for before, _ in taken} > {0}
    with application.study() as study:
        continued = {trial.number for trial in study.trials if trial.resume_from is not None}
        assert [before > 0 for before, _ in taken] == [trial.number in continued for trial in study.trials]


def test_a_parameter_that_depends_on_another_is_overridden_only_where_it_is_used(application):
    application.configure(
        params={
            "optimizer": "choice(sgd, adam)",
            "optimizer.lr": "tag(log, interval(0.001, 1.0))",
            "optimizer.momentum": {"float": [0.0, 0.9], "when": {"optimizer": "sgd"}},
        }
    )
    application.sweep("hydra.sweeper.budget.trials=6")
    kinds = set()
    for job in application.jobs:
        config = application.config(job)
        names = {override.split("=")[0] for override in application.overrides(job)}
        assert names - {"optimizer.momentum"} == {"optimizer", "optimizer.lr"}
        assert ("optimizer.momentum" in names) == (config.optimizer.name == "sgd")
        kinds.add(config.optimizer.name)
    assert kinds == {"sgd", "adam"}


def test_the_command_line_comes_before_the_configuration(application):
    application.configure(params={"x": "interval(-5, 5)", "optimizer": "choice(sgd, adam)", "+seed": "range(3)"})
    application.sweep("optimizer=adam", "x=choice(2.0, 3.0)")
    configs = [application.config(job) for job in application.jobs]
    assert {config.optimizer.name for config in configs} == {"adam"}
    assert {config.x for config in configs} <= {2.0, 3.0}
    assert {config.seed for config in configs} <= {0, 1, 2}


def test_jobs_run_in_batches_in_the_processes_of_a_launcher(application):
    ended = application.sweep(
        "x=interval(-5,5)", "task=fails_on_the_left", "hydra/launcher=joblib", "hydra.sweeper.n_jobs=2", IN_A_FILE
    )
    assert ended.stdout.count("is launching 2 jobs") == 2
    assert application.jobs == [0, 1, 2, 3]
    with application.study() as study:
        assert {trial.state for trial in study.trials} == {"done", "failed"}
        assert all(trial.cost > 0 for trial in study.trials)


def test_the_recommendation_is_trained_to_the_end(application):
    application.configure(strategy="ASHA", fidelities={"epochs": "int(interval(1, 9))"}, verify=True)
    application.sweep("x=interval(-5,5)")
    assert application.config(application.jobs[-1]).epochs == 9
    assert application.results["best_fidelity"] == {"epochs": 9}


def test_hydras_callbacks_see_what_a_job_returned_and_its_seconds(application):
    callback = "{_target_: hydra.experimental.callbacks.LogJobReturnCallback}"
    ended = application.sweep("x=interval(-5,5)", f"+hydra.callbacks.log={callback}")
    assert ended.stdout.count("with return value: Ran(returned=") == 4


# ----------------------------------------------------------------------------------------------------------------------
# Ends and continuations.


def test_a_sweep_of_the_same_storage_and_name_is_continued(application):
    named = ("x=interval(-5,5)", IN_A_FILE, "hydra.sweeper.study_name=line")
    application.sweep(*named)
    application.sweep(*named, "hydra.sweeper.budget.trials=6")
    assert application.jobs == [0, 1, 2, 3, 4, 5]
    with application.study("line") as study:
        assert len(study.trials) == 6
        assert [trial.params["x"] for trial in study.trials] == [application.config(job).x for job in range(6)]
    assert application.results["trials"] == 6


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_sweep_that_was_killed_or_interrupted_repeats_the_job_that_ran_and_goes_on(application, number):
    jobs = application.folder / "jobs"
    command = ("x=interval(-5,5)", "task=dies_once", IN_A_FILE)
    environment = {"JOBS": str(jobs), "SIGNAL": str(int(number))}
    killed = application.run("--multirun", *command, **environment)
    assert killed.returncode != 0
    assert application.jobs == [0, 1]
    application.sweep(*command, **environment)
    points = [float(line) for line in jobs.read_text().splitlines()]
    assert points[1] == points[2]
    with application.study() as study:
        assert [trial.params["x"] for trial in study.trials] == [points[0], *points[2:]]
        assert {trial.state for trial in study.trials} == {"done"}
    assert application.jobs == [0, 1, 2, 3, 4], "the folder of the job that was killed stays as it is"


def test_every_job_pays_the_seconds_of_its_own_task():
    """In a batch the seconds that pass here are those of all jobs."""
    space = space_of("x=interval(-5,5)")

    def launch(batch, first):
        return [ran(float(overrides[0].removeprefix("x="))) for overrides in batch]

    def ran(x):
        error = ValueError("x is on the left")
        setattr(error, SECONDS_OF_ERROR, 3.0)
        status, given = (JobStatus.FAILED, error) if x < 0 else (JobStatus.COMPLETED, Ran(x, 2.0))
        return JobReturn(status=status, _return_value=given)

    study = ft.Study(space.space, minimize="error", strategy="Sobol", seed=0)
    executor = LauncherExecutor(launch, space, CheckpointKeys(None, None), workers=4, next_job=0)
    study.run(print, budget=ft.Budget(trials=8), executor=executor)
    assert {trial.state for trial in study.trials} == {"done", "failed"}
    assert [trial.cost for trial in study.trials] == [3.0 if trial.params["x"] < 0 else 2.0 for trial in study.trials]


def test_a_task_says_its_seconds_also_when_it_fails():
    assert Timed(lambda config: config)(3).returned == 3
    with pytest.raises(ZeroDivisionError) as caught:
        Timed(lambda config: 1 / config)(0)
    assert getattr(caught.value, SECONDS_OF_ERROR) > 0


# ----------------------------------------------------------------------------------------------------------------------
# Refusals: a sentence each, before a job has run.


REFUSALS: dict[str, tuple[list[str], str]] = {
    "no budget": (["hydra.sweeper.budget.trials=null"], "A sweep needs a budget, got none. Write hydra.sweeper.budget"),
    "a negative budget": (["hydra.sweeper.budget.trials=-1"], "got -1"),
    "no value": (["hydra.sweeper.minimize=null"], "A study needs a value to optimise"),
    "an unknown strategy": (["hydra.sweeper.strategy=Sobbol"], "'Sobbol'"),
    "a strategy without a name": (["+hydra.sweeper.strategy={reduction: 3}"], "A strategy must be named, got"),
    "no workers": (["hydra.sweeper.n_jobs=0"], "The number of workers must be"),
    "a trace without keys": (
        ["+hydra.sweeper.fidelities.epochs={int: [1, 9], trace: true}"],
        "Both keys of checkpoints must be set, or neither where no fidelity is a trace, got checkpoint_key=None and",
    ),
    "one key": (["hydra.sweeper.checkpoint_key=save_to"], "got checkpoint_key='save_to' and resume_key=None."),
    "a key twice": (["+hydra.sweeper.fidelities.x='interval(0, 1)'"], "must be a parameter or a fidelity, got both"),
    "another space": ([IN_A_FILE, "optimizer=sgd,adam"], "'application'"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_wrong_settings_are_refused_in_a_sentence(application, case):
    arguments, said = REFUSALS[case]
    if case == "another space":
        application.sweep("x=interval(-5,5)", IN_A_FILE)
    assert said in application.refused("x=interval(-5,5)", *arguments)


def test_overrides_that_hydra_cannot_compose_end_the_sweep_before_a_job_of_their_batch_has_run(application):
    ended = application.run(
        "--multirun", "optimizer=choice(sgd, adagrad)", "x=interval(-5,5)", "hydra.sweeper.n_jobs=4"
    )
    assert ended.returncode == 1
    assert "Could not find 'optimizer/adagrad'" in ended.stderr
    assert application.jobs == []


def test_every_limit_of_the_plugin_is_one_of_a_budget():
    limits = {limit.name: 3 for limit in dataclasses.fields(BudgetConf)}
    assert ft.Budget(**limits).trials == 3


# ----------------------------------------------------------------------------------------------------------------------
# Hydra's syntax as a space.


def space_of(*arguments: str, **given: Any) -> HydraSpace:
    return HydraSpace.of(given.get("params", {}), given.get("fidelities", {}), arguments)


PARAMETERS: dict[str, ft.Float | ft.Int | ft.Choice] = {
    "interval(0.0, 1.0)": ft.Float(0.0, 1.0),
    "interval(1, 10)": ft.Float(1.0, 10.0),
    "int(interval(1, 10))": ft.Int(1, 10),
    "tag(log, int(interval(1, 100)))": ft.Int(1, 100, log=True),
    "tag(log, interval(0.001, 1.0))": ft.Float(0.001, 1.0, log=True),
    "range(1, 4)": ft.Int(1, 3),
    "range(4)": ft.Int(0, 3),
    "range(0, 7, 2)": ft.Int(0, 6, step=2),
    "range(0, 8, 2)": ft.Int(0, 6, step=2),
    "range(6, 0, -2)": ft.Int(2, 6, step=2),
    "range(0.0, 1.0, 0.25)": ft.Float(0.0, 0.75, step=0.25),
    "range(0.1, 0.5, 0.1)": ft.Float(0.1, 0.4, step=0.1),
    "range(3, 4)": ft.Choice(3),
    "choice(a, 'b c', 3, 4.5, true)": ft.Choice("a", "b c", 3, 4.5, True),
    "tag(ordered, choice(8, 64, 512))": ft.Choice(8, 64, 512, ordered=True),
    "a,b": ft.Choice("a", "b"),
}


@pytest.mark.parametrize("written", PARAMETERS)
def test_hydras_syntax_is_a_parameter(written):
    assert space_of(f"it={written}").space.parameters["it"] == PARAMETERS[written]
    assert space_of(params={"it": written}).space.parameters["it"] == PARAMETERS[written]


@pytest.mark.parametrize("written", ["range(1, 9, 3)", "range(1, 10, 3)", "range(0.0, 1.0, 0.3)", "range(5, 0, -2)"])
def test_a_range_has_hydras_values_and_no_others(written):
    [override] = OverridesParser.create().parse_overrides([f"it={written}"])
    values = sorted(float(value) for value in override.sweep_string_iterator())
    parameter = space_of(f"it={written}").space.parameters["it"]
    assert (parameter.low, parameter.high) == pytest.approx((values[0], values[-1]))
    assert parameter.step == pytest.approx(values[1] - values[0])


OPTIONS = ["a", "b c", "it's", "a=b,c", "back\\slash\\", "null", "true", "1", 2, 2.5, 1e-9, -3, True, None]


@pytest.mark.parametrize("option", OPTIONS, ids=repr)
def test_options_of_tables_reach_the_configuration_as_they_are(option):
    [written] = space_of(params={"it": {"choice": [option, "other"]}}).overrides({"it": option}, {})
    [read] = OverridesParser.create().parse_overrides([written])
    assert (type(read.value()), read.value()) == (type(option), option)


@pytest.mark.parametrize("written", ["[1,2]", "{a:1,b:[x,y]}", "'b c'", "true", "0.001", "db/mysql", "a.b"])
def test_options_of_hydras_syntax_are_written_as_hydra_writes_them(written):
    space = space_of(f"it=choice({written}, other)")
    first = space.space.parameters["it"].options[0]
    [override] = OverridesParser.create().parse_overrides(space.overrides({"it": first}, {}))
    [expected] = OverridesParser.create().parse_overrides([f"it={written}"])
    assert override.value() == expected.value()


def test_lists_in_tables_are_lists():
    space = space_of(params={"layers": {"choice": [[64, 32], [128]]}})
    assert space.overrides({"layers": (64, 32)}, {}) == ["layers=[64,32]"]
    assert space.by_key({"layers": (64, 32)}) == {"layers": [64, 32]}


def test_keys_that_a_space_does_not_take_have_other_names_there():
    space = space_of(
        "+optimizer.lr=int(interval(0,1))",
        "db@source=a,b",
        "cost=range(3)",
        fidelities={"++t.epochs": "int(interval(1,9))"},
    )
    assert list(space.space.parameters) == ["optimizer.lr", "db_source", "cost_"]
    assert list(space.space.fidelities) == ["t_epochs"]
    written = space.overrides({"optimizer.lr": 1, "db_source": "a", "cost_": 2}, {"t_epochs": 9})
    assert written == ["+optimizer.lr=1", "db@source=a", "cost=2", "++t.epochs=9"]
    assert space.by_key({"cost_": 2, "optimizer.lr": 0}) == {"cost": 2, "optimizer.lr": 0}


def test_what_is_no_sweep_stays_the_same_in_every_job():
    space = space_of("x=interval(0,1)", "name='a b'", "+more=[1,2]", "~db", params={"name": "choice(a, b)", "y": 2})
    assert list(space.space.parameters) == ["x"]
    assert space.overrides({"x": 0.5}, {}) == ["name='a b'", "y=2", "+more=[1,2]", "~db", "x=0.5"]


def test_conditions_name_keys():
    table = {"float": [0.0, 0.9], "when": {"db@source": "a"}}
    space = space_of(params={"db@source": "choice(a, b)", "momentum": table}).space
    assert space.parameters["momentum"].when == {"db_source": ("a",)}


def test_fidelities_are_intervals_or_tables():
    space = space_of(
        "x=interval(0,1)", fidelities={"a": "tag(trace, int(interval(1, 9)))", "b": {"float": [0.1, 1.0]}}
    ).space
    assert space.fidelities == {"a": ft.Fidelity(1, 9, integer=True, trace=True), "b": ft.Fidelity(0.1, 1.0)}


WRONG: dict[str, tuple[Callable[[], HydraSpace], str]] = {
    "a glob": (lambda: space_of("db=glob(*)"), "must be choice(…), range(…) or interval(…), got 'db=glob(*)'"),
    "a tag": (lambda: space_of("x=tag(foo, interval(0,1))"), "must be 'log' here, got 'foo'"),
    "an empty range": (lambda: space_of("x=range(3, 3)"), "A range must have a value, got range(3, 3, 1)"),
    "no step": (lambda: space_of("x=range(1, 3, 0)"), "A range must have a value, got range(1, 3, 0)"),
    "a table's key": (lambda: space_of(params={"x": {"foat": [0, 1]}}), "'foat'"),
    "no override": (lambda: space_of("x=interval(0"), "must be overrides that Hydra reads, got"),
    "a fidelity of choices": (lambda: space_of("x=a,b", fidelities={"e": "1,2"}), "must be an interval, got 'e=1,2'"),
    "nothing to choose": (lambda: space_of("x=3"), "at least one parameter"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_space_is_refused(case):
    make, said = WRONG[case]
    with pytest.raises((InvalidArgument, InvalidSpace), match=re.escape(said)):
        make()


@pytest.mark.parametrize("text", ["/tmp/a b", "it's", "C:\\a\\", "a,b=c"])
def test_a_folder_is_quoted(text):
    [override] = OverridesParser.create().parse_overrides([f"save_to={quoted(text)}"])
    assert override.value() == text
