"""Names functions by their code and all that it draws on.

An identity is the same in every process and on every machine. Two that are equal stand for code that does the same;
code that was only moved, commented or formatted keeps its identity.
"""

import builtins
import dis
import functools
import hashlib
import importlib
import json
import logging
import os
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from enum import Flag
from pathlib import Path
from types import BuiltinMethodType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from farthing.caching.object_state import UnseenState, is_made_by_code, state_of
from farthing.caching.plain_data import NotPlain, Parts, take_apart
from farthing.caching.users_modules import (
    IMPORTERS,
    UnnamedImport,
    imports_in,
    is_installed,
    is_users,
    qualname,
    users_files,
    version_of,
)
from farthing.trials import Json

log = logging.getLogger("farthing")

# ------------------------------------------------------------
# Names data by its content: equal names stand for equal data, in every process and on every machine.


CHUNK = 1 << 20


def identity_of_data(thing: object, parts: Parts | None = None) -> str:
    """For plain data its content, for a path that of the file or of all files in the folder; else NotPlain.

    `parts` is filled with what the data has beside its JSON.
    """
    parts = parts or Parts()
    form = json.dumps(take_apart(thing, parts), sort_keys=True)
    return digest(_content(form, parts))


def checksum(path: Path) -> str:
    """SHA-256 of a file's content."""
    return digest(_chunks(path))


def digest(pieces: Iterable[bytes]) -> str:
    """SHA-256 of some pieces, one after the other."""
    hashed = hashlib.sha256()
    for piece in pieces:
        hashed.update(piece)
    return hashed.hexdigest()


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
    """The file itself, or all files in the folder, also those behind links."""
    if not path.is_dir():
        return [path]
    found = (Path(parent, name) for parent, _, names in os.walk(path, followlinks=True) for name in names)
    return sorted(file for file in found if file.is_file())


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk


LOADS = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}
UNCOUNTED = {"__dict__", "__weakref__", "__doc__", "__module__", "__qualname__", "__firstlineno__"}
GATHERED = {"__slotnames__", "_abc_impl", "__non_callable_proto_members__", "__annotations_cache__"}
"""Members that Python adds to a class as it is used, for example once an object was copied."""
UNORDERED = {"__static_attributes__"}
"""A tuple in the order of a set."""
IMPORTING = (importlib.import_module, builtins.__import__)


def identity_of_function(function: object) -> str:
    """The function's code, defaults, the variables it closes over, and the global constants, functions, classes and
    objects of the user's that it refers to, and those that these refer to. Modules of the user's that it refers to or
    imports count by their text, with all of the user's that these import.

    NotPlain where a default or a variable that it closes over is an object, rather than data or code: it may change as
    the function runs. UnnamedImport where the modules that it imports cannot be told. An object whose content nobody
    can tell, such as a connection, gives another identity at every call. Other things do not count: files it reads, and
    installed modules but for their versions.
    """
    try:
        found, _ = _read(function)
    except NotPlain:
        if not _BEGUN_AS:
            raise
        found, _ = _read(function, takes_objects=True)
        if found not in _BEGUN_AS:
            raise
    return _BEGUN_AS.get(found, found)


_BEGUN_AS: dict[str, str] = {}
"""The identities of functions as running them in this process left them, with those that they began with."""


@contextmanager
def filled_by_running(functions: Iterable[object]) -> Iterator[None]:
    """While these functions run in this process: what they fill, such as memos and lazy attributes, is no change.

    They keep the identities that they begin with, unless code or a file changes meanwhile.
    """
    before: list[tuple[object, str, set[str]]] = []
    for function in functions:
        with suppress(NotPlain, UnnamedImport):
            before.append((function, *_read(function)))
    yield
    for function, identity, lasting in before:
        with suppress(NotPlain, UnnamedImport):
            left, found = _read(function, takes_objects=True)
            if lasting <= found:
                _BEGUN_AS[left] = _BEGUN_AS.get(identity, identity)


