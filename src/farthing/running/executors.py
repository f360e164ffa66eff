"""The executor of a run: the user's own, or one of ours by its name."""

from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

from farthing.costs import Clock
from farthing.errors import InvalidArgument
from farthing.execution import CarriesOut, Executor, InlineExecutor, ProcessExecutor
from farthing.execution.executor import TakesWork, check_workers
from farthing.execution.ray import RayExecutor, Resources
from farthing.execution.work import require_plain
from farthing.fields import Several, Text
from farthing.session.folder import StudyFiles
from farthing.trials import Problem

ExecutorName: TypeAlias = Literal["processes", "inline", "async", "ray"]
ExecutorLike: TypeAlias = ExecutorName | RayExecutor | Executor


MEMBERS = ("works_in_wait", "workers", "free", "running", "submit", "wait", "wake", "close")
"""Of `Executor`."""


def executor_for(
    work: CarriesOut,
    problem: Problem,
    given: ExecutorLike,
    *,
    files: StudyFiles,
    clock: Clock,
    workers: int,
    devices: Sequence[str] | None,
    resources: Resources | None,
    time_limit: float | None,
    sharing: int = 1,
) -> Executor:
    """The study's files belong to this run before the first worker starts.

    Worker processes share the cores as if there were `sharing` of them at least.
    """
    if not isinstance(given, (str, RayExecutor)) and callable(getattr(given, "submit", None)):
        _require_whole(given)
        if isinstance(given, TakesWork):
            given.take_up(work, problem, checkpoints=files.to_write())
        return given
    on_ray = RayExecutor() if given == "ray" else given if isinstance(given, RayExecutor) else None
    _check(given, workers=workers, devices=devices, time_limit=time_limit)
    _check_resources(
        given, devices=devices, resources=resources, is_ray=on_ray is not None, has_prices=problem.has_prices
    )
    if given != "async":
        require_plain(work, executor="ray" if on_ray else str(given))
    checkpoints = files.to_write()
    checkpoints.claim()
    if on_ray is not None:
        return on_ray.start(work, problem, workers=workers, checkpoints=checkpoints, resources=resources, clock=clock)
    if given == "inline":
        return InlineExecutor(work, problem, checkpoints=checkpoints, clock=clock)
    if given == "async":
        from farthing.execution.coroutines import AsyncExecutor

        return AsyncExecutor(work, problem, workers=workers, checkpoints=checkpoints, clock=clock)
    return ProcessExecutor(
        work, problem, workers=workers, checkpoints=checkpoints, devices=devices, clock=clock, sharing=sharing
    )


def _require_whole(given: object) -> None:
    absent = [name for name in MEMBERS if not hasattr(given, name)]
    if absent:
        raise InvalidArgument(
            f"An executor must have {', '.join(MEMBERS)}, got {type(given).__name__} without {', '.join(absent)}. "
            "farthing.extending.Executor says what each of them does."
        )


def _check(given: object, *, workers: int, devices: Sequence[str] | None, time_limit: float | None) -> None:
    check_workers(workers)
    if devices is not None:
        Several(Text()).checked(devices, what="devices", advice="Write for example devices=['cuda:0'].")
    if given not in get_args(ExecutorName) and not isinstance(given, RayExecutor):
        raise InvalidArgument(
            f"An executor must be 'processes', 'inline', 'async' or 'ray', got {given!r}. Leave it out for processes."
        )
    if given == "inline" and (workers != 1 or time_limit is not None):
        raise InvalidArgument(
            "The inline executor has one worker, which cannot be stopped, got "
            f"workers={workers} and time_limit={time_limit}. Use executor='processes' for either."
        )


def _check_resources(
    given: object, *, devices: Sequence[str] | None, resources: Resources | None, is_ray: bool, has_prices: bool
) -> None:
    """Devices are of this machine and are dealt out here; resources are the cluster's, and Ray deals them out."""
    if is_ray and devices is not None:
        raise InvalidArgument(
            f"On a Ray cluster devices belong to nodes, and Ray assigns them, got devices={list(devices)!r}. Write "
            "resources={'gpu': 1}; the work finds its GPU in CUDA_VISIBLE_DEVICES."
        )
    if not is_ray and resources is not None and not has_prices:
        words = "a function of params" if callable(resources) else repr(resources)
        raise InvalidArgument(
            f"Resources are held on a Ray cluster, got resources={words} with executor={given!r}. Use "
            "executor='ray', or devices=[…] for the GPUs of this machine; or give the study prices for them."
        )
