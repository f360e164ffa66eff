"""Trains once more by a schedule that was found."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from farthing.analysis.runs import Change, Schedule
from farthing.errors import InvalidArgument, WorkError
from farthing.execution import CarriesOut, Checkpoints, Job, RunningTrial, Work, as_work
from farthing.execution.attempts import run_attempt
from farthing.execution.executor import News
from farthing.execution.stored_checkpoints import checkpoints_at
from farthing.session.folder import folder_path
from farthing.space import Choice, Fidelity, Space
from farthing.trials import Attempt, Measurement, Problem, State


@dataclass(frozen=True)
class Replay:
    """The result: the value after each reported step, and the checkpoint that the work left, if any."""

    values: tuple[tuple[int, float], ...]
    checkpoint: Path | None

    @property
    def value(self) -> float:
        """The last."""
        return self.values[-1][1]


def replay(
    work: Work,
    schedule: Schedule | Mapping[str, Any] | Iterable[Change],
    *,
    steps: int | None = None,
    value: str = "value",
    folder: str | Path | None = None,
) -> Replay:
    """Trains `work` once more, in this process, by a schedule: `study.best.schedule`, or what its `to_json` wrote.

    When the params change the work is saved and continued, exactly as the study did.

    Args:
        steps, value: for a plain list of changes, its last step and the name of the value.
        folder: where checkpoints go; by default one that is left in the system's folder for temporary files.
    """
    plan = _schedule(schedule, steps=steps, value=value)
    shape = as_work(work)
    shape.check(problem_of(plan))
    checkpoints = checkpoints_at(str(folder_path(folder) or mkdtemp(prefix="farthing-replay-")))
    values: list[tuple[int, float]] = []
    checkpoint: Path | None = None
    for number, (start, end, params) in enumerate(plan.segments):
        if start and checkpoint is None:
            raise _no_checkpoint(start)
        job = Job(Attempt(number, 1), params, {plan.fidelity: end}, resume_dir=checkpoint)
        part, checkpoint = _carried_out(shape, job, plan, checkpoints, start=start)
        values += part
    return Replay(tuple(values), checkpoint)


def _carried_out(
    work: CarriesOut, job: Job, plan: Schedule, checkpoints: Checkpoints, *, start: int
) -> tuple[list[tuple[int, float]], Path | None]:
    """The values of one part of the schedule, and the checkpoint at its end."""
    curve = _Curve(plan.fidelity)
    trial = RunningTrial(job, problem_of(plan), send=curve.take, checkpoints=checkpoints)
    outcome = run_attempt(work, trial, let_through=(KeyboardInterrupt,))
    assert outcome is not None, "nobody takes a replay over"
    if outcome.state is not State.DONE or outcome.value is None:
        raise _failed(outcome.failure.reason if outcome.failure else str(outcome.state), start=start)
    end = int(job.fidelity[plan.fidelity])
    returned = [] if curve.values and curve.values[-1][0] == end else [(end, outcome.value)]
    return [*curve.values, *returned], checkpoints.path(outcome.checkpoint) if outcome.checkpoint else None


class _Curve:
    """Keeps what the work reports."""

    def __init__(self, fidelity: str) -> None:
        self._fidelity = fidelity
        self.values: list[tuple[int, float]] = []

    def take(self, news: News) -> None:
        if isinstance(news, Measurement) and news.value is not None:
            self.values.append((int(news.fidelity[self._fidelity]), news.value))


def _schedule(given: Any, *, steps: int | None, value: str) -> Schedule:
    if isinstance(given, Schedule):
        return given
    if isinstance(given, Mapping):
        return Schedule.from_json(given)
    if steps is None:
        raise InvalidArgument(
            "A list of changes does not say where it ends, got no steps. Give steps=100, or study.best.schedule itself."
        )
    return Schedule(tuple(given), steps, value=value)


def problem_of(schedule: Schedule) -> Problem:
    """The problem as the work sees it; params have only the values of the schedule."""
    names = dict.fromkeys(name for _, params in schedule for name in params)
    options = {name: _distinct(params[name] for _, params in schedule if name in params) for name in names}
    space = Space(
        {name: Choice(*values) for name, values in options.items()},
        fidelities={schedule.fidelity: Fidelity(1, max(2, schedule.steps), integer=True, trace=True)},
    )
    return Problem(space, value=schedule.value)


def _distinct(values: Iterable[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


def _no_checkpoint(step: int) -> WorkError:
    return WorkError(
        f"Work must leave a checkpoint where its params change, got none after step {step}. "
        "Define save and load, or write to trial.checkpoint_dir."
    )


def _failed(reason: str, *, start: int) -> WorkError:
    return WorkError(f"A replay needs every part to succeed, got a failure after step {start}: {reason}")
