"""Drives NePS by its ask and tell, in a process of its own: it needs older versions of packages than ours.

`make bench-setup` installs it into `.bench-venv`; FARTHING_NEPS_PYTHON names another interpreter that has it. An
ordered choice becomes an integer, its index. NePS has no conditions: it draws inactive parameters too, and they are
dropped. A continued configuration is charged for what it adds. What is recommended is the best value at the highest
fidelity. Its ifBO cannot be compared where its weights cannot be downloaded.
"""

import atexit
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.drivers.promoting import Incumbent, PausedRuns, plain_value, rounded, the_fidelity
from benchmarks.method import Step
from benchmarks.problems import Params, Point, Problem, loss
from benchmarks.problems.data import REPOSITORY
from farthing.costs import Budget
from farthing.space import Choice, Float, Int, Parameter, Space

WORKER = Path(__file__).with_name("_neps_worker.py")


@dataclass(frozen=True)
class NePS:
    """An optimizer by its name there; "auto" is what NePS takes for the space by itself."""

    name: str
    optimizer: str = "auto"
    packages: tuple[str, ...] = ()

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"optimizer": self.optimizer, "version": _version()}

    def missing(self) -> str | None:
        return None if _interpreter().is_file() else f"{_interpreter()} is not there; make bench-setup"

    def run(self, problem: Problem, *, budget: Budget, seed: int) -> Iterator[Step]:
        space, runs, best = problem.space(), PausedRuns(problem, seed=seed), Incumbent(problem)
        talk = _worker(_interpreter()).talk
        talk({"space": _tables(space), "optimizer": self.optimizer, "seed": seed})
        while True:
            asked = talk({"ask": True})
            params = _params(space, asked["config"])
            fidelity = rounded(space, asked["config"][the_fidelity(space)])
            evaluation, cost = runs.evaluate(params, fidelity)
            told = talk({"tell": asked["id"], "loss": loss(problem, evaluation.value), "cost": cost})
            best.see(params, Point(fidelity, evaluation.value, evaluation.cost))
            yield Step(best.params, cost, asked["cpu_seconds"] + told["cpu_seconds"])


def _interpreter() -> Path:
    named = os.environ.get("FARTHING_NEPS_PYTHON")
    return Path(named) if named else REPOSITORY / ".bench-venv" / "bin" / "python"


def _version() -> str | None:
    """Of the package in the other environment."""
    found = sorted(_interpreter().parents[1].glob("lib/python*/site-packages/neural_pipeline_search-*.dist-info"))
    return found[-1].name.split("-")[1].removesuffix(".dist") if found else None


class Worker:
    """A process that answers one JSON line with another. Starting it takes seconds, so that all runs share one."""

    def __init__(self, interpreter: Path) -> None:
        """-I keeps our packages, and this file of the same name, out of its way."""
        self._process = subprocess.Popen(
            [str(interpreter), "-I", str(WORKER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def talk(self, request: Mapping[str, Any]) -> Any:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(request) + "\n")
        stdin.flush()
        answer = stdout.readline()
        if not answer:
            raise RuntimeError(f"NePS ended with exit code {self._process.wait()}; see the errors above.")
        return json.loads(answer)

    def close(self) -> None:
        """Its standard input ends, and so does the process."""
        self._process.communicate()


@cache
def _worker(interpreter: Path) -> Worker:
    worker = Worker(interpreter)
    atexit.register(worker.close)
    return worker


def _tables(space: Space) -> dict[str, Any]:
    """Each parameter as the worker declares it; the fidelity too."""
    [(name, fidelity)] = space.fidelities.items()
    kind = "int" if fidelity.integer else "float"
    amount = {"kind": kind, "low": fidelity.low, "high": fidelity.high, "log": False, "fidelity": True}
    return {**{name: _table(parameter) for name, parameter in space.parameters.items()}, name: amount}


def _table(parameter: Parameter) -> dict[str, Any]:
    match parameter:
        case Float(low=low, high=high, log=log):
            return {"kind": "float", "low": low, "high": high, "log": log}
        case Int(low=low, high=high, log=log):
            return {"kind": "int", "low": low, "high": high, "log": log}
        case Choice(options=options, ordered=True):
            return {"kind": "int", "low": 0, "high": len(options) - 1, "log": False}
        case Choice(options=options):
            return {"kind": "choice", "options": list(options)}


def _params(space: Space, config: Mapping[str, Any]) -> Params:
    """Without the fidelity and without what is inactive; rounding may leave the bounds by a digit."""
    plain = {name: plain_value(space, name, value) for name, value in config.items() if name in space.parameters}
    within = {name: _clipped(space.parameters[name], value) for name, value in plain.items()}
    return space.check({name: within[name] for name in space.active_names(within)})


def _clipped(parameter: Parameter, value: Any) -> Any:
    return min(max(value, parameter.low), parameter.high) if isinstance(parameter, (Float, Int)) else value
