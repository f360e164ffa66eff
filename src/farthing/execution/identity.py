"""Names things by what they are: data by its content, functions by their code and all that it draws on.

An identity is the same in every process and on every machine. Two that are equal stand for the same data, or for code
that does the same; code that was merely moved, commented or laid out anew keeps its identity.
"""

import functools
import hashlib
import json
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import BuiltinMethodType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from farthing.execution.plain_data import NotPlain, Parts, take_apart
from farthing.trials import Json

CHUNK = 1 << 20
PLACES = ("stdlib", "platstdlib", "purelib", "platlib")
INSTALLED = tuple(str(Path(sysconfig.get_path(place)).resolve()) for place in PLACES)
"""Where Python keeps itself and the packages: code that is found there counts by its name and version."""


def identity_of_data(thing: object) -> str:
    """For plain data its content, for a path that of the file or of all files in the folder; else NotPlain."""
    parts = Parts()
    form = json.dumps(take_apart(thing, parts), sort_keys=True)
    return _digest(_content(form, parts))


def identity_of_function(function: object) -> str:
    """The function's code, defaults, the variables it closes over, and the global constants, functions and classes of
    the user's that it refers to, and those that these refer to. NotPlain where it holds data that is not plain.

    What happens elsewhere does not count: files it reads, modules that are installed, attributes of objects.
    """
    return _digest([json.dumps(_Reader().read(function), sort_keys=True).encode()])


def checksum(path: Path) -> str:
    """SHA-256 of a file's content."""
    return _digest(_chunks(path))


def _digest(pieces: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


def _content(form: str, parts: Parts) -> Iterator[bytes]:
    """The data as bytes; each piece begins with its length or its shape, so that none can pass for another."""
    yield form.encode()
    for array in parts.arrays:
        yield f"\n{array.dtype.descr!r} {array.shape} ".encode()
        yield array.tobytes()
    for blob in parts.blobs:
        yield f"\n{len(blob)} ".encode()
        yield blob
    for path in parts.paths:
        for file in _files(path):
            yield f"\n{file.relative_to(path.parent).as_posix()!r} {file.stat().st_size} ".encode()
            yield from _chunks(file)


def _files(path: Path) -> list[Path]:
    return sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk


class _Reader:
    """Spells functions out as JSON. Each is spelled out once, so that recursion ends."""

    def __init__(self) -> None:
        self._seen: list[object] = []
        self._is_in_global = False

    def read(self, thing: Any) -> Json:
        """A value that the function holds: a default, a variable it closes over, an argument bound to it."""
        if _is_installed(thing):
            return [_qualified(thing), _version(thing.__module__)]
        if isinstance(thing, functools.partial):
            bound = [self.read(thing.func), [self.read(argument) for argument in thing.args]]
            return {"partial": bound, **{name: self.read(argument) for name, argument in thing.keywords.items()}}
        if isinstance(thing, functools._lru_cache_wrapper):
            return self.read(thing.__wrapped__)
        if isinstance(thing, MethodType):
            return {"method": self.read(thing.__func__), "of": self.read(thing.__self__)}
        if isinstance(thing, BuiltinMethodType) and not isinstance(thing.__self__, ModuleType):
            return {"method": thing.__name__, "of": self.read(thing.__self__)}
        if isinstance(thing, FunctionType):
            return self._function(thing)
        if isinstance(thing, type):
            return self._class(thing)
        if isinstance(thing, ModuleType):
            return _module(thing)
        if isinstance(thing, set | frozenset):
            return {"set": sorted(json.dumps(self.read(part)) for part in thing)}
        return self._data(thing)

    def read_global(self, thing: Any) -> Json:
        """What a global name stands for. Objects that are no plain data count by their type only, here and within."""
        outside, self._is_in_global = self._is_in_global, True
        try:
            return self.read(thing)
        finally:
            self._is_in_global = outside

    def _data(self, thing: Any) -> Json:
        try:
            return {"data": identity_of_data(thing)}
        except NotPlain:
            if not self._is_in_global:
                raise
            return {"object": _qualified(type(thing))}

    def _function(self, function: FunctionType) -> Json:
        if function in self._seen:
            return {"again": self._seen.index(function)}
        self._seen.append(function)
        closed_over = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
        held = [function.__defaults__ or (), tuple((function.__kwdefaults__ or {}).items()), closed_over]
        return {
            "code": _code(function.__code__),
            "held": [[self._held(value) for value in values] for values in held],
            "globals": {name: self.read_global(value) for name, value in _globals_of(function)},
        }

    def _held(self, value: Any) -> Json:
        return [self._held(part) for part in value] if type(value) is tuple else self.read(value)

    def _class(self, kind: type) -> Json:
        if kind in self._seen:
            return {"again": self._seen.index(kind)}
        self._seen.append(kind)
        methods = {name: self._member(member) for name, member in sorted(vars(kind).items()) if _counts(name)}
        return {"bases": [self.read_global(base) for base in kind.__bases__], "members": methods}

    def _member(self, member: Any) -> Json:
        inner = getattr(member, "__func__", None) or getattr(member, "fget", None) or member
        return self.read_global(inner)


def _code(code: CodeType) -> Json:
    """What the code does: its bytes and the names and constants they refer to, without file names and line numbers."""
    names = [code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars]
    counts = [code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags]
    constants = [_constant(constant) for constant in code.co_consts]
    return [code.co_code.hex(), code.co_exceptiontable.hex(), [list(own) for own in names], counts, constants]


def _constant(constant: Any) -> Json:
    if isinstance(constant, CodeType):
        return _code(constant)
    if isinstance(constant, tuple):
        return [_constant(part) for part in constant]
    if isinstance(constant, frozenset):
        return ["set", *sorted(repr(part) for part in constant)]
    return [type(constant).__name__, repr(constant)]


def _globals_of(function: FunctionType) -> list[tuple[str, Any]]:
    """The globals that the function's code may refer to, by name; attributes of the same name are taken for them."""
    names = set(_names_in(function.__code__))
    return [(name, function.__globals__[name]) for name in sorted(names) if name in function.__globals__]


def _names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _counts(name: str) -> bool:
    return name not in ("__dict__", "__weakref__", "__doc__", "__module__", "__qualname__", "__firstlineno__")


def _module(module: ModuleType) -> Json:
    """A module of the user's counts by its text, another by its version."""
    if not _is_users(module) or not module.__file__ or not module.__file__.endswith(".py"):
        return [module.__name__, _version(module.__name__)]
    return [module.__name__, checksum(Path(module.__file__))]


def _is_installed(thing: Any) -> bool:
    """Whether this is a function or class that an installed module has under its own name."""
    module = sys.modules.get(getattr(thing, "__module__", None) or "")
    if module is None or _is_users(module):
        return False
    try:
        return functools.reduce(getattr, _qualname(thing).split("."), module) is thing
    except AttributeError:
        return False


def _is_users(module: ModuleType) -> bool:
    """Whether a module was written by the user rather than installed."""
    if module.__name__ == "__main__":
        return True
    file = getattr(module, "__file__", None)
    if file is None or module.__name__.partition(".")[0] == "farthing":
        return False
    return not str(Path(file).resolve()).startswith(INSTALLED)


def _version(module: str) -> str:
    package = sys.modules.get(module.partition(".")[0])
    return str(getattr(package, "__version__", ""))


def _qualified(thing: Any) -> str:
    return f"{thing.__module__}.{_qualname(thing)}"


def _qualname(thing: Any) -> str:
    return str(getattr(thing, "__qualname__", None) or getattr(thing, "__name__", ""))
