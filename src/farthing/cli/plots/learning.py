"""Learning curves, the best one on top."""

from collections.abc import Sequence
from typing import Any

from farthing.cli.curves import Curve, curve_axis, learning_curves
from farthing.cli.plots.look import ACCENT, FAILED, is_failed, set_plain_ticks, set_value_axis
from farthing.cli.scales import is_wide
from farthing.trials import History, Trial

Line = tuple[list[float], list[float]]


def has_curves(history: History) -> bool:
    return any(len(curve.points) > 1 for curve in learning_curves(history))


def draw_curves(axes: Any, history: History, colours: Any, *, best: Trial) -> None:
    """The run of the `best` trial stands out."""
    curves = learning_curves(history)
    for curve in curves:
        axes.plot(*_line(curve), color=colours.to_rgba(curve.last.number), linewidth=0.8, marker=".", markersize=3)
    _mark_failures(axes, curves)
    for curve in curves:
        if curve.includes(best):
            axes.plot(*_line(curve), color=ACCENT, linewidth=2.0, label=f"trial {best.number}, the best", zorder=4)
    _set_axes(axes, history, curves)
    axes.set_title("Learning curves")
    axes.legend(loc="upper right" if history.problem.minimize else "lower right")


def _set_axes(axes: Any, history: History, curves: Sequence[Curve]) -> None:
    places = [place for curve in curves for place, _ in curve.points]
    if is_wide(places):
        axes.set_xscale("log")
        set_plain_ticks(axes.xaxis, min(places), max(places))
    set_value_axis(axes, [value for curve in curves for _, value in curve.points], history)
    axes.set_xlabel(curve_axis(history.problem.space))
    axes.set_ylabel(history.problem.value)


def _mark_failures(axes: Any, curves: Sequence[Curve]) -> None:
    """A cross where a run that failed stopped."""
    ends = [curve.points[-1] for curve in curves if is_failed(curve.last)]
    axes.plot([x for x, _ in ends], [y for _, y in ends], "x", color=FAILED, markersize=5, markeredgewidth=1.2)


def _line(curve: Curve) -> Line:
    return [place for place, _ in curve.points], [value for _, value in curve.points]
