"""Tables of trials: the best ones, and exports."""

import csv
import io
from collections.abc import Mapping
from typing import Any

import pytest

import farthing as ft
from farthing.errors import InvalidArgument
from farthing.extending import Strategy

SPACE = ft.Space({"x": ft.Float(0, 1)})


def scored(trial: ft.RunningTrial) -> dict[str, float]:
    trial.report(2.0, metrics={"auc": 0.5})
    return {"error": trial.params["x"], "auc": 1 - trial.params["x"], "size": 3}


def study_of(strategy: Strategy | None = None) -> ft.Study:
    study = ft.Study(SPACE, minimize="error", strategy=strategy or ft.LogEI(initial=3), seed=0)
    study.run(scored, budget=ft.Budget(trials=6), executor="inline")
    return study


def test_the_best_trials_come_first_and_print_as_a_table() -> None:
    study = study_of()
    top = study.top(3)
    values = sorted(trial.value for trial in study.trials)  # type: ignore[type-var]
    assert [trial.value for trial in top] == values[:3]
    assert top[0] == study.best.trial
    assert repr(top).splitlines()[0].split() == ["trial", "error", "cost", "fidelity", "params"]
    assert len(repr(top).splitlines()) == 4
    assert top._repr_html_().count("<tr>") == 4
    with pytest.raises(InvalidArgument, match=r"study\.top\(10\)"):
        study.top(0)


def test_exports_have_metrics_times_and_predictions() -> None:
    study = study_of()
    rows = list(csv.DictReader(io.StringIO(study.export())))
    last, trial = rows[-1], study.trials[-1]
    assert float(last["metric.auc"]) == 1 - trial.params["x"], "the last value of a metric"
    assert (rows[0]["metric.size"], rows[0]["predicted_value"]) == ("3.0", "")
    assert trial.suggestion.predicted_value is not None
    assert float(last["predicted_value"]) == trial.suggestion.predicted_value.mean
    assert float(last["predicted_deviation"]) > 0
    assert trial.finished_at is not None
    assert float(last["opened_at"]) <= float(last["finished_at"])


def test_a_data_frame_has_the_same_columns() -> None:
    pytest.importorskip("pandas")
    frame = study_of().to_pandas()
    assert {"param.x", "metric.auc", "predicted_value", "predicted_cost", "opened_at", "finished_at"} <= set(frame)
    assert frame["metric.size"].tolist() == [3.0] * 6


def test_why_it_ended_tells_a_trained_population_from_a_budget_that_covers_nothing() -> None:
    class Member(ft.Trainable):
        def setup(self, params: Mapping[str, Any]) -> None:
            self.done = 0

        def apply(self, params: Mapping[str, Any]) -> None: ...

        def step(self) -> float:
            self.done += 1
            return float(self.done)

        def save(self, folder) -> None:  # type: ignore[no-untyped-def]
            (folder / "done").write_text(str(self.done))

        def load(self, folder) -> None:  # type: ignore[no-untyped-def]
            self.done = int((folder / "done").read_text())

    population = ft.Study(SPACE, minimize="error", strategy=ft.PBT(population=2, interval=1, steps=2), seed=0)
    assert str(population.run(Member, executor="inline")) == "the population is trained"
