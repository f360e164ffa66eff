"""A study in a file: stopped, resumed, and read by another program.

    python examples/0_resume.py

Interrupt it with Ctrl-C, or kill it, and start it again: it continues where it stopped.
"""

import time

import farthing as ft

space = ft.Space({"x": ft.Float(-5, 5), "y": ft.Float(-5, 5)})


def slow_loss(trial):
    time.sleep(0.05)
    return (trial.params["x"] - 1) ** 2 + (trial.params["y"] + 2) ** 2


study = ft.Study(space, minimize="loss", storage="0_resume.db", name="slow", seed=0)
print(f"{len(study.trials)} trials are there already")
print(study.run(slow_loss, budget=ft.Budget(trials=len(study.trials) + 10), workers=2))
study.close()

again = ft.Study.load("slow", "0_resume.db")  # as another program would: the space is stored with the study
print(again)
