"""The first trial of a worker process is stored, where its cost is measured."""

from pathlib import Path

import pytest

import farthing as ft
from farthing.trials.events import began_its_worker

SPACE = ft.Space({"x": ft.Float(0, 1)})


def first_trials(study: ft.Study) -> list[int]:
    return [trial.number for trial in study.history if began_its_worker(study.history, trial)]


def work(trial: ft.RunningTrial) -> float:
    return float(trial.params["x"])


def test_every_worker_process_has_a_first_trial_in_every_run(tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path}/study.db"
    study = ft.Study(SPACE, minimize="error", strategy=ft.Random(), storage=place, name="s", seed=0)
    study.run(work, budget=ft.Budget(trials=6), workers=2, progress=False)
    assert 1 <= len(first_trials(study)) <= 2, "one worker may have run them all"
    before = first_trials(study)
    study.close()
    again = ft.Study.load("s", place)
    assert first_trials(again) == before
    again.run(work, budget=ft.Budget(trials=9), workers=1, progress=False)
    assert first_trials(again) == [*before, 6]


@pytest.mark.parametrize("declared", [{"cost": lambda params, fidelity: 1.0}, {"cost_unit": "dollars"}])
def test_nothing_is_stored_where_cost_is_not_measured(declared: dict[str, object]) -> None:
    study = ft.Study(SPACE, minimize="error", strategy=ft.Random(), seed=0, **declared)  # type: ignore[arg-type]
    study.run(work, budget=ft.Budget(trials=3), workers=1, progress=False)
    assert first_trials(study) == []
