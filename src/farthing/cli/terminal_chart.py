"""The learning curves of a study as a small chart of text, readable without colour."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from farthing.analysis.runs import Curve
from farthing.cli.braille import Canvas, Window
from farthing.plots.scales import scale_for

COLUMNS, ROWS = 64, 12
OUTLIERS = 0.05
"""The part of the values, at either end, for which the chart is not stretched: runs that diverged."""


@dataclass(frozen=True)
class Range:
    """Range and scale of an axis: the best curve is always within it, outliers of the others may not be."""

    low: float
    high: float
    scale: Callable[[float], float]


def chart(curves: Sequence[Curve], best: Curve | None, *, axis: str, value: str) -> str:
    """The best curve as a line, the measured points of all others as dots."""
    along = _range([place for curve in curves for place, _ in curve.points])
    up = _value_range(curves, best)
    canvas = Canvas(_window(along, up), columns=COLUMNS, rows=ROWS)
    for curve in curves:
        canvas.dots(_scaled(curve, along, up))
    if best is not None:
        canvas.line(_scaled(best, along, up))
    return "\n".join([_title(best, axis=axis, value=value), *_framed(canvas.rows(), along, up, axis=axis)])


def _range(numbers: Sequence[float]) -> Range:
    return Range(min(numbers), max(numbers), scale_for(numbers))


def _value_range(curves: Sequence[Curve], best: Curve | None) -> Range:
    values = sorted(value for curve in curves for _, value in curve.points)
    cut = int(OUTLIERS * len(values))
    return _range([*values[cut : len(values) - cut], *(value for _, value in (best.points if best else ()))])


def _window(along: Range, up: Range) -> Window:
    return Window(along.scale(along.low), along.scale(along.high), up.scale(up.low), up.scale(up.high))


def _scaled(curve: Curve, along: Range, up: Range) -> list[tuple[float, float]]:
    return [(along.scale(place), up.scale(min(max(value, up.low), up.high))) for place, value in curve.points]


def _title(best: Curve | None, *, axis: str, value: str) -> str:
    line = f" (line: trial {best.last.number}, the best; dots: the others)" if best else ""
    return f"{value} by {axis}{line}"


def _framed(rows: Sequence[str], along: Range, up: Range, *, axis: str) -> list[str]:
    top, bottom = f"{up.high:.4g}", f"{up.low:.4g}"
    left, right = f"{along.low:g}", f"{along.high:g} {axis}{_note(along, up)}"
    margin = max(len(top), len(bottom))
    labels = [top, *[""] * (len(rows) - 2), bottom]
    framed = [f"{label:>{margin}} │{row}".rstrip("\u2800") for label, row in zip(labels, rows, strict=True)]
    under = " " * (margin + 2)
    return [*framed, f"{' ' * margin} └{'─' * COLUMNS}", f"{under}{left}{right:>{COLUMNS - len(left)}}"]


def _note(along: Range, up: Range) -> str:
    """Which axes are logarithmic."""
    logarithmic = [name for name, axis in (("across", along), ("up", up)) if axis.scale is not float]
    return f" (logarithmic {' and '.join(logarithmic)})" if logarithmic else ""
