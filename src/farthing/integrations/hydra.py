"""`hydra/sweeper=farthing`: a study chooses the jobs of a sweep, and Hydra's launcher runs them.

The plugin that Hydra finds is `hydra_plugins/farthing_sweeper.py`; it hands its configuration over to `sweep`. A job is
a trial: its params and its fidelity are overrides, what it returns is its result, and its cost is the seconds that its
task took, wherever the launcher ran it.
"""

import functools
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

try:
    from hydra.core.plugins import Plugins
    from hydra.core.utils import JobReturn
    from hydra.plugins.launcher import Launcher
    from hydra.types import HydraContext, TaskFunction
    from omegaconf import DictConfig, OmegaConf
except ImportError as error:
    from farthing.errors import MissingExtra

    raise MissingExtra(
        "`hydra/sweeper=farthing` needs Hydra, which is absent. Install it: pip install 'farthing[hydra]'."
    ) from error

from farthing.costs import Budget
from farthing.errors import InvalidArgument, InvalidValue, WorkError
from farthing.execution import CarriesOut, Checkpoints, Ended, Job, RunningTrial
from farthing.execution.attempts import Attempted
from farthing.execution.executor import Listener, check_workers
from farthing.execution.results import read_value
from farthing.integrations.hydra_space import HydraSpace, quoted
from farthing.strategies import Strategy, as_strategy, strategy_from_json
from farthing.study import Study
from farthing.trials import Attempt, Problem, State
from farthing.trials.objectives import limit_from_json
from farthing.validation import shown

log = logging.getLogger("farthing")

COST = "cost"
"""The key of a returned mapping that has the cost of the job, where it is not in seconds."""
RESULTS = "optimization_results.yaml"
"""The file in the folder of the sweep that other sweepers of Hydra write too."""


def sweep(
    settings: Mapping[str, Any],
    arguments: Sequence[str],
    *,
    context: HydraContext,
    task: TaskFunction,
    config: DictConfig,
) -> None:
    """Runs a whole sweep; `settings` is `hydra.sweeper` as plain values."""
    space = HydraSpace.of(settings["params"], settings["fidelities"], arguments)
    keys = CheckpointKeys.of(settings, space)
    strategy, budget = _strategy(settings["strategy"]), _budget(settings["budget"])
    _require_end(strategy, budget)
    launcher = Plugins.instance().instantiate_launcher(context, Timed(task), config)
    with _study(settings, space, strategy, name=str(config.hydra.job.name)) as study:
        folder = Path(str(config.hydra.sweep.dir))
        folder.mkdir(parents=True, exist_ok=True)
        OmegaConf.save(config, folder / "multirun.yaml")
        launch = _launching(launcher, context, config)
        executor = LauncherExecutor(launch, space, keys, workers=settings["n_jobs"], next_job=_jobs_before(study))
        stopped = study.run(_by_launcher, budget=budget, executor=executor, progress=False, verify=settings["verify"])
        log.info("The sweep has ended: %s.\n%s", stopped, study.ledger)
        if not study.history.done:
            raise WorkError("A sweep needs a job that succeeds, got none. Correct the task: its errors are above.")
        log.info("%s", study.best)
        OmegaConf.save(OmegaConf.create(_results(study, space)), folder / RESULTS)


def _study(settings: Mapping[str, Any], space: HydraSpace, strategy: Strategy | None, *, name: str) -> Study:
    return Study(
        space.space,
        minimize=settings["minimize"],
        maximize=settings["maximize"],
        constraints={name: limit_from_json(form) for name, form in settings["constraints"].items()} or None,
        strategy=strategy,
        storage=settings["storage"],
        name=settings["study_name"] or name,
        seed=settings["seed"],
        cost_unit=settings["cost_unit"],
    )


def _jobs_before(study: Study) -> int:
    """How many jobs earlier sweeps of the study began: a sweep that is continued numbers its own after them."""
    return sum(trial.attempt - (trial.state is State.PENDING) for trial in study.trials)


