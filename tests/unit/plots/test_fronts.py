"""Pictures of several objectives and of limits: that each has all values, and what is where."""

from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

import farthing as ft
from farthing.analysis.front import attained_along
from farthing.errors import InvalidArgument

SPACE = ft.Space({"x": ft.Float(0.0, 1.0), "y": ft.Float(0.0, 1.0)})
EPOCHS = {"epochs": ft.Fidelity(1, 9, integer=True, trace=True)}


def curve(trial: Any) -> None:
    x, y = trial.params["x"], trial.params["y"]
    for epoch in range(1, int(trial.fidelity.get("epochs", 1)) + 1):
        place = {"epochs": epoch} if trial.fidelity else {}
        error = x * x + 0.3 * y + 1 / epoch
        trial.report({"error": error, "size": (1 - x) ** 2, "recall": y, "memory": x + y}, **place)


@pytest.fixture
def two() -> ft.Study:
    study = ft.Study(
        SPACE, minimize=["error", "size"], constraints={"memory": ft.AtMost(1.2)}, noise=False, strategy="Sobol"
    )
    study.run(curve, budget=ft.Budget(trials=16), executor="inline")
    return study


@pytest.fixture
def three() -> ft.Study:
    space = ft.Space(SPACE.parameters, fidelities=EPOCHS)
    study = ft.Study(space, minimize=["error", "size"], maximize="recall", noise=False, strategy=ft.ASHA())
    study.run(curve, budget=ft.Budget(trials=20), executor="inline")
    return study


def titles(figure: Figure) -> list[str]:
    return [title for axes in figure.axes if (title := axes.get_title(loc="left"))]


def test_two_objectives_are_drawn_against_each_other_and_against_the_cost(two: ft.Study) -> None:
    assert titles(two.plot("front")) == [
        "size against error, as expected",
        "Hypervolume against cost, as measured",
        f"memory ≤ 1.2: kept by {sum(trial.points[-1].metrics['memory'] <= 1.2 for trial in two.trials)} of 16",
    ]


def test_three_objectives_are_drawn_in_all_pairs(three: ft.Study) -> None:
    assert titles(three.plot("front"))[:3] == [
        "size against error, as expected",
        "recall against error, as expected",
        "recall against size, as expected",
    ]


def test_the_front_is_told_from_what_is_dominated_or_beyond_a_limit(two: ft.Study) -> None:
    [axes] = [axes for axes in two.plot("front").axes if axes.get_title(loc="left").startswith("size against")]
    drawn = {line.get_label(): len(line.get_xdata()) for line in axes.get_lines()}
    front = two.front
    beyond = sum(point.values["memory"] > 1.2 for point in front.others)
    assert drawn["dominated"] == len(front.others) - beyond
    assert drawn["beyond a limit"] == beyond
    assert 0 < beyond < len(front.others)
    assert f"trial {two.best.trial.number}" in drawn


def test_hypervolume_never_falls_and_ends_with_the_front(two: ft.Study) -> None:
    steps = attained_along(two.history)
    found = [step.found for step in steps if step.found is not None]
    assert found == sorted(found)
    assert found[-1] == pytest.approx(two.front.hypervolume)
    assert steps[-1].within == sum(trial.points[-1].metrics["memory"] <= 1.2 for trial in two.trials) / 16
    assert steps[-1].spent == pytest.approx(two.ledger.total)


def test_hypervolume_grows_towards_a_front_of_one() -> None:
    """The last front alone has no extent: measured beyond it, everything before it was worth nothing."""
    study = ft.Study(SPACE, minimize=["error", "size"], noise=False, strategy="Random")
    for x in (0.9, 0.6, 0.3, 0.0):
        study.add({"x": x, "y": 0.5}, {"error": x, "size": x})
    found = [step.found for step in attained_along(study.history)]
    assert study.front.reference == pytest.approx({"error": 0.99, "size": 0.99})
    assert found == pytest.approx([0.09**2, 0.39**2, 0.69**2, 0.99**2])
    assert found[-1] == pytest.approx(study.front.hypervolume)


def test_one_objective_under_limits_has_the_best_that_keeps_them() -> None:
    study = ft.Study(SPACE, maximize="recall", constraints={"memory": ft.AtMost(1.0)}, noise=False, strategy="Sobol")
    study.run(curve, budget=ft.Budget(trials=8), executor="inline")
    kept = [trial.value or 0.0 for trial in study.trials if trial.points[-1].metrics["memory"] <= 1.0]
    assert attained_along(study.history)[-1].found == max(kept)
    assert titles(study.plot("front"))[0] == "Best recall within the limits against cost, as measured"


@pytest.mark.parametrize("kind", ["all", "progress", "curves", "fidelities", "params"])
def test_the_other_kinds_have_a_panel_for_each_objective(three: ft.Study, kind: Any) -> None:
    labels = [axes.get_ylabel() for axes in three.plot(kind).axes]
    if kind in ("all", "curves", "params"):
        assert {"error", "size", "recall"} <= set(labels)
    assert three.plot(kind).axes


def test_a_model_is_of_one_of_them(three: ft.Study, two: ft.Study) -> None:
    with pytest.raises(InvalidArgument, match=r"Say which: study.plot\('model', of='error'\)"):
        two.plot("model")
    texts = [text.get_text() for text in two.plot("model", of="size").texts]
    assert any("a model of size of 16 trials" in text for text in texts)
    with pytest.raises(InvalidArgument, match="Only a picture of a model is of one value"):
        two.plot("front", of="size")


def test_one_value_without_limits_has_no_front(tmp_path: Path) -> None:
    study = ft.Study(SPACE, minimize="error", strategy="Random")
    study.run(curve, budget=ft.Budget(trials=2), executor="inline")
    with pytest.raises(InvalidArgument, match="needs several objectives or limits, got minimize error"):
        study.plot("front")


def test_a_front_is_drawn_before_anything_keeps_the_limits() -> None:
    study = ft.Study(SPACE, minimize=["error", "size"], constraints={"memory": ft.AtMost(-1.0)}, strategy="Random")
    study.run(curve, budget=ft.Budget(trials=3), executor="inline")
    assert "memory ≤ -1: kept by 0 of 3" in titles(study.plot("front"))
