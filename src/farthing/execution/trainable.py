"""Work that is trained step by step, saved and continued."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farthing.errors import WorkError
from farthing.execution.results import Result, read_result
from farthing.execution.running_trial import RunningTrial
from farthing.trials import Params, Problem
from farthing.validation import shown

PROGRESS_FILE = "farthing.json"
"""Written beside the user's files in a checkpoint; holds how many steps stand in it."""


class Trainable(ABC):
    """Something that is trained in steps: an agent, a model.

    Give the class, not an instance, to `study.run`. A trial makes an instance, calls `setup`, `apply`, and if it
    continues from a checkpoint `load` and `apply` again, then `step` until the trial's fidelity is reached, and
    `save`. `self.trial` is there from `setup` on.
    """

    trial: RunningTrial

    @abstractmethod
    def setup(self, params: Params) -> None:
        """Builds the model or agent to train."""

    @abstractmethod
    def step(self) -> float | Mapping[str, Any]:
        """Trains one unit of the fidelity, such as an epoch; returns the value, or a mapping that holds it by name."""

    def apply(self, params: Params) -> None:  # noqa: B027  # not every Trainable has something to do here
        """Puts params into effect. It comes after `load`, so that the restored state cannot undo the chosen params."""

    def save(self, folder: Path) -> None:  # noqa: B027  # nor must it be continued
        """Writes all that `load` needs. A trial that saves nothing cannot be continued."""

    def load(self, folder: Path) -> None:  # noqa: B027
        """Restores the state that `save` wrote, perhaps under other params."""


@dataclass(frozen=True)
class TrainableWork:
    """Trains an instance of the class up to the trial's fidelity and reports every step."""

    trainable: type[Trainable]

    def check(self, problem: Problem) -> None:
        _only_trace(problem)
        missing = [method for method in ("setup", "step") if not self._defines(method)]
        if self._defines("save") != self._defines("load"):
            missing += [method for method in ("save", "load") if not self._defines(method)]
        if missing:
            raise WorkError(
                f"A Trainable must define setup and step, and save with load, got {self.trainable.__name__} "
                f"without {', '.join(missing)}. Add it."
            )

    def run(self, trial: RunningTrial) -> None:
        fidelity = _only_trace(trial.problem)
        trained = self._start(trial)
        steps = int(trial.fidelity[fidelity])
        for done in range(_steps_before(trial, steps), steps):
            result = read_result(trained.step(), trial.problem)
            place: dict[str, Any] = {fidelity: done + 1}
            value = _required(result, self.trainable)
            trial.report(value, metrics=result.metrics, gradient=result.gradient, **place)
        if self._defines("save"):
            _save(trained, trial.checkpoint_dir, steps=steps)

    def _start(self, trial: RunningTrial) -> Trainable:
        trained = self.trainable()
        trained.trial = trial
        trained.setup(trial.params)
        trained.apply(trial.params)
        if trial.resume_dir is not None:
            trained.load(trial.resume_dir)
            trained.apply(trial.params)
        return trained

    def _defines(self, method: str) -> bool:
        return getattr(self.trainable, method) is not getattr(Trainable, method)


def _required(result: Result, trainable: type[Trainable]) -> float:
    if result.value is None:
        raise WorkError(f"A step must return the value, got None from {trainable.__name__}. Return a number.")
    return result.value


def _only_trace(problem: Problem) -> str:
    """The fidelity that counts steps."""
    fidelities = problem.space.fidelities
    traces = [name for name, fidelity in fidelities.items() if fidelity.trace]
    if len(traces) != 1 or not fidelities[traces[0]].integer:
        raise WorkError(
            f"A Trainable needs exactly one trace fidelity, in whole steps, got {shown(dict(fidelities))}. "
            "Train a population, strategy=ft.PB2(population=8, interval=5, steps=100), or single runs, "
            'fidelities={"steps": ft.Fidelity(1, 100, integer=True, trace=True)}.'
        )
    return traces[0]


def _steps_before(trial: RunningTrial, steps: int) -> int:
    """The number of steps in the checkpoint that the trial continues from."""
    done = 0 if trial.resume_dir is None else _read_steps(trial.resume_dir)
    if done >= steps:
        raise WorkError(
            f"A continued trial must go further than its checkpoint, got {steps} steps and a checkpoint of {done}. "
            f"Ask for a higher fidelity."
        )
    return done


def _save(trained: Trainable, folder: Path, *, steps: int) -> None:
    trained.save(folder)
    if any(folder.iterdir()):
        (folder / PROGRESS_FILE).write_text(json.dumps({"steps": steps}))


def _read_steps(folder: Path) -> int:
    try:
        steps = json.loads((folder / PROGRESS_FILE).read_text())["steps"]
    except (OSError, ValueError, KeyError, TypeError):
        steps = None
    if not isinstance(steps, int):
        raise WorkError(
            f"A Trainable's checkpoint must hold its steps in {PROGRESS_FILE}, got none in {str(folder)!r}. "
            f"Continue only from trials of a Trainable."
        )
    return steps
