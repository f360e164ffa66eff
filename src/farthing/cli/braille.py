"""Curves in a terminal, drawn with braille dots: two across and four down in each character."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

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
