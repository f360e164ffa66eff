"""Work: a function of the trial, a Trainable, a Pipeline or a Command, behind one protocol."""

import functools
import inspect
import io
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, SupportsFloat, TypeAlias, cast, runtime_checkable

import cloudpickle

from farthing.errors import WorkError
from farthing.execution.command import Command
from farthing.execution.pipeline import Pipeline, PipelineWork
from farthing.execution.running_trial import RunningTrial
from farthing.execution.trainable import Trainable, TrainableWork
from farthing.trials import Problem
from farthing.validation import shown

Returned: TypeAlias = SupportsFloat | Mapping[str, Any] | None
"""A number, a mapping that holds the value by name (its other numbers are metrics), or None: the last report counts."""
Coroutine: TypeAlias = Callable[[RunningTrial], Awaitable[Returned]]


@runtime_checkable
class CarriesOut(Protocol):
    """Something that carries out trials."""

    def check(self, problem: Problem) -> None:
        """Raises `WorkError` when this cannot be the work of such a study; called before anything is started."""
        ...

    def run(self, trial: RunningTrial) -> object:
        """Carries out a trial.

        Returns a number, a mapping that holds the value by name (its other numbers are kept as metrics), or None when
        the last report is the result.
        """
        ...


@runtime_checkable
class KeepsOutputs(Protocol):
    """Work that keeps outputs of its stages between trials."""

    def lost_prefixes(self, prefixes: Mapping[str, int], root: Path) -> list[str]:
        """The prefixes, given with their lengths, that are not kept among the study's files at `root`."""
        ...


@runtime_checkable
class HasStages(Protocol):
    """Work whose code may change between runs of one study."""

    def code(self) -> Mapping[str, str]:
        """The version of each stage, and of the source; empty where it cannot be told."""
        ...


Work: TypeAlias = Callable[[RunningTrial], Returned] | Coroutine | type[Trainable] | Pipeline | Command | CarriesOut
"""Work for `study.run`: a function of the trial, also a coroutine, a `Trainable` class, a `Pipeline` or a `Command`."""


@dataclass(frozen=True)
class FunctionWork:
    """A plain function of the trial."""

    function: Callable[[RunningTrial], object]

    def check(self, problem: Problem) -> None:
        if not _takes_one_argument(self.function):
            raise WorkError(
                f"Work must take one argument, the trial, got {self.name}{inspect.signature(self.function)}. "
                f"Write def {self.name}(trial) and read trial.params."
            )

    @property
    def is_coroutine(self) -> bool:
        called = getattr(self.function, "__call__", None)  # noqa: B004 - of an object, `async def __call__`
        return inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(called)

    @property
    def name(self) -> str:
        return str(getattr(self.function, "__name__", shown(self.function)))

    def run(self, trial: RunningTrial) -> object:
        return self.function(trial)


def as_work(thing: object) -> CarriesOut:
    """The argument of `study.run`, as work."""
    if isinstance(thing, type) and issubclass(thing, Trainable):
        return TrainableWork(thing)
    if isinstance(thing, Trainable):
        raise WorkError(f"Work must be the Trainable class, got an instance. Pass {type(thing).__name__} itself.")
    if isinstance(thing, type):
        raise WorkError(f"A class must be a Trainable to be work, got {shown(thing)}. Derive it from ft.Trainable.")
    if isinstance(thing, Pipeline):
        return PipelineWork(thing)
    if isinstance(thing, CarriesOut):
        return thing
    if callable(thing):
        return FunctionWork(thing)
    raise WorkError(
        f"Work must be a function, a Trainable class, a Pipeline or a Command, got {shown(thing)}. "
        f"A command line is work as ft.Command(...)."
    )


def require_plain(work: CarriesOut, *, executor: str) -> None:
    """Raises `WorkError` for a coroutine function: only the async executor has an event loop."""
    if isinstance(work, FunctionWork) and work.is_coroutine:
        raise WorkError(
            f"Work of executor={executor!r} must be a plain function, got the coroutine {work.name}. Write "
            "study.run(work, executor='async', workers=32)."
        )


def coroutine_of(work: CarriesOut) -> Coroutine:
    """The coroutine function that is the work; raises `WorkError` for anything else."""
    if not isinstance(work, FunctionWork) or not work.is_coroutine:
        raise WorkError(
            "Work of the async executor must be a coroutine function, async def work(trial), got "
            f"{shown(work.function if isinstance(work, FunctionWork) else work)}. Leave executor= out for other work."
        )
    return cast("Coroutine", work.function)


def _takes_one_argument(function: Callable[..., Any]) -> bool:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return True  # builtins do not say
    try:
        signature.bind(None)
    except TypeError:
        return False
    return True


# ------------------------------------------------------------
# Packs work so that a worker process can unpack it.


def packed(work: CarriesOut) -> bytes:
    """The work as bytes: what is importable by its name, what was defined in a script or a notebook by its value."""
    try:
        return _dumped(work)
    except Exception as error:
        raise WorkError(
            f"Work must be sendable to a worker process, got {_culprit(work)}: {error}. "
            f"Load data and open files inside the function, or run with executor='inline'."
        ) from error


def _culprit(work: CarriesOut) -> str:
    """The part of the work that cannot be sent, if it can be found."""
    function = work.function if isinstance(work, FunctionWork) else work
    name = getattr(function, "__name__", shown(function))
    for variable, value in _outside_variables(function):
        if not _is_sendable(value):
            return f"{name}, which uses {variable} ({type(value).__name__})"
    return name


def _outside_variables(function: object) -> list[tuple[str, Any]]:
    if not inspect.isfunction(function):
        return []
    try:
        variables = inspect.getclosurevars(function)
    except ValueError:  # one of them has no value yet
        return []
    return [*variables.nonlocals.items(), *variables.globals.items()]


def _is_sendable(value: object) -> bool:
    try:
        _dumped(value)
    except Exception:
        return False
    return True


class _Packer(cloudpickle.CloudPickler):  # type: ignore[misc]
    """Sends cached functions of the user's script by value too, with an empty cache: pickle would send their names."""

    def reducer_override(self, obj: object) -> Any:
        if isinstance(obj, functools._lru_cache_wrapper) and obj.__module__ == "__main__":
            return _cached, (obj.__wrapped__, obj.cache_parameters())
        return super().reducer_override(obj)


def _cached(function: Callable[..., Any], parameters: dict[str, Any]) -> Any:
    return functools.lru_cache(**parameters)(function)


def _dumped(thing: object) -> bytes:
    with io.BytesIO() as file:
        _Packer(file).dump(thing)
        return file.getvalue()
