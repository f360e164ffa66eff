"""`farthing show --model` and `farthing plot --kind model`."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

import farthing as ft
from farthing.analysis.diagnosis import Diagnosis
from farthing.cli.model_view import confidence_verdict, prediction_verdict

PNG = b"\x89PNG"


@pytest.fixture
def tuned(folder: Path) -> ft.Study:
    """A study in `tuned.db`: 16 trials with a value, of which `rate` decides most, and 2 that failed."""
    space = ft.Space(
        {
            "rate": ft.Float(1e-4, 1e-1, log=True),
            "units": ft.Int(16, 512, log=True),
            "optimizer": ft.Choice("sgd", "[adam]"),
            "momentum": ft.Float(0, 1, when={"optimizer": "sgd"}),
        }
    )
    study = ft.Study(space, maximize="accuracy", storage="tuned.db", name="tuned", strategy=ft.Sobol(), seed=0)
    trials = study.ask(count=18)
    for trial in trials[:16]:
        bonus = 0.01 * trial.params.get("momentum", 1.2)
        study.tell(trial, 0.9 - 10 * trial.params["rate"] + bonus, cost=1.0)
    for trial in trials[16:]:
        study.tell(trial, failure="diverged", cost=1.0)
    return study


@pytest.fixture
def diagnosis(tuned: ft.Study) -> Diagnosis:
    return tuned.diagnose()


def test_show_model_says_how_well_it_predicts_and_what_matters(farthing, tuned: ft.Study) -> None:
    text = farthing("show", "--model").output
    lines = text.splitlines()

    assert lines[0] == "tuned: a model of 16 trials with a value and 2 that failed"
    assert "of the differences in accuracy" in " ".join(text.split())
    start = next(index for index, line in enumerate(lines) if line.startswith("parameter"))
    assert lines[start + 1].startswith("rate")
    assert "█" in lines[start + 1]
    assert {line.split()[0] for line in lines[start + 1 : start + 5]} == set(tuned.space.parameters)
    assert "[adam]" in text
    assert lines[-1] == "Next: farthing plot tuned --kind model"
    assert "\x1b" not in text, "colours are for terminals"


def test_show_model_is_json_for_a_program(farthing, tuned: ft.Study) -> None:
    form = json.loads(farthing("show", "--model", "--json").output)

    assert form == {"study": "tuned", **tuned.diagnose().to_json()}


def test_show_model_of_too_few_trials_says_what_to_do(farthing, digits: ft.Study) -> None:
    result = farthing("show", "--model")

    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert re.search(r"at least 5 configurations with a value, got \d among 7 trials\. Run some more", result.stderr)


@pytest.mark.parametrize("option", [["--all"], ["--trial", "0"]])
def test_a_model_is_of_the_whole_study(farthing, tuned: ft.Study, option: list[str]) -> None:
    assert farthing("show", "--model", *option).exit_code == 2


def test_a_picture_of_the_model_is_drawn(farthing, folder: Path, tuned: ft.Study) -> None:
    result = farthing("--debug", "plot", "--kind", "model")

    assert result.output == "Wrote tuned.png\n"
    assert (folder / "tuned.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize("values", [[1.0] * 6, [1e-6, 1e-3, 1.0, 10.0, 1e4, 1e9], [-1e9, -1.0, 0.0, 1.0, 2.0, 3.0]])
def test_values_of_any_range_are_drawn(farthing, folder: Path, values: list[float]) -> None:
    study = ft.Study(ft.Space({"x": ft.Int(0, 9)}), minimize="loss", storage="any.db", name="any")
    for x, value in enumerate(values):
        study.add({"x": x}, value)

    farthing("--debug", "plot", "--kind", "model", "--output", "any.svg")

    assert (folder / "any.svg").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("explained", "start"),
    [
        (0.97, "very good"),
        (0.896, "very good"),
        (0.8, "good"),
        (0.5, "fair"),
        (0.2, "weak"),
        (-0.3, "poor"),
        (None, "n"),
    ],
)
def test_predictions_are_graded(diagnosis: Diagnosis, explained: float | None, start: str) -> None:
    assert prediction_verdict(replace(diagnosis, explained=explained)).startswith(start)


@pytest.mark.parametrize(
    ("shares", "start"),
    [
        ((0.5, 0.8, 0.95), "about right: 50% of the values lie in its 50% interval, 80% in the 80% one"),
        ((0.35, 0.65, 0.9), "about right"),  # of 16 values, chance moves these shares by about 0.1
        ((0.1, 0.2, 0.4), "too high"),
        ((0.9, 1.0, 1.0), "too low"),
    ],
)
def test_confidence_is_judged_with_room_for_chance(diagnosis: Diagnosis, shares: tuple[float], start: str) -> None:
    judged = replace(diagnosis, calibration=dict(zip((0.5, 0.8, 0.95), shares, strict=True)))

    assert confidence_verdict(judged).startswith(start)
