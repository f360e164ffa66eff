"""Takes an object of a user's code apart, into all that a copy needs; caches that fill by themselves are left out."""

import copyreg
import functools
import os
import random
import struct
import sys
import weakref
from collections.abc import Iterator
from contextlib import suppress
from contextvars import ContextVar
from logging import StreamHandler
from types import FunctionType, MappingProxyType
from typing import Any

from farthing.caching.users_modules import is_installed

OF_RUNNING = {"_thread", "threading", "_queue", "queue", "concurrent", "asyncio", "_asyncio", "_multiprocessing"}
OF_RUNNING |= {"multiprocessing.synchronize", "numpy.random"}
"""Modules of objects that say how far a program is, and not what it does."""
FORGETTING = (weakref.WeakKeyDictionary, weakref.WeakValueDictionary, weakref.WeakSet)
EMPTY = (random.Random, os._Environ, ContextVar, StreamHandler, *FORGETTING)
"""Types whose state is not part of the code."""
VIEWS: Any = (type({}.keys()), type({}.values()), type({}.items()))
MADE_BY_CODE, FIXED = 1 << 9, 1 << 8
"""Flags of a class: made while the program runs, and closed to changes, as those are whose state is in C."""


class UnseenState(Exception):
    """The content of an object such as a connection or a generator, which nobody can tell."""


def state_of(thing: Any) -> list[Any]:
    """The parts of a copy of the object, by the protocol of `copy` and `pickle`; UnseenState where there is no such.

    The state of random generators and locks, the environment, what a context variable holds, the stream of a handler of
    logs, and what collections hold that forget are not part of the code. A library's wrapper counts as what it wraps:
    what else it has may differ from process to process, as with compiled functions.
    """
    kind = type(thing)
    if is_installed(kind) and isinstance(getattr(thing, "__wrapped__", None), FunctionType):
        return [thing.__wrapped__]
    if isinstance(thing, EMPTY) or _is_of_running(kind.__module__):
        return []
    if (parts := _parts_of_builtin(thing)) is not None:
        return parts
    try:
        if kind.__module__.startswith("torch") and hasattr(thing, "detach"):
            return [str(thing.dtype), thing.detach().cpu().numpy()]  # a copy's recipe has addresses in it
        reduce = copyreg.dispatch_table.get(kind)
        recipe: Any = reduce(thing) if reduce else thing.__reduce_ex__(2)
    except Exception:
        return [_attributes(thing)]
    if isinstance(recipe, str):
        return [_name(thing, recipe)]
    return [_lasting(thing, part) for part in recipe]


def _is_of_running(module: str) -> bool:
    parts = module.split(".")
    return not OF_RUNNING.isdisjoint(".".join(parts[:count]) for count in range(1, len(parts) + 1))


def is_made_by_code(kind: type) -> bool:
    """Whether a class was made while the program runs, rather than built into Python or a library."""
    return bool(kind.__flags__ & MADE_BY_CODE)


def _parts_of_builtin(thing: Any) -> list[Any] | None:
    """Of types that refuse to be copied, although they hold nothing but parts, and of sets, which have no order."""
    if isinstance(thing, set | frozenset):
        return [frozenset(thing), getattr(thing, "__dict__", {})]
    if isinstance(thing, MappingProxyType):
        return [dict(thing)]
    if isinstance(thing, VIEWS):
        return [list(thing)]
    if isinstance(thing, weakref.ref):
        return [thing()]
    if isinstance(thing, memoryview):
        return [thing.format, list(thing.shape or ()), thing.tobytes()]
    return [thing.format] if isinstance(thing, struct.Struct) else None


def _attributes(thing: Any) -> Any:
    """The attributes of an object that refuses to be copied; UnseenState where it has none, or a state in C."""
    kinds = type(thing).__mro__[:-1]
    if any(kind.__flags__ & FIXED or not is_made_by_code(kind) for kind in kinds):
        raise UnseenState
    found: Any = object.__getstate__(thing)
    if not found:
        raise UnseenState
    return _lasting(thing, found)


def _name(thing: Any, name: str) -> str:
    """The name under which a module has the object, whose copy would be looked up there; UnseenState where none has."""
    home = sys.modules.get(getattr(thing, "__module__", None) or "")
    first, *rest = name.split(".")
    for module in [home, *sys.modules.values()]:
        with suppress(AttributeError):
            if functools.reduce(getattr, rest, module.__dict__.get(first)) is thing:
                return name
    raise UnseenState


def _lasting(thing: Any, part: Any) -> Any:
    """A part without what follows from the others and is there only once it was asked for.

    The items of a list or a dict are an iterator in the recipe for a copy.
    """
    if isinstance(part, Iterator):
        return list(part)
    if not isinstance(part, dict):
        return part
    cached = {
        name
        for base in type(thing).__mro__
        for name, member in vars(base).items()
        if isinstance(member, functools.cached_property)
    }
    if type(thing).__module__.startswith("numpy") and type(thing).__name__ == "vectorize":
        cached.add("_ufunc")
    return {name: value for name, value in part.items() if name not in cached} if cached else part
