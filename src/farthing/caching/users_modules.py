"""Tells the user's own modules from installed ones, and finds those that code imports."""

import dis
import functools
import sys
import sysconfig
import warnings
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from importlib import metadata
from importlib.util import find_spec, resolve_name
from itertools import pairwise
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

PLACES = [Path(sysconfig.get_path(place)).resolve() for place in ("stdlib", "platstdlib", "purelib", "platlib")]
PACKAGES = {"site-packages", "dist-packages"}
"""Folders of Python itself and of packages: code in them counts by its name and version."""
IMPORTERS = ("import_module", "__import__")
"""Functions that import the module of a name."""


def is_users(module: ModuleType) -> bool:
    """Whether a module was written by the user rather than installed."""
    if module.__name__ == "__main__":
        return True
    file = getattr(module, "__file__", None)
    return _are_users([file] if file else getattr(module, "__path__", ()), name=module.__name__)


def is_installed(thing: Any) -> bool:
    """Whether this is a function or class that an installed module has under its own name."""
    module = sys.modules.get(getattr(thing, "__module__", None) or "")
    if module is None or is_users(module):
        return False
    try:
        return functools.reduce(getattr, qualname(thing).split("."), module) is thing
    except AttributeError:
        return False


def qualname(thing: Any) -> str:
    return str(getattr(thing, "__qualname__", None) or getattr(thing, "__name__", ""))


def version_of(module: str) -> str:
    """The version of the package that an installed module is of; nothing where it says none."""
    top = module.partition(".")[0]
    version = getattr(sys.modules.get(top), "__version__", None)
    if version is None:
        with suppress(metadata.PackageNotFoundError):
            version = metadata.version(top)
    return str(version or "")


def users_files(names: Iterable[str]) -> dict[str, Path]:
    """The files of those modules that are the user's, and of all that these import in turn, by name."""
    files: dict[str, Path] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        file = None if name in files else _users_file(name)
        if file is not None:
            files[name] = file
            package = name if file.name == "__init__.py" else name.rpartition(".")[0]
            waiting += imports_in(_compiled(file), package=package)
    return files


def imports_in(code: CodeType | None, *, package: str, importers: Collection[str] = IMPORTERS) -> Iterator[str]:
    """The names of the modules that the code imports, and of what it takes out of them: that may be a module too.

    `importers` are the names of the functions that import.
    """
    instructions = list(dis.get_instructions(code)) if code else []
    for level, taken, instruction in zip(instructions, instructions[1:], instructions[2:], strict=False):
        if instruction.opname == "IMPORT_NAME":
            with suppress(ImportError):
                module = resolve_name("." * (level.argval or 0) + instruction.argval, package or None)
                yield from _with_parents(module)
                yield from (f"{module}.{name}" for name in taken.argval or ())
    known = {*importers, *_other_names(instructions)}
    for name, inside in _called(instructions, known):
        with suppress(ImportError):
            yield from _with_parents(resolve_name(name or "", inside or package or None))
    for constant in code.co_consts if code else ():
        if isinstance(constant, CodeType):
            yield from imports_in(constant, package=package, importers=known)


def computes_import(code: CodeType, *, importers: Collection[str]) -> bool:
    """Whether the code imports a module by a name that it does not have as a text."""
    instructions = list(dis.get_instructions(code))
    known = {*importers, *_other_names(instructions)}
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    is_computed = any(name is None for name, _ in _called(instructions, known))
    return is_computed or any(computes_import(one, importers=known) for one in inner)


def _other_names(instructions: list[dis.Instruction]) -> Iterator[str]:
    """Names that the code itself gives to functions that import."""
    for taken, stored in pairwise(instructions):
        if taken.opname == "IMPORT_FROM" and taken.argval in IMPORTERS:
            yield stored.argval


def _called(instructions: list[dis.Instruction], importers: Collection[str]) -> Iterator[tuple[str | None, str | None]]:
    """For each use of a function that imports the name that it is given, None if that is computed, and the package."""
    steps = [step for step in instructions if step.opname not in ("CACHE", "PUSH_NULL", "NOT_TAKEN")]
    for place, step in enumerate(steps):
        known = IMPORTERS if step.opname in ("LOAD_ATTR", "LOAD_METHOD") else importers
        if step.opname.startswith("LOAD_") and step.opname != "LOAD_CONST" and step.argval in known:
            name, package = [*(_text(after) for after in steps[place + 1 : place + 3]), None, None][:2]
            yield name, package if name is not None else None


def _text(step: dis.Instruction) -> str | None:
    return step.argval if step.opname == "LOAD_CONST" and isinstance(step.argval, str) else None


def _with_parents(module: str) -> Iterator[str]:
    parts = module.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts) + 1))


def _users_file(name: str) -> Path | None:
    """The file of a module of the user's, which is not imported for it; the package that it is in may be."""
    top, _, rest = name.partition(".")
    if rest and _users_file(top) is None and not _is_users_namespace(top):
        return None
    origin = _origin(name)
    return Path(origin) if origin and origin.endswith(".py") and _are_users([origin], name=name) else None


def _is_users_namespace(name: str) -> bool:
    """Whether this is a folder of the user's without `__init__.py`."""
    with suppress(ImportError, AttributeError, ValueError):
        spec = find_spec(name)
        return spec is not None and spec.origin is None and _are_users(spec.submodule_search_locations or (), name=name)
    return False


def _origin(name: str) -> str | None:
    with suppress(ImportError, AttributeError, ValueError):
        spec = find_spec(name)
        return spec.origin if spec is not None and spec.has_location else None
    return None


def _are_users(places: Iterable[str], *, name: str) -> bool:
    paths = [Path(place).resolve() for place in places]
    if not paths or name.partition(".")[0] == "farthing":
        return False
    return not any(
        PACKAGES.intersection(path.parts) or any(path.is_relative_to(place) for place in PLACES) for path in paths
    )


def _compiled(file: Path) -> CodeType | None:
    with suppress(OSError, SyntaxError, ValueError), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they were or will be given when the module is imported
        return compile(file.read_bytes(), str(file), "exec")
    return None
