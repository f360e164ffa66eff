"""SIGKILL at random moments, to workers and coordinator: the same lineage, schedule, draws and checkpoints come out."""

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from killed_population import Agent, population_in
from test_kills import Target, kill_repeatedly, sqlite_files

import farthing as ft
from farthing.storage import open_storage

PROGRAM = Path(__file__).with_name("killed_population.py")


def killed_many(storages: Iterator[str], folder: Path, *, kills: int, workers: int) -> None:
    rng = random.Random(f"population {kills} {workers}")
    done, seed = 0, 0
    while done < kills:
        target = Target(next(storages), "PB2", seed=seed, workers=workers, folder=folder / str(seed), program=PROGRAM)
        done += kill_repeatedly(target, rng, most=kills - done)
        check(target)
        seed += 1


def check(target: Target) -> None:
    storage = open_storage(target.storage)
    assert storage.check() == []
    study = ft.Study.load("study", storage)
    unbroken = population_in(None, target.seed)
    unbroken.run(Agent, executor="inline")
    assert by_member(study) == by_member(unbroken)
    assert [trial.state for trial in study.trials] == [ft.State.DONE] * len(unbroken.trials)
    assert study.best.schedule == unbroken.best.schedule
    assert study.best.value == unbroken.best.value
    assert_only_the_best_is_kept(target, study, unbroken)
    study.close()
    storage.close()


def by_member(study: ft.Study) -> dict[tuple[int, int], tuple]:
    """What each member did in each interval; numbers may differ, because workers finish in another order."""

    def source(trial: ft.Trial) -> tuple[int, int] | None:
        return None if trial.resume_from is None else place(study.trials[trial.resume_from])

    def place(trial: ft.Trial) -> tuple[int, int]:
        return trial.note["member"], trial.note["interval"]

    return {
        place(trial): (json.dumps(trial.params), source(trial), trial.value, [point.value for point in trial.points])
        for trial in study.trials
    }


def assert_only_the_best_is_kept(target: Target, study: ft.Study, unbroken: ft.Study) -> None:
    files = Path(study.checkpoints.root)
    assert files.is_relative_to(target.folder)
    assert [str(path.relative_to(files)) for path in files.glob("*/*.*-*")] == [study.best.trial.checkpoint]
    state = files / study.best.trial.checkpoint / "state.json"
    assert state.read_text() == (unbroken.checkpoints.path(unbroken.best.trial.checkpoint) / "state.json").read_text()


@pytest.mark.parametrize("workers", [1, 3])
def test_a_population_comes_out_the_same_under_kills(tmp_path: Path, workers: int) -> None:
    killed_many(sqlite_files(tmp_path), tmp_path, kills=2, workers=workers)


@pytest.mark.long
@pytest.mark.timeout(36_000)
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_population_comes_out_the_same_under_many_kills(tmp_path: Path, workers: int) -> None:
    killed_many(sqlite_files(tmp_path), tmp_path, kills=60, workers=workers)
