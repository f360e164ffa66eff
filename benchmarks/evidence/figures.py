"""The figures of the page, as SVG that comes out byte for byte the same from the same records.

Text stays text, ids are hashed with a fixed salt, no date is written, and the layout is computed from sizes that are
given here, not from what the machine has installed.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.spread import Spread

COLOURS = ("#00796b", "#d95f02", "#7570b3", "#e7298a", "#66a61e", "#e6ab02", "#a6761d", "#1f78b4", "#666666")
"""The first one is for ours. Colour Brewer's Dark2, and a blue."""

SETTINGS: Any = {
    "svg.hashsalt": "farthing",
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "font.size": 8.0,
    "axes.titlesize": 9.0,
    "legend.fontsize": 8.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "path.simplify": False,
}
PANEL = (3.1, 2.4)
"""Width and height of a panel in inches."""

LEFT, RIGHT, TOP, BOTTOM = 0.55, 0.15, 0.3, 0.42
"""Room around the axes of a panel, in inches."""

LEGEND_ROW = 0.2
LEGEND_COLUMNS = 4


@dataclass(frozen=True)
class Line:
    """A median and its band along the cost; `name` says which colour it has in every panel of a figure."""

    name: str
    x: tuple[float, ...]
    spreads: tuple[Spread, ...]


@dataclass(frozen=True)
class Panel:
    """`points` are drawn as markers joined by lines, for a few places; others are continuous along the cost."""

    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    log_x: bool = False
    log_y: bool = False
    points: bool = False


def draw(panels: Sequence[Panel], path: Path, *, columns: int = 3) -> None:
    """Writes one figure of several panels with a legend below them."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(line.name for panel in panels for line in panel.lines))
    colour = {name: COLOURS[place % len(COLOURS)] for place, name in enumerate(names)}
    columns = min(columns, len(panels))
    rows = math.ceil(len(panels) / columns)
    legend = LEGEND_ROW * math.ceil(len(names) / LEGEND_COLUMNS) + 0.1
    width, height = max(columns, 2) * PANEL[0], rows * PANEL[1] + legend
    with rc_context(SETTINGS):
        figure = Figure(figsize=(width, height))
        FigureCanvasSVG(figure)
        for panel, (row, column) in zip(panels, _places(rows, columns), strict=False):
            bottom = legend + (rows - 1 - row) * PANEL[1] + BOTTOM
            box = (column * PANEL[0] + LEFT, bottom, PANEL[0] - LEFT - RIGHT, PANEL[1] - TOP - BOTTOM)
            scaled = (box[0] / width, box[1] / height, box[2] / width, box[3] / height)
            _draw_panel(figure.add_axes(scaled), panel, colour)
        handles = [_handle(colour[name]) for name in names]
        figure.legend(handles, names, loc="lower left", ncols=LEGEND_COLUMNS, frameon=False)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def _places(rows: int, columns: int) -> Iterator[tuple[int, int]]:
    return ((row, column) for row in range(rows) for column in range(columns))


def _handle(colour: str) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=colour)


def _draw_panel(axes: Any, panel: Panel, colour: Mapping[str, str]) -> None:
    for line in panel.lines:
        kept = [(x, spread) for x, spread in zip(line.x, line.spreads, strict=True) if math.isfinite(spread.median)]
        if not kept:
            continue
        xs = [x for x, _ in kept]
        middle, low, high = zip(*(_drawn(spread, panel.log_y) for _, spread in kept), strict=True)
        marker = {"marker": "o", "markersize": 3} if panel.points else {}
        axes.plot(xs, middle, color=colour[line.name], linewidth=1.3, **marker)
        axes.fill_between(xs, low, high, color=colour[line.name], alpha=0.15, linewidth=0)
    axes.set(title=panel.title, xlabel=panel.x_label, ylabel=panel.y_label)
    axes.set_xscale("log" if panel.log_x else "linear")
    axes.set_yscale("log" if panel.log_y else "linear")


LEAST = 1e-8
"""Regrets below this are drawn as this where the scale is logarithmic."""


def _drawn(spread: Spread, is_log: bool) -> tuple[float, float, float]:
    """Median and band; a quartile without a recommendation leaves the band at the median."""
    parts = (spread.median, spread.low, spread.high if math.isfinite(spread.high) else spread.median)
    return tuple(max(LEAST, part) for part in parts) if is_log else parts  # type: ignore[return-value]