def _read(function: object, *, takes_objects: bool = False) -> tuple[str, set[str]]:
    """The identity of a function as it is, and what of it running cannot change: its code and the files it reads."""
    reader = _Reader(takes_objects=takes_objects)
    try:
        form = reader.read(function)
    except RecursionError:
        raise NotPlain(function) from None
    return digest([json.dumps(form, sort_keys=True).encode()]), reader.lasting


class _Reader:
    """Spells functions out as JSON. An object that can refer to itself is spelled out once, so that recursion ends."""

    def __init__(self, *, takes_objects: bool) -> None:
        self._seen: dict[int, tuple[int, object]] = {}
        self._is_in_global = takes_objects
        self.lasting = set[str]()

    def read(self, thing: Any) -> Json:
        """A value that the function holds: a default, a variable it closes over, an argument bound to it."""
        if _imports(thing):
            raise UnnamedImport(thing)
        if is_installed(thing):
            return _installed(thing)
        if isinstance(thing, functools.partial):
            return {"partial": [self.read(part) for part in (thing.func, thing.args, thing.keywords)]}
        if isinstance(thing, functools._lru_cache_wrapper):
            return self.read(thing.__wrapped__)
        if isinstance(thing, MethodType):
            return {"method": self.read(thing.__func__), "of": self.read_global(thing.__self__)}
        if isinstance(thing, BuiltinMethodType) and not isinstance(thing.__self__, ModuleType):
            return {"method": thing.__name__, "of": self.read(thing.__self__)}
        if isinstance(thing, FunctionType):
            return self._once(thing, self._function)
        if isinstance(thing, type):
            return self._once(thing, self._class) if is_made_by_code(thing) else [_qualified(thing)]
        if isinstance(thing, ModuleType):
            return self._module(thing)
        if isinstance(thing, CodeType):
            return {"code": self._lasting(_code(thing))}
        return self._data(thing)

    def read_global(self, thing: Any) -> Json:
        """The identity behind a global name: an object that is no plain data counts by its class and state."""
        outside, self._is_in_global = self._is_in_global, True
        try:
            return self.read(thing)
        finally:
            self._is_in_global = outside

    def _once(self, thing: Any, spell: Callable[[Any], Json]) -> Json:
        if id(thing) in self._seen:
            return {"again": self._seen[id(thing)][0]}
        self._seen[id(thing)] = len(self._seen), thing  # kept, so that no other thing gets its id
        return spell(thing)

    def _data(self, thing: Any) -> Json:
        parts = Parts()
        try:
            found = identity_of_data(thing, parts)
            return {"data": self._lasting(found) if parts.paths else found}
        except NotPlain:
            if type(thing) in (list, tuple, dict, set, frozenset):
                return self._once(thing, self._container)
            if not self._is_in_global:
                raise
            return self._once(thing, self._object)

    def _container(self, thing: Any) -> Json:
        """One that holds functions or objects."""
        if isinstance(thing, set | frozenset):
            return {"set": sorted((self._alone(part) for part in thing), key=json.dumps)}
        parts = [self.read(part) for part in thing]
        return {type(thing).__name__: parts, "values": [self.read(thing[key]) for key in thing if type(thing) is dict]}

    def _alone(self, thing: Any) -> Json:
        """As if nothing of the set that it is in had been read before: sets have no order."""
        before = len(self._seen)
        form = self.read(thing)
        while len(self._seen) > before:
            self._seen.popitem()
        return form

    def _object(self, thing: Any) -> Json:
        """By its class and its state, which is what a copy would be made of."""
        kind = self.read(type(thing))
        try:
            return {"object": kind, "state": [self.read(part) for part in state_of(thing)]}
        except UnseenState:
            _say_unseen(f"{type(thing).__module__}.{type(thing).__qualname__}")
            return {"object": kind, "state": uuid.uuid4().hex}

    def _function(self, function: FunctionType) -> Json:
        defaults = [self.read(value) for value in function.__defaults__ or ()]
        keywords = [[self.read(name), self.read(value)] for name, value in (function.__kwdefaults__ or {}).items()]
        cells = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
        closed_over = [_installed(value) if _imports(value) else self.read(value) for value in cells]
        modules = self._texts(*_modules_of(function))
        attributes = {name: self.read_global(value) for name, value in vars(function).items() if name != "__wrapped__"}
        return {
            "code": self._lasting(_code(function.__code__)),
            "held": [defaults, keywords, closed_over],
            "globals": {
                name: _installed(value) if _imports(value) else self.read_global(value)
                for name, value in _globals_of(function)
            },
            **({"modules": modules} if modules else {}),
            **({"attributes": attributes} if attributes else {}),
        }

    def _class(self, kind: type) -> Json:
        members = {name: self._member(member) for name, member in sorted(vars(kind).items()) if _counts(kind, name)}
        return {"bases": [self.read_global(base) for base in (*kind.__bases__, type(kind))], "members": members}

    def _member(self, member: Any) -> Json:
        if isinstance(member, property):
            return [self.read_global(part) for part in (member.fget, member.fset, member.fdel)]
        return self.read_global(getattr(member, "__func__", member))

    def _module(self, module: ModuleType) -> Json:
        """A module of the user's counts by its text, another by its version."""
        if not is_users(module):
            return [module.__name__, version_of(module.__name__)]
        return [module.__name__, self._texts(module.__name__)]

    def _texts(self, *modules: str) -> Json:
        """The user's modules among these, and those that they import, by their texts."""
        return {name: self._lasting(checksum(file)) for name, file in users_files(modules).items()}

    def _lasting(self, form: Json) -> Json:
        """Notes what only another hand can change: code and files."""
        self.lasting.add(json.dumps(form))
        return form


