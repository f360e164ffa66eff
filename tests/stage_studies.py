"""Runs a study of each stage in a folder's modules up to a number of trials; test_stage_identity.py runs it.

Prints of each, as JSON: params and values, what was computed and loaded, how often code changed. Ends by a kill.
"""

import importlib
import json
import os
import signal
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import farthing as ft

SPACE = ft.Space(stages={"first": {"a": ft.Choice(1.0, 1.5)}, "last": {"c": ft.Float(0.5, 1.0)}})


def last(output: Any, c: float) -> float:
    return float(np.abs(np.asarray(output, dtype=float)).mean() * c)


def told(module: ModuleType, storage: str, trials: int) -> dict[str, Any]:
    study = ft.Study(SPACE, minimize="error", strategy=ft.Random(), storage=storage, name=module.__name__, seed=7)
    work = ft.Pipeline(source=np.arange(1.0, 6.0), first=module.stage, last=last)
    study.run(work, budget=ft.Budget(trials=trials), executor="inline", progress=False)
    stages = {name: [found.computed, found.loaded] for name, found in study.ledger.stages.items()}
    changes = sum(event.kind == "code of stages changed" for event in study.history.events)
    return {"trials": [[dict(one.params), one.value] for one in study.trials], "stages": stages, "changes": changes}


def main(folder: str, storage: str, trials: str) -> None:
    sys.path.insert(0, folder)
    names = sorted(path.stem for path in Path(folder).glob("kind_*.py"))
    print(json.dumps({name: told(importlib.import_module(name), storage, int(trials)) for name in names}), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])
