"""A study of 32 coroutines at once, to be killed: `async_study.py STORAGE ACKNOWLEDGED`.

Each writes down what has been acknowledged: the trial, the step of a report and its value.
"""

import asyncio
import os
import sys

import farthing as ft

TRIALS, STEPS, WORKERS = 64, 5, 32


def main(storage: str, acknowledged: str) -> None:
    written = os.open(acknowledged, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    async def work(trial: ft.RunningTrial) -> float:
        value = float(trial.params["lr"])
        for step in range(1, STEPS + 1):
            await asyncio.sleep(0.02 + 0.001 * (trial.number % 7))
            trial.charge(0.25)
            trial.report(value + 1.0 / step, step=step)
            os.write(written, f"{trial.number} {trial.attempt} {step} {value + 1.0 / step!r}\n".encode())
        return value

    study = ft.Study(
        ft.Space({"lr": ft.Float(0.0, 1.0)}),
        minimize="error",
        cost_unit="dollars",
        strategy="Sobol",
        storage=storage,
        name="killed",
        seed=0,
        lost_retries=10,  # every trial is in flight at every kill
    )
    study.run(work, budget=ft.Budget(trials=TRIALS), executor="async", workers=WORKERS, progress=False)
    os.write(written, b"finished\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
