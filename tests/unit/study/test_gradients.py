"""Derivatives of the value: refused where they cannot be meant, and carried to the history by every way in."""

import json
import math
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

import farthing as ft
from farthing.errors import InvalidArgument, InvalidParams, InvalidValue

SPACE = ft.Space(
    {
        "lr": ft.Float(1e-4, 1.0, log=True),
        "units": ft.Int(1, 64),
        "act": ft.Choice("relu", "tanh"),
        "slope": ft.Float(0, 1, when={"act": "relu"}),
    }
)
PLAIN = ft.Space({"lr": ft.Float(1e-4, 1.0, log=True)})
CURVES = ft.Space(
    {"lr": ft.Float(1e-4, 1.0, log=True)}, fidelities={"epochs": ft.Fidelity(1, 4, integer=True, trace=True)}
)


def asked(params: dict[str, Any]) -> tuple[ft.Study, ft.RunningTrial]:
    study = ft.Study(SPACE, minimize="error", strategy=ft.Random())
    study.enqueue(params)
    return study, study.ask()


RELU = {"lr": 0.1, "units": 8, "act": "relu", "slope": 0.2}
TANH = {"lr": 0.1, "units": 8, "act": "tanh"}


def test_a_told_gradient_is_with_its_value_in_the_history() -> None:
    study, trial = asked(RELU)
    told = study.tell(trial, 0.5, gradient={"lr": -2.0, "units": 0.25, "slope": 1})
    assert told.points[-1].gradient == {"lr": -2.0, "units": 0.25, "slope": 1.0}
    (exported,) = json.loads(study.export(format="json"))["trials"]
    assert exported["measurements"][-1]["gradient"] == {"lr": -2.0, "units": 0.25, "slope": 1.0}


@pytest.mark.parametrize(
    ("params", "gradient", "error", "says"),
    [
        (RELU, {"l": 1.0}, InvalidParams, "Did you mean 'lr'"),
        (RELU, {"act": 1.0}, InvalidParams, "active numeric params"),
        (TANH, {"slope": 1.0}, InvalidParams, "must be among 'lr', 'units', got 'slope'"),
        (RELU, {"lr": math.nan}, InvalidValue, "The gradient along 'lr' must be finite"),
        (RELU, {"lr": "steep"}, InvalidValue, "The gradient along 'lr' must be a number"),
        (RELU, [1.0, 2.0], InvalidValue, "A gradient must map names to values"),
    ],
)
def test_a_gradient_that_cannot_be_meant_is_refused_and_the_trial_can_still_be_told(
    params: dict[str, Any], gradient: Any, error: type[Exception], says: str
) -> None:
    study, trial = asked(params)
    with pytest.raises(error, match=says):
        study.tell(trial, 0.5, gradient=gradient)
    with pytest.raises(error, match=says):
        trial.report(0.5, gradient=gradient)
    assert study.tell(trial, 0.5, gradient={"lr": 1.0}).points[-1].gradient == {"lr": 1.0}


@pytest.mark.parametrize("end", [{}, {"failure": "diverged"}, {"pruned": True}])
def test_a_gradient_without_a_value_is_refused(end: dict[str, Any]) -> None:
    study, trial = asked(RELU)
    with pytest.raises(InvalidArgument, match="A gradient belongs to a value"):
        study.tell(trial, gradient={"lr": 1.0}, **end)


def test_a_gradient_may_come_with_the_last_point_of_a_trace() -> None:
    study = ft.Study(CURVES, minimize="error", strategy=ft.Random())
    told = study.tell(study.ask(), trace=[({"epochs": 2}, 0.4), ({"epochs": 4}, 0.3)], gradient={"lr": 1.0})
    assert [point.gradient for point in told.points] == [None, {"lr": 1.0}]


def test_a_metric_may_be_called_gradient() -> None:
    study = ft.Study(PLAIN, minimize="error", strategy=ft.Random())
    point = study.tell(study.ask(), 0.5, metrics={"gradient": 3.0}).points[-1]
    assert (point.metrics, point.gradient) == ({"gradient": 3.0}, None)


def reporting(trial: ft.RunningTrial) -> float:
    for epoch in range(1, 5):
        trial.report(1.0 / epoch, epochs=epoch, gradient={"lr": float(epoch)})
    return 0.25


def returning(trial: ft.RunningTrial) -> dict[str, Any]:
    return {"error": 0.25, "gradient": {"lr": 4.0}, "recall": 0.5}


def refused(trial: ft.RunningTrial) -> dict[str, Any]:
    return {"error": 0.25, "gradient": {"rate": 4.0}}


def ran(work: object, space: ft.Space, folder: Path) -> ft.Trial:
    """The one trial of a study that worker processes ran, read from the database by a second study."""
    study = ft.Study(space, minimize="error", storage=folder / "study.db", strategy=ft.Random())
    study.run(work, budget=ft.Budget(trials=1))
    study.close()
    return ft.Study.load("study", folder / "study.db").trials[0]


def test_reported_gradients_come_through_a_worker_and_a_database(tmp_path: Path) -> None:
    """The returned value stands where the last report stood, whose gradient it keeps."""
    trial = ran(reporting, CURVES, tmp_path)
    assert [point.gradient for point in trial.points] == [{"lr": float(epoch)} for epoch in (1, 2, 3, 4)]


def test_returned_gradients_come_through_a_worker_and_a_database(tmp_path: Path) -> None:
    (point,) = ran(returning, PLAIN, tmp_path).points
    assert (point.gradient, point.metrics) == ({"lr": 4.0}, {"recall": 0.5})


def test_work_that_returns_a_wrong_gradient_fails_and_says_why(tmp_path: Path) -> None:
    trial = ran(refused, PLAIN, tmp_path)
    assert trial.state is ft.State.FAILED
    assert trial.failure is not None
    assert "A gradient's names (active numeric params) must be among 'lr', got 'rate'" in trial.failure.reason


@pytest.mark.parametrize(("space", "place"), [(PLAIN, {}), (CURVES, {"epochs": 4})])
def test_a_commands_lines_may_have_gradients(tmp_path: Path, space: ft.Space, place: dict[str, int]) -> None:
    line = json.dumps({"error": 0.25, "gradient": {"lr": 4.0}, **place}).replace("{", "{{").replace("}", "}}")
    fields = "{lr} {epochs}" if place else "{lr}"
    program = f"{shlex.quote(sys.executable)} -c {shlex.quote(f'print({line!r})')} {fields}"
    assert ran(ft.Command(program), space, tmp_path).points[-1].gradient == {"lr": 4.0}


class Descending(ft.Trainable):
    def setup(self, params: Any) -> None:
        self.steps = 0

    def step(self) -> dict[str, Any]:
        self.steps += 1
        return {"error": 1.0 / self.steps, "gradient": {"lr": float(self.steps)}}


def test_a_trainables_steps_may_have_gradients(tmp_path: Path) -> None:
    assert [point.gradient for point in ran(Descending, CURVES, tmp_path).points] == [
        {"lr": float(step)} for step in (1, 2, 3, 4)
    ]