def _by_launcher(trial: RunningTrial) -> None:
    """Stands for the task of the application, which Hydra's launcher has."""
    raise WorkError("The task of a sweep runs in Hydra's launcher, got a call. Run the application with --multirun.")


# ------------------------------------------------------------
# Settings.


def _strategy(given: Any) -> Strategy | None:
    """By its name, or with its arguments: `{name: ASHA, reduction: 4}`."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        return as_strategy(given)
    arguments = {key: value for key, value in given.items() if key != "name"}
    return strategy_from_json({"name": given.get("name"), "arguments": arguments})


def _budget(given: Mapping[str, Any]) -> Budget | None:
    limits = {name: limit for name, limit in given.items() if limit is not None}
    return Budget(**limits) if limits else None


def _require_end(strategy: Strategy | None, budget: Budget | None) -> None:
    if budget is None and not (strategy is not None and strategy.has_end):
        raise InvalidArgument(
            "A sweep needs a budget, got none. Write hydra.sweeper.budget.trials=50, or seconds= or cost= in its place."
        )


@dataclass(frozen=True)
class CheckpointKeys:
    """The keys of the application's configuration that get the folder to save to, and the one to continue from."""

    checkpoint: str | None
    resume: str | None

    @classmethod
    def of(cls, settings: Mapping[str, Any], space: HydraSpace) -> "CheckpointKeys":
        keys = cls(settings["checkpoint_key"], settings["resume_key"])
        has_trace = any(one.trace for one in space.space.fidelities.values())
        if (keys.checkpoint is None) != (keys.resume is None) or (has_trace and keys.checkpoint is None):
            raise InvalidArgument(
                "Both keys of checkpoints must be set, or neither where no fidelity is a trace, got "
                f"checkpoint_key={keys.checkpoint!r} and resume_key={keys.resume!r}. Name two keys of your "
                "configuration: the first gets the folder to save to, the second the one to continue from, or null."
            )
        return keys

    def overrides(self, trial: RunningTrial) -> list[str]:
        if self.checkpoint is None:
            return []
        begun = "null" if trial.resume_dir is None else quoted(str(trial.resume_dir))
        return [f"{self.checkpoint}={quoted(str(trial.checkpoint_dir))}", f"{self.resume}={begun}"]


# ------------------------------------------------------------
# Jobs: timed where they run, and launched in batches.


SECONDS_OF_ERROR = "_farthing_seconds"
"""The attribute of a task's exception that has the seconds it took."""


@dataclass(frozen=True)
class Ran:
    """A task's return value, and the seconds that it took."""

    returned: Any
    seconds: float


class Timed:
    """The task of the application, which also says how long it took, in whatever process it runs."""

    def __init__(self, task: TaskFunction) -> None:
        functools.update_wrapper(self, task)
        self._task = task

    def __call__(self, config: Any) -> Ran:
        began = time.perf_counter()
        try:
            return Ran(self._task(config), time.perf_counter() - began)
        except Exception as error:
            error.__dict__[SECONDS_OF_ERROR] = time.perf_counter() - began
            raise


Launch = Callable[[Sequence[Sequence[str]], int], Sequence[JobReturn]]
"""Runs a batch of overrides, whose first job has that number, and returns when all of them have ended."""


def _launching(launcher: Launcher, context: HydraContext, config: DictConfig) -> Launch:
    def launch(batch: Sequence[Sequence[str]], first: int) -> Sequence[JobReturn]:
        for overrides in batch:  # what Hydra cannot compose ends the sweep before a job of the batch has run
            context.config_loader.load_sweep_config(config, list(overrides))
        found: Sequence[JobReturn] = launcher.launch(batch, initial_job_idx=first)
        return found

    return launch


