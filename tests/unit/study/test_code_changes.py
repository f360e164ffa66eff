"""Pipelines whose code changes while their study goes on."""

import logging
from pathlib import Path

import pytest

import farthing as ft

SPACE = ft.Space(stages={"scale": {"factor": ft.Choice(1.0, 2.0)}, "score": {"level": ft.Float(0, 1)}})


def scale(data: list[float], factor: float) -> list[float]:
    return [factor * number for number in data]


def scale_of_yore(data: list[float], factor: float) -> list[float]:
    return [factor * number - 100 for number in data]  # a mistake that made all values too good


def score(data: list[float], level: float) -> float:
    return sum(data) / len(data) + level


def pipeline(scaled: object = scale, scored: object = score) -> ft.Pipeline:
    return ft.Pipeline(source=[1.0, 2.0, 3.0], scale=scaled, score=scored)  # type: ignore[arg-type]


def run(study: ft.Study, work: ft.Pipeline, trials: int, **settings: object) -> None:
    study.run(work, budget=ft.Budget(trials=trials), executor="inline", **settings)  # type: ignore[arg-type]


def study_of(storage: Path | None = None) -> ft.Study:
    return ft.Study(SPACE, minimize="loss", storage=storage, seed=0)


def test_trials_of_older_code_leave_the_best_the_ranking_and_verify(caplog: pytest.LogCaptureFixture) -> None:
    study = study_of()
    run(study, pipeline(scale_of_yore), 4)
    assert study.best.value < -50
    with caplog.at_level(logging.WARNING, logger="farthing"):
        run(study, pipeline(), 9)
    assert "scale changed since the last run: 4 trials of the older code leave the best and the model" in caplog.text
    assert [study.history.is_outdated(trial) for trial in study.trials] == [True] * 4 + [False] * 5
    assert study.best.value > 0
    assert all(trial.number >= 4 for trial in study.top(10))
    assert study.verify(pipeline(), executor="inline").number >= 4
    measured = study.best.measured
    assert measured is not None
    assert measured.number >= 4


def test_a_last_stage_that_changes_counts_as_well() -> None:
    study = study_of()
    run(study, pipeline(), 4)

    def stricter(data: list[float], level: float) -> float:
        return score(data, level) + 10

    run(study, pipeline(scored=stricter), 6)
    assert study.best.value > 10


def test_a_change_that_is_declared_harmless_keeps_them() -> None:
    study = study_of()
    run(study, pipeline(scale_of_yore), 4)
    run(study, pipeline(), 6, harmless_change=True)
    assert not any(map(study.history.is_outdated, study.trials))
    assert study.best.value < -50


def test_it_can_be_declared_harmless_later() -> None:
    study = study_of()
    run(study, pipeline(scale_of_yore), 4)
    run(study, pipeline(), 6)
    assert any(map(study.history.is_outdated, study.trials))
    run(study, pipeline(), 6, harmless_change=True)
    assert not any(map(study.history.is_outdated, study.trials))


def test_code_that_is_changed_back_counts_again(tmp_path: Path) -> None:
    study = study_of(tmp_path / "a.db")
    run(study, pipeline(), 4)
    run(study, pipeline(scale_of_yore), 6)
    run(study, pipeline(), 7)
    loaded = ft.Study.load("study", tmp_path / "a.db")
    assert [loaded.history.is_outdated(trial) for trial in loaded.trials] == [False] * 4 + [True] * 2 + [False]
    assert loaded.best.value > 0


def test_the_same_code_in_another_run_changes_nothing() -> None:
    study = study_of()
    run(study, pipeline(), 4)
    run(study, pipeline(), 6)
    assert not any(event.kind == "code of stages changed" for event in study.history.events)
