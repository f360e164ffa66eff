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
from itertools import pairwise, takewhile
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

PLACES = [Path(sysconfig.get_path(place)).resolve() for place in ("stdlib", "platstdlib", "purelib", "platlib")]
PACKAGES = {"site-packages", "dist-packages"}
"""Folders of Python itself and of packages: code in them counts by its name and version."""
IMPORTERS = ("import_module", "__import__")
"""Functions that import the module of a name."""
SILENT = ("CACHE", "EXTENDED_ARG", "NOT_TAKEN", "PUSH_NULL")
CALLS = ("PRECALL", "CALL", "CALL_KW")
"""Instructions that only prepare another one, and those that call."""
ORDERS = ((), ("name",), ("package",), ("name", "package"))
"""Arguments that are given by name, in the order of `importlib.import_module`."""


class UnnamedImport(Exception):
    """Code that imports a module by a name that it does not have as a text; `thing` is what has the code."""

    def __init__(self, thing: object) -> None:
        super().__init__(thing)
        self.thing = thing


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
    """The files of those modules that are the user's, and of all that these import in turn, by name.

    UnnamedImport where one of them imports what it does not name.
    """
    files: dict[str, Path] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        file = None if name in files else _users_file(name)
        if file is not None:
            files[name] = file
            package = name if file.name == "__init__.py" else name.rpartition(".")[0]
            waiting += imports_in(_compiled(file), package=package, of=name)
    return files


def imports_in(
    code: CodeType | None, *, package: str, importers: Collection[str] = IMPORTERS, of: object = None
) -> Iterator[str]:
    """The names of the modules that the code imports, and of what it takes out of them: that may be a module too.

    `importers` are the names of the functions that import. UnnamedImport, `of` what has the code, where it imports a
    module by a name that it does not have as a text.
    """
    steps = _steps(code) if code else []
    for level, taken, step in zip(steps, steps[1:], steps[2:], strict=False):
        if step.opname == "IMPORT_NAME":
            with suppress(ImportError):
                module = resolve_name("." * (level.argval or 0) + step.argval, package or None)
                yield from _with_parents(module)
                yield from (f"{module}.{name}" for name in taken.argval or ())
    known = {*importers, *_other_names(steps)}
    for place in _uses(steps, known):
        name, inside = _named(steps[place + 1 : place + 5], of)
        with suppress(ImportError):
            yield from _with_parents(resolve_name(name, inside or package or None))
    for constant in code.co_consts if code else ():
        if constant in IMPORTERS:
            raise UnnamedImport(of)
        if isinstance(constant, CodeType):
            yield from imports_in(constant, package=package, importers=known, of=of)


def _steps(code: CodeType) -> list[dis.Instruction]:
    """The instructions without those that only prepare another one; Python 3.11 does not look names of arguments up."""
    steps = (step for step in dis.get_instructions(code) if step.opname not in SILENT)
    return [
        step._replace(argval=code.co_consts[step.arg or 0]) if step.opname == "KW_NAMES" else step for step in steps
    ]


def _other_names(steps: list[dis.Instruction]) -> Iterator[str]:
    """Names that the code itself gives to functions that import."""
    for taken, stored in pairwise(steps):
        if taken.opname == "IMPORT_FROM" and taken.argval in IMPORTERS:
            yield stored.argval


def _uses(steps: list[dis.Instruction], importers: Collection[str]) -> Iterator[int]:
    """The places of the instructions that take a function that imports."""
    for place, step in enumerate(steps):
        known = IMPORTERS if step.opname in ("LOAD_ATTR", "LOAD_METHOD") else importers
        if step.opname.startswith("LOAD_") and step.opname != "LOAD_CONST" and step.argval in known:
            yield place


def _named(after: list[dis.Instruction], of: object) -> tuple[str, str | None]:
    """The name that an importing function is called with, and the package if there is one, each a text in the code.

    Only a call with nothing but these arguments says so: the text may be the beginning of another one.
    """
    given = list(takewhile(lambda step: step.opname not in CALLS, after))
    call = after[len(given)] if len(given) < len(after) else None
    order = given.pop().argval if given and type(given[-1].argval) is tuple else ()
    name, *package = [_text(step) for step in given] or [None]
    if call is None or call.arg != len(given) or order not in ORDERS or not name or None in package:
        raise UnnamedImport(of)
    return name, "".join(filter(None, package))


def _text(step: dis.Instruction) -> str | None:
    """The text of an argument; nothing for the package that the code is in, None for what is no text."""
    if step.opname in ("LOAD_NAME", "LOAD_GLOBAL") and step.argval in ("__package__", "__name__"):
        return ""
    if step.opname != "LOAD_CONST":
        return None
    return "" if step.argval is None else step.argval if isinstance(step.argval, str) else None


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
