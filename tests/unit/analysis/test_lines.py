"""Trials in columns, which the dashboard and views of large studies read."""

from typing import Any

import pytest

import farthing as ft
from farthing.analysis.lines import Lines

EPOCHS = ft.Fidelity(1, 9, integer=True)


@pytest.mark.parametrize(("direction", "best"), [("minimize", 1), ("maximize", 2)])
def test_the_best_line_is_the_best_of_those_that_went_furthest(direction: str, best: int) -> None:
    """Shorter runs are better both ways here, and one has not ended."""
    aim: Any = {direction: "score"}
    with ft.Study(ft.Space({"x": ft.Float(0, 1)}, fidelities={"epochs": EPOCHS}), **aim) as study:
        for place, (value, epochs) in enumerate([(3.0, 9), (2.0, 9), (4.0, 9), (1.0, 3), (5.0, 3)]):
            study.add({"x": place / 10}, value, fidelity={"epochs": epochs})
        study.ask()
        lines = Lines.of(study.history)

    assert lines.best(study.problem) == best
