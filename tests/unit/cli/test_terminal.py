"""Charts of text."""

from farthing.analysis.runs import Curve
from farthing.cli.terminal import Canvas, Window, chart
from farthing.trials import State, Suggestion, Trial


def curve(number: int, *points: tuple[float, float]) -> Curve:
    return Curve((Trial(number, Suggestion({"x": 1}), State.DONE),), "epochs", points)


def test_a_line_joins_its_points() -> None:
    canvas = Canvas(Window(0, 1, 0, 1), columns=2, rows=1)
    canvas.line([(0, 0), (1, 1)])

    assert canvas.rows() == ["⡠⠊"]


def test_dots_stand_alone() -> None:
    canvas = Canvas(Window(0, 1, 0, 1), columns=2, rows=1)
    canvas.dots([(0, 0), (1, 1)])

    assert canvas.rows() == ["⡀⠈"]


def test_what_lies_outside_is_drawn_on_the_edge() -> None:
    canvas = Canvas(Window(0, 1, 0, 1), columns=1, rows=1)
    canvas.dots([(0, 5), (1, -5)])

    assert canvas.rows() == ["⢁"]


def test_a_chart_labels_both_axes_and_names_the_best() -> None:
    best = curve(7, (1, 0.9), (5, 0.3))
    lines = chart([best, curve(8, (1, 0.8))], best, axis="epochs", value="error").splitlines()

    assert lines[0] == "error by epochs (line: trial 7, the best; dots: the others)"
    assert lines[1].startswith("0.9 │")
    assert lines[-3].startswith("0.3 │")
    assert lines[-1].split() == ["1", "5", "epochs"]


def test_a_flat_curve_is_one_line() -> None:
    best = curve(0, (1, 0.5), (2, 0.5))
    rows = [line.partition("│")[2] for line in chart([best], best, axis="step", value="error").splitlines()]

    assert [len(set(row)) for row in rows if row] == [1]


def test_a_run_that_diverged_does_not_stretch_the_chart() -> None:
    curves = [curve(number, (1, 1.0), (2, 0.5)) for number in range(20)]
    diverged = curve(20, (1, 1.0), (2, 1e9))

    assert "1 │" in chart([*curves, diverged], curves[0], axis="epochs", value="error").splitlines()[1]


def test_a_wide_range_is_shown_by_its_logarithm_and_says_so() -> None:
    best = curve(0, (1, 1.0), (100, 0.001))

    assert chart([best], best, axis="epochs", value="error").endswith("100 epochs (logarithmic across and up)")