@dataclass
class LauncherExecutor:
    """An executor that collects as many jobs as there are workers, and lets Hydra's launcher run them together."""

    launch: Launch
    space: HydraSpace
    keys: CheckpointKeys
    workers: int
    next_job: int
    works_in_wait: bool = True
    _jobs: list[Job] = field(default_factory=list)
    _woken: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        check_workers(self.workers)

    def take_up(self, work: CarriesOut, problem: Problem, *, checkpoints: Checkpoints) -> None:
        """Says what is to be run; `study.run` calls it."""
        self._problem, self._checkpoints = problem, checkpoints

    @property
    def free(self) -> int:
        return self.workers - len(self._jobs)

    @property
    def running(self) -> tuple[Attempt, ...]:
        return tuple(job.attempt for job in self._jobs)

    def submit(self, job: Job) -> None:
        self._jobs.append(job)

    def wait(self, listener: Listener, *, timeout: float | None = None) -> list[Ended]:
        if not self._jobs:
            self._woken.wait(timeout)
            self._woken.clear()
            return []
        jobs, self._jobs = self._jobs, []
        trials = [self._trial(job, listener) for job in jobs]
        overrides = [[*self.space.overrides(one.params, one.fidelity), *self.keys.overrides(one)] for one in trials]
        returns = self.launch(overrides, self.next_job)
        self.next_job += len(jobs)
        return [self._ended(job, one, ran) for job, one, ran in zip(jobs, trials, returns, strict=True)]

    def wake(self) -> None:
        self._woken.set()

    def close(self) -> None:
        self._jobs.clear()

    def _trial(self, job: Job, listener: Listener) -> RunningTrial:
        send = functools.partial(listener.on_news, job.attempt)
        return RunningTrial(job, self._problem, send=send, checkpoints=self._checkpoints)

    def _ended(self, job: Job, trial: RunningTrial, ran: JobReturn) -> Ended:
        with Attempted(trial) as attempted:
            attempted.returned = self._result(trial, ran)
        return Ended(job.attempt, attempted.outcome())

    def _result(self, trial: RunningTrial, ran: JobReturn) -> Any:
        """Returns the task's value, once its cost is charged; raises what the task raised."""
        try:
            given = ran.return_value
        except Exception as error:
            log.warning("A job failed.", exc_info=True)
            if self._problem.measures_cost:
                trial.charge(getattr(error, SECONDS_OF_ERROR, 0.0))
            raise
        if not self._problem.measures_cost:
            return self._without_cost(trial, given.returned)
        trial.charge(given.seconds)
        return given.returned

    def _without_cost(self, trial: RunningTrial, returned: Any) -> Any:
        """The result without the cost that it says, which is charged."""
        if not isinstance(returned, Mapping) or COST not in returned:
            unit = self._problem.cost_unit
            raise InvalidValue(
                f"A job must return its cost where nothing measures {unit}, got {shown(returned)}. "
                f"Return {{{self._problem.value!r}: …, {COST!r}: …}}, or leave hydra.sweeper.cost_unit out."
            )
        trial.charge(read_value(returned[COST], name=COST))
        return {name: value for name, value in returned.items() if name != COST}


# ------------------------------------------------------------
# The results, as other sweepers write them.


def _results(study: Study, space: HydraSpace) -> dict[str, Any]:
    """The best in plain values; with several objectives the front."""
    ledger, best = study.ledger, study.best
    paid = {"cost": ledger.total, "cost_unit": ledger.unit, "trials": len(study.history)}
    if len(study.problem.objectives) > 1:
        solutions = [{"params": space.by_key(one.params), "values": dict(one.values)} for one in study.front]
        return {"name": "farthing", "solutions": solutions, **paid}
    fidelity = {"best_fidelity": space.by_key(best.trial.fidelity)} if best.trial and space.space.fidelities else {}
    return {"name": "farthing", "best_params": space.by_key(best.params), "best_value": best.value, **fidelity, **paid}
