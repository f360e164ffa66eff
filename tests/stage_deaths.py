"""Runs a study of each stage in a folder's modules, each in a process of its own; test_stage_deaths.py runs it.

A process may have to die in a stage: its number says at which call of one, counted over both stages. Prints of each
study that reaches its end, as JSON: params and values, what was computed and loaded, and events of code and of outputs.
"""

import importlib
import json
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import farthing as ft
from farthing.execution.pipeline import _Passage
from farthing.trials.prefixes import EVICTED

SPACE = ft.Space(stages={"first": {"a": ft.Choice(1.0, 1.5, 2.0)}, "last": {"c": ft.Float(0.5, 1.0)}})
STRATEGY = ft.PrefixEI(costs={"first": 5.0, "last": 1.0})


def last(output: Any, c: float) -> float:
    return float(np.abs(np.asarray(output, dtype=float)).mean() * (1.0 + (c - 0.7) ** 2))


class Death:
    """Kills the process within that call of a stage, just after it has begun."""

    def __init__(self, at: int) -> None:
        self._left = at

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        caller = frame.f_back
        if event != "call" or caller is None or caller.f_code is not _Passage._compute.__code__:
            return
        self._left -= not str(frame.f_globals.get("__name__")).startswith("farthing")
        if not self._left:
            os.kill(os.getpid(), signal.SIGKILL)


def told(name: str, storage: str, trials: int) -> dict[str, Any]:
    stage = importlib.import_module(name).stage
    study = ft.Study(SPACE, minimize="error", strategy=STRATEGY, storage=storage, name=name, seed=7)
    work = ft.Pipeline(source=np.arange(1.0, 6.0), first=stage, last=last)
    study.run(work, budget=ft.Budget(trials=trials), executor="inline", progress=False)
    kinds = [event.kind for event in study.history.events]
    return {
        "trials": [[dict(one.params), one.value, one.note["kept"]] for one in study.trials],
        "stages": {stage: found.computed for stage, found in study.ledger.stages.items()},
        "changes": kinds.count("code of stages changed"),
        "evictions": kinds.count(EVICTED),
        "attempts": sum(one.attempt for one in study.trials),
    }


def main(folder: str, storage: str, trials: str, dies_at: str) -> None:
    sys.path.insert(0, folder)
    for name in sorted(path.stem for path in Path(folder).glob("kind_*.py")):
        if child := os.fork():
            os.waitpid(child, 0)
            continue
        if int(dies_at):
            sys.setprofile(Death(int(dies_at)))
        print(json.dumps([name, told(name, storage, int(trials))]), flush=True)
        os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
