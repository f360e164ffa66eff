"""Learning curves out of a history."""

import farthing as ft
from farthing.analysis.runs import curve_axis, last_of_runs, learning_curves, with_value


def test_a_continued_run_is_one_curve(digits: ft.Study) -> None:
    curves = learning_curves(digits.history)

    assert [[trial.number for trial in curve.trials] for curve in curves] == [[1], [2], [0, 3]]
    assert curves[2].points == ((1, 0.4), (2, 0.3), (3, 0.25))
    assert curves[2].includes(digits.trials[0])


def test_the_last_of_a_run_is_what_none_carries_on(digits: ft.Study) -> None:
    assert [trial.number for trial in last_of_runs(digits.history)] == [1, 2, 3, 4, 5, 6]
    assert [trial.number for trial in last_of_runs(with_value(digits.history))] == [1, 2, 3]


def test_curves_run_along_the_trace_else_the_first_fidelity_else_the_step() -> None:
    x = {"x": ft.Float(0, 1)}
    data, epochs = ft.Fidelity(0.1, 1.0), ft.Fidelity(1, 9, integer=True, trace=True)

    assert curve_axis(ft.Space(x, fidelities={"data": data, "epochs": epochs})) == "epochs"
    assert curve_axis(ft.Space(x, fidelities={"data": data})) == "data"
    assert curve_axis(ft.Space(x)) == "step"
