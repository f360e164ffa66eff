"""Peers that need other versions of packages than ours: each has an environment of its own and is asked and told there.

`make bench-setup` installs them. A continued configuration is charged for what it adds. What is recommended is the best
value at the highest fidelity, and a peer that asks for none has the full one. An ordered choice becomes an integer, its
index.
"""

import atexit
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from benchmarks.drivers.promoting import Incumbent, PausedRuns, plain_value, rounded
from benchmarks.method import Step
from benchmarks.problems import Params, Point, Problem, loss
from benchmarks.problems.data import REPOSITORY
from farthing.space import Choice, Float, Int, Parameter, Space

WORKER = Path(__file__).with_name("_peer_worker.py")


@dataclass(frozen=True)
class Environment:
    """Where a peer is installed. FARTHING_NEPS_PYTHON, for the peer `neps`, names another interpreter that has it."""

    peer: str
    package: str
    folder: str

    @property
    def interpreter(self) -> Path:
        named = os.environ.get(f"FARTHING_{self.peer.upper()}_PYTHON")
        return Path(named) if named else REPOSITORY / self.folder / "bin" / "python"

    @property
    def version(self) -> str | None:
        """Of the peer's package there."""
        places = [str(place) for place in self.interpreter.parents[1].glob("lib/python*/site-packages")]
        return next((found.version for found in distributions(name=self.package, path=places)), None)

    def missing(self) -> str | None:
        return None if self.interpreter.is_file() else f"{self.interpreter} is not there; make bench-setup"

    def run(self, problem: Problem, *, seed: int, **settings: Any) -> Iterator[Step]:
        """Tunes the problem with the peer, which is also told the settings."""
        space, runs, best = problem.space(), PausedRuns(problem, seed=seed), Incumbent(problem)
        talk = _worker(self.peer, self.interpreter).talk
        talk({**_tables(space), "seed": seed, **settings})
        while True:
            asked = talk({"ask": True})
            if "config" not in asked:
                return
            params = _params(space, asked["config"])
            fidelity = rounded(space, asked["fidelity"]) if "fidelity" in asked else space.full_fidelity
            evaluation, cost = runs.evaluate(params, fidelity)
            told = talk({"tell": asked["id"], "loss": loss(problem, evaluation.value), "cost": cost})
            best.see(params, Point(fidelity, evaluation.value, evaluation.cost))
            yield Step(best.params, cost, asked["cpu_seconds"] + told["cpu_seconds"])


NEPS = Environment("neps", "neural-pipeline-search", ".bench-venv")
DEHB = Environment("dehb", "dehb", ".dehb-venv")
FLAML = Environment("flaml", "flaml", ".flaml-venv")


class Worker:
    """A process that answers one JSON line with another. Starting it takes seconds, so that all runs share one."""

    def __init__(self, peer: str, interpreter: Path) -> None:
        """-I keeps our packages, and the files here that are named as the peers are, out of its way."""
        self._peer = peer
        self._process = subprocess.Popen(
            [str(interpreter), "-I", str(WORKER), peer], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def talk(self, request: Mapping[str, Any]) -> Any:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(request) + "\n")
        stdin.flush()
        answer = stdout.readline()
        if not answer:
            raise RuntimeError(f"{self._peer} ended with exit code {self._process.wait()}; see the errors above.")
        return json.loads(answer)

    def close(self) -> None:
        """Its standard input ends, and so does the process."""
        self._process.communicate()


@cache
def _worker(peer: str, interpreter: Path) -> Worker:
    worker = Worker(peer, interpreter)
    atexit.register(worker.close)
    return worker


def _tables(space: Space) -> dict[str, Any]:
    """The parameters and the fidelities as the worker declares them."""
    return {
        "space": {name: _table(parameter) for name, parameter in space.parameters.items()},
        "fidelity": {
            name: {"kind": "int" if one.integer else "float", "low": one.low, "high": one.high, "log": False}
            for name, one in space.fidelities.items()
        },
    }


def _table(parameter: Parameter) -> dict[str, Any]:
    when = {parent: list(values) for parent, values in parameter.when.items()}
    match parameter:
        case Float(low=low, high=high, log=log):
            return {"kind": "float", "low": low, "high": high, "log": log, "when": when}
        case Int(low=low, high=high, log=log):
            return {"kind": "int", "low": low, "high": high, "log": log, "when": when}
        case Choice(options=options, ordered=True):
            return {"kind": "int", "low": 0, "high": len(options) - 1, "log": False, "when": when}
        case Choice(options=options):
            return {"kind": "choice", "options": list(options), "when": when}


def _params(space: Space, config: Mapping[str, Any]) -> Params:
    """Without what is inactive; rounding may leave the bounds by a digit."""
    plain = {name: plain_value(space, name, value) for name, value in config.items()}
    within = {name: _clipped(space.parameters[name], value) for name, value in plain.items()}
    return space.check({name: within[name] for name in space.active_names(within)})


def _clipped(parameter: Parameter, value: Any) -> Any:
    return min(max(value, parameter.low), parameter.high) if isinstance(parameter, (Float, Int)) else value