def _counts(kind: type, name: str) -> bool:
    """Whether a member of a class says what it does; Python adds some as the class is used."""
    if name in UNCOUNTED | GATHERED | UNORDERED or (name == "_value2member_map_" and issubclass(kind, Flag)):
        return False
    member = vars(kind)[name]
    if name == "__annotations__":
        return bool(member)
    return name != "__init__" or all(vars(base).get(name) is not member for base in kind.__mro__[1:])


def _code(code: CodeType) -> Json:
    """The identity of the code: its bytes and the names and constants they refer to, without files and line numbers."""
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
    """The globals that the function's code refers to, by name."""
    loads = (step for code in _codes(function.__code__) for step in dis.get_instructions(code) if step.opname in LOADS)
    names = sorted({step.argval for step in loads})
    return [(name, function.__globals__[name]) for name in names if name in function.__globals__]


def _modules_of(function: FunctionType) -> Iterator[str]:
    """The modules that the function imports, and those that it reaches as `package.module`, by name."""
    package = function.__globals__.get("__package__") or ""
    yield from imports_in(function.__code__, package=package, importers=_importers_of(function), of=function)
    names = {name for code in _codes(function.__code__) for name in code.co_names}
    for package in (thing.__name__ for _, thing in _globals_of(function) if isinstance(thing, ModuleType)):
        inner = (name.removeprefix(f"{package}.") for name in list(sys.modules) if name.startswith(f"{package}."))
        yield from (f"{package}.{name}" for name in inner if names.issuperset(name.split(".")))


def _importers_of(function: FunctionType) -> set[str]:
    """The names under which the function's code can find one that imports, and no name of something else."""
    closed_over = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    held = {name: cell.cell_contents for name, cell in closed_over if _is_filled(cell)}
    known = {**dict(_globals_of(function)), **held}
    other = {name for name, value in known.items() if not _imports(value)}
    return {*IMPORTERS, *known} - other


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code and all that is defined within."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


@functools.cache
def _say_unseen(kind: str) -> None:
    log.warning(
        "A stage's code must refer to objects that say what they hold, got a %s, which counts as changed in every run. "
        "Give ft.Stage(…, version='1'), and change it whenever outputs change.",
        kind,
    )


def _imports(thing: Any) -> bool:
    """Whether this is a function that imports. Its uses are followed under names that the code has for it, only."""
    return any(thing is one for one in IMPORTING)


def _installed(thing: Any) -> Json:
    return [_qualified(thing), version_of(thing.__module__)]


def _qualified(thing: Any) -> str:
    return f"{thing.__module__}.{qualname(thing)}"
