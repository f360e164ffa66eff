"""Tells the user's own modules from installed ones, and finds those that code imports."""

import dis
import sys
import sysconfig
import warnings
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib import metadata
from importlib.util import find_spec, resolve_name
from pathlib import Path
from types import CodeType, ModuleType

PLACES = [Path(sysconfig.get_path(place)).resolve() for place in ("stdlib", "platstdlib", "purelib", "platlib")]
PACKAGES = {"site-packages", "dist-packages"}
"""Folders of Python itself and of packages: code in them counts by its name and version."""


def is_users(module: ModuleType) -> bool:
    """Whether a module was written by the user rather than installed."""
    if module.__name__ == "__main__":
        return True
    file = getattr(module, "__file__", None)
    return _are_users([file] if file else getattr(module, "__path__", ()), name=module.__name__)


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


def imports_in(code: CodeType | None, *, package: str) -> Iterator[str]:
    """The names of the modules that the code imports, and of what it takes out of them: that may be a module too."""
    instructions = list(dis.get_instructions(code)) if code else []
    for level, taken, instruction in zip(instructions, instructions[1:], instructions[2:], strict=False):
        if instruction.opname == "IMPORT_NAME":
            with suppress(ImportError):
                module = resolve_name("." * (level.argval or 0) + instruction.argval, package or None)
                yield from _with_parents(module)
                yield from (f"{module}.{name}" for name in taken.argval or ())
    for constant in code.co_consts if code else ():
        if isinstance(constant, CodeType):
            yield from imports_in(constant, package=package)


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
