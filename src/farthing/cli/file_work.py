"""The work that a study file names: a command, or a function in a Python file or module."""

import contextlib
import importlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import cast

from farthing.errors import FarthingError, WorkError
from farthing.execution import CarriesOut, Command, HasStages, KeepsOutputs, RunningTrial, as_work
from farthing.trials import DeclaredCost, Json, Problem
from farthing.validation import did_you_mean, shown


@dataclass(frozen=True)
class FileWork:
    """Work by name. Every worker looks it up itself and carries it out in `folder`, where the study file is.

    `python` is `train.py:train` or `package.module:function`; either it or `command` is given. `pattern` has the
    regular expressions that find values in the command's text.
    """

    folder: Path
    command: str | None = None
    python: str | None = None
    pattern: tuple[str, ...] = ()

    def check(self, problem: Problem) -> None:
        if not self.folder.is_dir():
            raise WorkError(
                f"Work must be where it was, got {str(self.folder)!r}, which is no folder any more. "
                "Run the study file again from where it is now: farthing run FILE.toml."
            )
        with contextlib.chdir(self.folder):
            _looked_up(self).check(problem)

    def run(self, trial: RunningTrial) -> object:
        with contextlib.chdir(self.folder):
            with trial._waiting():  # noqa: SLF001 - work too: the trial does not pay for importing
                work = _looked_up(self)
            return work.run(trial)

    def lost_prefixes(self, prefixes: Mapping[str, int], root: Path) -> list[str]:
        """None where the work keeps no outputs of stages: then none can be lost."""
        with contextlib.chdir(self.folder):
            work = _looked_up(self)
            return work.lost_prefixes(prefixes, root) if isinstance(work, KeepsOutputs) else []

    def code(self) -> Mapping[str, str]:
        """Of a pipeline's stages; other work has none."""
        with contextlib.chdir(self.folder):
            work = _looked_up(self)
            return work.code() if isinstance(work, HasStages) else {}

    def to_json(self) -> dict[str, Json]:
        return {
            "folder": str(self.folder),
            "command": self.command,
            "python": self.python,
            "pattern": list(self.pattern),
        }

    @classmethod
    def from_json(cls, form: Mapping[str, Json]) -> "FileWork":
        """Plans that an older version stored have no pattern."""
        pattern = tuple(form.get("pattern", ()))
        return cls(Path(form["folder"]), command=form["command"], python=form["python"], pattern=pattern)


def declared_cost(reference: str, *, folder: Path) -> DeclaredCost:
    """The function of (params, fidelity) that is named `train.py:cost` or `package.module:cost`."""
    with contextlib.chdir(folder):
        found = _import(reference, folder=folder)
    if not callable(found):
        raise WorkError(
            f"A declared cost must be a function of (params, fidelity), got {shown(found)} as {reference!r}. "
            "Write def cost(params, fidelity) there."
        )
    return cast(DeclaredCost, found)


def make_importable(folder: Path) -> None:
    """Lets modules beside the study file be imported, as Python does for a script."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


@lru_cache
def _looked_up(work: FileWork) -> CarriesOut:
    if work.command is not None:
        return Command(work.command, pattern=work.pattern)
    return as_work(_import(work.python or "", folder=work.folder))


def _import(reference: str, *, folder: Path) -> object:
    where, _, name = reference.rpartition(":")
    if not where or not name:
        raise WorkError(
            f"Python work must be named FILE.py:FUNCTION or MODULE:FUNCTION, got {reference!r}. "
            "Write it like 'train.py:train'."
        )
    module = _import_file(folder / where) if where.endswith(".py") else _import_module(where, folder=folder)
    if not hasattr(module, name):
        remedy = did_you_mean(name, vars(module), otherwise="Define it there, at the top level.")
        raise WorkError(f"Python work must be in its module, got {reference!r}, where {name!r} is missing. {remedy}")
    return getattr(module, name)


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        there = sorted(other.name for other in path.parent.glob("*.py"))
        remedy = did_you_mean(path.name, there, otherwise="Paths start at the study file's folder.")
        raise WorkError(f"A Python file must exist, got {str(path)!r}, which does not. {remedy}")
    module = _import_module(path.stem, folder=path.parent)
    if Path(module.__file__ or "").resolve() != path.resolve():
        raise WorkError(
            f"A Python file needs a name that no other module has, got {path.name!r}, which is also "
            f"{module.__file__ or 'built in'}. Rename it."
        )
    return module


def _import_module(name: str, *, folder: Path) -> ModuleType:
    make_importable(folder)
    try:
        return importlib.import_module(name)
    except FarthingError:
        raise
    except Exception as error:
        raise WorkError(
            f"Python work must be importable, got {type(error).__name__} from {name!r}: {error}. "
            f"Try it: python -c 'import {name}' in {str(folder)!r}."
        ) from error
