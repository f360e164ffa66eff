"""Packs work so that a worker process can unpack it."""

import functools
import inspect
import io
from collections.abc import Callable
from typing import Any

import cloudpickle

from farthing.errors import WorkError
from farthing.execution.work import CarriesOut, FunctionWork
from farthing.validation import shown


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
