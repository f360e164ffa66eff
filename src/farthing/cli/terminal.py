"""Tables and charts of plain text, readable without colour."""

import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from farthing.analysis.runs import Curve
from farthing.plots.look import scale_for
from farthing.scalars import is_number

Row = Sequence[str]


def aligned(header: Row, rows: Sequence[Row]) -> str:
    """Columns two spaces apart, numbers to the right; lines are cut to a terminal's width, not to that of a pipe."""
    table = [list(header), *map(list, rows)]
    columns = [_column(cells) for cells in zip(*table, strict=True)]
    lines = ["  ".join(cells).rstrip() for cells in zip(*columns, strict=True)]
    return "\n".join(_cut(line) for line in lines)


def _column(cells: Sequence[str]) -> list[str]:
    width = max(map(len, cells))
    is_numeric = all(is_number(cell) for cell in cells[1:] if cell)
    return [f"{cell:>{width}}" if is_numeric else f"{cell:<{width}}" for cell in cells]


def _cut(line: str) -> str:
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else len(line)
    return line if len(line) <= width else line[: width - 1] + "…"


# ------------------------------------------------------------
# Curves in a terminal, drawn with braille dots: two across and four down in each character.


Points = Sequence[tuple[float, float]]

BLANK = 0x2800
DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""The bit of each dot, by column and then by row from the top."""


@dataclass(frozen=True)
class Window:
    """The part of the plane that a chart shows; what lies outside is drawn on its edge."""

    left: float
    right: float
    bottom: float
    top: float

    def place(self, point: tuple[float, float], *, width: int, height: int) -> tuple[int, int]:
        """The dot, counted from the top left, of a point."""
        across = _fraction(point[0], self.left, self.right)
        up = _fraction(point[1], self.bottom, self.top)
        return round(across * (width - 1)), round((1 - up) * (height - 1))


class Canvas:
    """A grid of characters, each of which has eight dots."""

    def __init__(self, window: Window, *, columns: int, rows: int) -> None:
        self._window = window
        self._width, self._height = 2 * columns, 4 * rows
        self._cells = [[0] * columns for _ in range(rows)]

    def dots(self, points: Points) -> None:
        """Marks the points alone."""
        for point in points:
            self._set(*self._place(point))

    def line(self, points: Points) -> None:
        """Joins the points by straight lines."""
        self.dots(points)
        places = [self._place(point) for point in points]
        for (x0, y0), (x1, y1) in pairwise(places):
            steps = max(abs(x1 - x0), abs(y1 - y0))
            for step in range(1, steps):
                self._set(round(x0 + (x1 - x0) * step / steps), round(y0 + (y1 - y0) * step / steps))

    def rows(self) -> list[str]:
        return ["".join(chr(BLANK + cell) for cell in row) for row in self._cells]

    def _place(self, point: tuple[float, float]) -> tuple[int, int]:
        return self._window.place(point, width=self._width, height=self._height)

    def _set(self, x: int, y: int) -> None:
        self._cells[y // 4][x // 2] |= DOTS[x % 2][y % 4]


def _fraction(value: float, low: float, high: float) -> float:
    return min(max((value - low) / (high - low), 0.0), 1.0) if high > low else 0.5


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
