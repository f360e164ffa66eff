"""Learning curves, the best one on top."""

from collections.abc import Mapping, Sequence
from typing import Any

from farthing.analysis.best import Best
from farthing.analysis.runs import Curve, breadth, curve_axis, learning_curves
from farthing.plots.look import (
    ACCENT,
    FAILED,
    add_legend,
    draw_expected,
    is_failed,
    set_plain_ticks,
    set_value_axis,
    set_whole_ticks,
)
from farthing.plots.scales import is_wide
from farthing.trials import History

Line = tuple[list[float], list[float]]

THIN, THICK = 0.4, 1.0
"""Widths of the line of a run that has least of the other fidelities, and of one that has all of them."""


def has_curves(history: History) -> bool:
    return any(len(curve.points) > 1 for curve in learning_curves(history))


def draw_curves(axes: Any, history: History, colours: Mapping[int, Any], *, best: Best) -> None:
    """A line for each run, over all the trials that carried it on; that of the best stands out.

    Rings mark pauses of a run that was continued; lines are as thick as the other fidelities are high.
    """
    curves = learning_curves(history)
    for curve in curves:
        width = THIN + (THICK - THIN) * breadth(history, curve.last)
        axes.plot(*_line(curve.points), color=colours[curve.last.number], linewidth=width, marker=".", markersize=3)
        axes.plot(*_line(curve.pauses), "o", color=colours[curve.last.number], markersize=5, markerfacecolor="white")
    _mark_failures(axes, curves)
    for curve in curves:
        if curve.includes(best.trial):
            label = f"trial {best.trial.number}, the best"
            axes.plot(*_line(curve.points), color=ACCENT, linewidth=2.0, label=label, zorder=4)
            axes.plot(*_line(curve.pauses), "o", color=ACCENT, markersize=5, markerfacecolor="white", zorder=5)
            _draw_prediction(axes, history, best, curve)
    _set_axes(axes, history, curves)
    axes.set_title("Learning curves (dark: better)")
    add_legend(axes)


def _draw_prediction(axes: Any, history: History, best: Best, curve: Curve) -> None:
    """The prediction for the best run at full fidelity, if it has not been trained that far."""
    if best.predicted is None or best.params != best.trial.params or history.is_full(best.trial):
        return
    full = history.problem.space.full_fidelity[curve.axis]
    (place, value), predicted = curve.points[-1], best.predicted
    axes.plot([place, full], [value, predicted.mean], ":", color=ACCENT, linewidth=1.2, zorder=4)
    draw_expected(axes, full, predicted, label="predicted at full fidelity")


def _set_axes(axes: Any, history: History, curves: Sequence[Curve]) -> None:
    places = [place for curve in curves for place, _ in curve.points]
    if is_wide(places):
        axes.set_xscale("log")
        set_plain_ticks(axes.xaxis, min(places), max(places))
    elif all(place == round(place) for place in places):
        set_whole_ticks(axes.xaxis)
    set_value_axis(axes, [value for curve in curves for _, value in curve.points], history)
    axes.set_xlabel(curve_axis(history.problem.space))
    axes.set_ylabel(history.problem.value)


def _mark_failures(axes: Any, curves: Sequence[Curve]) -> None:
    """A cross where a run that failed stopped."""
    ends = [curve.points[-1] for curve in curves if is_failed(curve.last)]
    axes.plot([x for x, _ in ends], [y for _, y in ends], "x", color=FAILED, markersize=5, markeredgewidth=1.2)


def _line(points: Sequence[tuple[float, float]]) -> Line:
    return [place for place, _ in points], [value for _, value in points]
