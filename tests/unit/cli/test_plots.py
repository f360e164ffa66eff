"""Pictures: that they are drawn, and of what. Warnings are errors, so a layout that does not fit fails."""

import sys
from pathlib import Path

import pytest

import farthing as ft
from farthing.cli.plots.look import plain_number
from farthing.cli.plots.progress import progress_of

PNG = b"\x89PNG"


@pytest.mark.parametrize("kind", ["all", "progress", "curves", "params"])
def test_a_picture_of_each_kind_is_drawn(farthing, folder: Path, digits: ft.Study, kind: str) -> None:
    result = farthing("--debug", "plot", "--kind", kind)

    assert result.output == "Wrote digits.png\n"
    assert (folder / "digits.png").read_bytes().startswith(PNG)


def test_a_study_without_fidelities_with_conditions_and_failures_is_drawn(farthing, folder: Path) -> None:
    space = ft.Space(
        {
            "optimizer": ft.Choice("sgd", "adam"),
            "momentum": ft.Float(0, 1, when={"optimizer": "sgd"}),
            "lr": ft.Float(1e-5, 1e-1, log=True),
            "layers": ft.Int(1, 4),
            "width": ft.Int(16, 4096, log=True),
            "dropout": ft.Float(0, 0.5),
        }
    )
    study = ft.Study(space, maximize="f1", storage="study.db", name="a/b", strategy=ft.Random(), cost_unit="dollars")
    for value in (0.1, 0.9, -1e9, 0.5):
        study.tell(study.ask(), value, cost=1.0)
    study.tell(study.ask(), failure="broken", cost=1.0)

    result = farthing("--debug", "plot")

    assert result.output == "Wrote a-b.png\n"
    assert (folder / "a-b.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize("kind", ["all", "stages"])
def test_a_pipelines_picture_has_its_stages(farthing, folder: Path, kind: str) -> None:
    space = ft.Space(stages={"clean": {"cut": ft.Int(1, 2)}, "fit": {"shrink": ft.Float(0, 1)}})
    pipeline = ft.Pipeline(source=[1.0, 2.0], clean=lambda numbers, cut: numbers, fit=lambda numbers, shrink: shrink)
    study = ft.Study(space, minimize="error", storage="sqlite:///farthing.db", name="staged", strategy=ft.Random())
    study.run(pipeline, budget=ft.Budget(trials=6), executor="inline")
    assert farthing("--debug", "plot", "--kind", kind).exit_code == 0
    assert (folder / "staged.png").read_bytes().startswith(PNG)


def test_a_picture_of_stages_needs_some(farthing, digits: ft.Study) -> None:
    result = farthing("plot", "--kind", "stages")
    assert result.exit_code == 1
    assert "A picture of stages needs a pipeline's trials, got none of 'digits'" in result.stderr


def test_a_picture_needs_a_result(farthing) -> None:
    ft.Study(ft.Space({"x": ft.Float(0, 1)}), minimize="error", storage="empty.db").close()

    result = farthing("plot")

    assert result.exit_code == 1
    assert "Run the study first" in result.stderr


def test_a_missing_matplotlib_names_the_extra(farthing, digits: ft.Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    result = farthing("plot")

    assert result.exit_code == 1
    assert "pip install 'farthing[plot]'" in result.stderr


def test_progress_counts_every_cost_and_keeps_the_best(digits: ft.Study) -> None:
    steps = progress_of(digits.history)

    assert [step.trial.number for step in steps] == [0, 1, 2, 3, 4]
    assert [step.spent for step in steps] == pytest.approx([2, 4, 6, 11, 12])
    assert [step.best for step in steps] == [0.4, 0.4, 0.4, 0.25, 0.25]


@pytest.mark.parametrize(
    ("number", "text"), [(0.02, "0.02"), (500, "500"), (1e-5, "1e-5"), (1e6, "1e6"), (0.0, "0e0"), (1e-12, "1e-12")]
)
def test_labels_are_plain_numbers(number: float, text: str) -> None:
    assert plain_number(number) == text
