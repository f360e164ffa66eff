"""Commands on a large study read what they show, counted in trials and measurements that are read."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

import farthing as ft
from farthing.analysis import best
from farthing.session import session_of
from farthing.storage import rows
from farthing.strategies import Recommendation
from farthing.trials import History, Prediction, Suggestion

Farthing = Callable[..., Result]
MOST_READ = 100
"""Trials and measurements: some rows of a table, their runs and their curves."""


@dataclass
class Read:
    count: int = 0


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Read:
    """How many trials and measurements were made of rows."""
    counted = Read()

    def counting(made: Callable[..., Any]) -> Callable[..., Any]:
        def count(*given: Any, **named: Any) -> Any:
            counted.count += 1
            return made(*given, **named)

        return count

    monkeypatch.setattr(rows, "entry", counting(rows.entry))
    monkeypatch.setattr(rows, "measurement", counting(rows.measurement))
    return counted


@pytest.fixture
def large(digits: ft.Study, monkeypatch: pytest.MonkeyPatch) -> ft.Study:
    """The study of the other commands with 400 further trials."""
    monkeypatch.setattr("farthing.dashboard.reading.MANY_MEASUREMENTS", 100)
    monkeypatch.setattr("farthing.storage.measurement_rows.MANY", 100)
    for number in range(400):
        params = {"lr": 0.01, "layers": 1 + number % 4, "act": "relu"}
        digits.add(params, 1.0 + number / 400, fidelity={"epochs": 3}, cost=2.0)
    return digits


def test_show_has_the_best_runs_their_curves_and_the_cost(farthing: Farthing, large: ft.Study, read: Read) -> None:
    text = farthing("show").output

    assert "digits: minimize error with ASHA, 407 trials (1 pending, 1 running, 404 done, 1 failed)" in text
    assert "Best error: 0.25 (trial 3, epochs=3)" in text
    assert "waiting for a worker" in text
    assert "… and 393 more" in text
    assert "error by epochs (line: trial 3, the best; dots: the others)" in text
    assert "spent    812 seconds, 1 of it for trials without a result" in text
    assert "--trial 4 --log" in text
    assert read.count <= MOST_READ


def test_show_ranks_the_same_runs_as_of_a_study_that_is_read_whole(
    farthing: Farthing, large: ft.Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    def table(text: str) -> list[str]:
        lines = text.splitlines()
        start = next(index for index, line in enumerate(lines) if line.startswith("trial  state"))
        return lines[start : start + 11]

    of_lines = table(farthing("show").output)
    monkeypatch.setattr("farthing.dashboard.reading.MANY_MEASUREMENTS", 10**6)

    assert of_lines == table(farthing("show").output)


def test_show_says_how_many_trials_the_model_chose_as_of_a_study_that_is_read_whole(
    farthing: Farthing, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = ft.Study(ft.Space({"x": ft.Float(0, 1)}), minimize="error", storage="model.db", strategy=ft.LogEI(), seed=0)
    study.run(lambda trial: trial.params["x"], budget=ft.Budget(trials=9), executor="inline", progress=False)
    session_of(study).records.storage.enqueue_trial(
        study.name, Suggestion({"x": 0.5}, note={"why": '"theta"', "of": {"theta": [1.0]}})
    )
    chosen = sum("theta" in (trial.note or {}) for trial in study.trials)
    whole = farthing("show").output
    monkeypatch.setattr("farthing.dashboard.reading.MANY_MEASUREMENTS", 5)

    assert 0 < chosen < 9
    assert f"The model chose {chosen} of 10 trials." in whole
    assert f"The model chose {chosen} of 10 trials." in farthing("show").output
    assert "(by kind: study.ledger)" in farthing("show").output, "it was not read whole"


def test_a_trial_is_shown_without_reading_others(
    farthing: Farthing, large: ft.Study, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, form = farthing("show", "--trial", 3).output, farthing("show", "--trial", 3, "--json").output

    assert read.count <= MOST_READ
    monkeypatch.setattr("farthing.dashboard.reading.MANY_MEASUREMENTS", 10**6)
    assert (text, form) == (
        farthing("show", "--trial", 3).output,
        farthing("show", "--trial", 3, "--json").output,
    )
    assert "one of those there are (0 to 406)" in farthing("show", "--trial", 407).output


def test_watch_shows_how_it_stands(farthing: Farthing, large: ft.Study, read: Read) -> None:
    title, found, *_ = farthing("watch", "--once").output.splitlines()

    assert title == "digits: 1 pending, 1 running, 404 done, 1 failed; 812 seconds spent"
    assert found.startswith("best error measured: 0.25 at epochs=3 (trial 3)")
    assert read.count <= MOST_READ


@dataclass(frozen=True)
class SecondBest(ft.Random):
    """Recommends what a model would."""

    def recommend(self, history: History) -> Recommendation | None:
        trial = history.done[1]
        return Recommendation(trial.params, trial, Prediction(0.125, 0.01))


@pytest.fixture
def finished(monkeypatch: pytest.MonkeyPatch) -> ft.Study:
    monkeypatch.setattr(best, "MANY_RESULTS", 5)
    study = ft.Study(ft.Space({"x": ft.Float(0, 1)}), minimize="error", storage="study.db", strategy=SecondBest())
    study.run(lambda trial: trial.params["x"], budget=ft.Budget(trials=6), executor="inline", progress=False)
    return study


def test_a_run_that_ends_large_stores_its_recommendation_and_best_reads_no_more_than_that(
    farthing: Farthing, finished: ft.Study, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    recommended = finished.best
    monkeypatch.setattr(SecondBest, "recommend", lambda *_: pytest.fail("it was asked again"))
    read.count = 0

    assert f"(trial {recommended.trial.number}" in farthing("best").output
    assert read.count <= 4

    stored = best.kept_recommendation(session_of(ft.Study.load("study", "study.db")).records)
    assert stored == recommended


def test_a_recommendation_of_a_study_that_has_gone_on_is_not_used(finished: ft.Study) -> None:
    finished.add({"x": 0.0}, 0.0)

    assert best.kept_recommendation(session_of(ft.Study.load("study", "study.db")).records) is None


@pytest.mark.parametrize("part", ["trial", "predicted", "params", "schedule"])
def test_a_recommendation_that_was_changed_by_hand_is_not_used(finished: ft.Study, part: str) -> None:
    session = session_of(finished)
    form = {**best.find_best(session).to_json(), "is_full": True, part: {"x": "?"}}
    session.records.keep_recommendation(form)

    assert best.kept_recommendation(session_of(ft.Study.load("study", "study.db")).records) is None


def test_a_command_that_shows_a_study_imports_no_scipy_which_takes_as_long_as_reading_half_of_a_large_one() -> None:
    views = "farthing.study, farthing.cli.study_view, farthing.cli.watch_view"
    program = f"import sys, {views}; print({{'scipy', 'pandas'}} & set(sys.modules))"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert finished.stdout.strip() == "set()"
