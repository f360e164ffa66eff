"""Runs one trial of a plain function in a worker process and prints the imported modules of that process, as JSON."""

import json
import sys
import time

import farthing as ft

HEAVY = ("numpy", "scipy", "sqlalchemy")


def look_around(trial: ft.RunningTrial) -> dict[str, float]:
    """The work: reports on the process it runs in."""
    ours = [name for name in sys.modules if name.partition(".")[0] == "farthing"]
    loaded = {name: float(name in sys.modules) for name in HEAVY}
    return {"value": 0.0, "farthing_modules": len(ours), "cpu_seconds": time.process_time(), **loaded}


def main() -> None:
    study = ft.Study(ft.Space({"x": ft.Float(0.0, 1.0)}), minimize="value", strategy=ft.Random(), seed=0)
    study.run(look_around, budget=ft.Budget(trials=1), workers=1, progress=False)
    print(json.dumps(dict(study.history[0].measurements[-1].metrics)))


if __name__ == "__main__":
    main()
