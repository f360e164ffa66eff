"""The executor of a run: the user's own, or one of ours by its name."""

from collections.abc import Sequence

from farthing.costs import Clock
from farthing.errors import InvalidArgument
from farthing.execution import CarriesOut, Executor, InlineExecutor, ProcessExecutor
from farthing.execution.executor import TakesWork, check_workers
from farthing.fields import Several, Text
from farthing.study.folder import StudyFiles
from farthing.study.settings import ExecutorName
from farthing.trials import Problem


def executor_for(
    work: CarriesOut,
    problem: Problem,
    given: ExecutorName | Executor,
    *,
    files: StudyFiles,
    clock: Clock,
    workers: int,
    devices: Sequence[str] | None,
    time_limit: float | None,
) -> Executor:
    """The study's files belong to this run before the first worker starts."""
    if not isinstance(given, str) and callable(getattr(given, "submit", None)):
        if isinstance(given, TakesWork):
            given.take_up(work, problem, checkpoints=files.to_write())
        return given
    _check(given, workers=workers, devices=devices, time_limit=time_limit)
    checkpoints = files.to_write()
    checkpoints.claim()
    if given == "inline":
        return InlineExecutor(work, problem, checkpoints=checkpoints, clock=clock)
    return ProcessExecutor(work, problem, workers=workers, checkpoints=checkpoints, devices=devices, clock=clock)


def _check(given: object, *, workers: int, devices: Sequence[str] | None, time_limit: float | None) -> None:
    check_workers(workers)
    if devices is not None:
        Several(Text()).checked(devices, what="devices", advice="Write for example devices=['cuda:0'].")
    if given not in ("processes", "inline"):
        raise InvalidArgument(
            f"An executor must be 'processes' or 'inline', got {given!r}. Leave it out for processes."
        )
    if given == "inline" and (workers != 1 or time_limit is not None):
        raise InvalidArgument(
            "The inline executor has one worker, which cannot be stopped, got "
            f"workers={workers} and time_limit={time_limit}. Use executor='processes' for either."
        )
