"""A study of a pipeline that writes down what it computed and what was acknowledged; test_stage_cache.py kills it."""

import os
import sys
from pathlib import Path

import numpy as np

import farthing as ft

SPACE = ft.Space(
    stages={"load": {"size": ft.Int(1, 3)}, "scale": {"factor": ft.Int(1, 3)}, "score": {"shift": ft.Int(0, 99)}}
)
TRIALS = 24


def note(path: str, line: str) -> None:
    """One write to a file opened for appending: a killed process leaves it whole or not at all."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


class Recording:
    """Stages that note when they begin; their outputs are large enough for a write of one to be cut short.

    One output is plain data, the other a folder of files.
    """

    def __init__(self, path: str) -> None:
        self.path = path

    def load(self, source: int, size: int) -> dict[str, np.ndarray]:
        note(self.path, f"load {size}")
        return {"image": np.full(200_000 * size, source, dtype=float)}

    def scale(self, loaded: dict[str, np.ndarray], factor: int, folder: Path) -> Path:
        image = loaded["image"]
        note(self.path, f"scale {len(image) // 200_000} {factor}")
        (folder / "parts").mkdir()
        for part, pixels in enumerate(np.split(image * factor, 4)):
            np.save(folder / "parts" / f"{part}.npy", pixels)
        return folder

    def score(self, scaled: Path, shift: int) -> float:
        return sum(float(np.load(part).sum()) for part in sorted(scaled.glob("parts/*.npy"))) + shift


def value_of(params: dict[str, int]) -> float:
    return 7.0 * 200_000 * params["size"] * params["factor"] + params["shift"]


def pipeline(folder: Path) -> ft.Pipeline:
    stages = Recording(str(folder / "computed"))
    return ft.Pipeline(
        source=7,
        load=ft.Stage(stages.load, version=1),
        scale=ft.Stage(stages.scale, version=1, folder=True),
        score=ft.Stage(stages.score, version=1),
    )


def study_in(storage: str | None) -> ft.Study:
    return ft.Study(SPACE, minimize="error", strategy=ft.Random(), storage=storage, seed=1, lost_retries=1000)


def main(storage: str, folder: str) -> None:
    acknowledged = str(Path(folder) / "acknowledged")
    study = study_in(storage)
    note(acknowledged, "started")
    study.run(
        pipeline(Path(folder)),
        budget=ft.Budget(trials=TRIALS),
        workers=3,
        retries=1000,
        callbacks=[lambda study, trial: note(acknowledged, f"end {trial.number} {trial.state} {trial.value!r}")],
    )
    note(acknowledged, "finished")


if __name__ == "__main__":
    main(*sys.argv[1:])
