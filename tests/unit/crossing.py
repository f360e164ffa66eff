"""The modules of Farthing that are called, in this process, while one study runs: one name on each line."""

import sys
import threading
from types import FrameType
from typing import Any

import farthing as ft

CALLED: set[str] = set()


def note_module(frame: FrameType, event: str, _: Any) -> None:
    if event == "call" and frame.f_code.co_name != "<module>":  # an import calls nothing yet
        CALLED.add(frame.f_globals.get("__name__", ""))


def train(trial: ft.RunningTrial) -> float:
    return float((trial.params["x"] - 0.3) ** 2)


if __name__ == "__main__":
    study = ft.Study(ft.Space({"x": ft.Float(0.0, 1.0)}), minimize="error", seed=0)
    threading.setprofile(note_module)
    sys.setprofile(note_module)
    study.run(train, budget=ft.Budget(trials=12), progress=False)
    sys.setprofile(None)
    print("\n".join(sorted(name for name in CALLED if name.partition(".")[0] == "farthing")))
