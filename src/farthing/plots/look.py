"""How all panels look: one palette, light grids, no frames."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from farthing.analysis.runs import last_of_runs, ranked_runs
from farthing.trials import History, Prediction, State, Trial

INK, MUTED, GRID = "#22313f", "#7b8794", "#e6e9ed"
ACCENT, FAILED = "#d1495b", "#d1495b"
SHADES = ("#c9dfe3", "#7db4c0", "#2f7f95", "#16425b")
"""From the first trial to the last."""

STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 8,
    "axes.labelsize": 9,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.edgecolor": "none",
    "legend.framealpha": 0.85,
    "legend.fontsize": 8,
}

ROOM = 200.0
"""Up to this factor between its ends a logarithmic axis has room for labels within a decade."""

SMALLEST, LARGEST = 10.0, 40.0
"""Areas of the dots of a trial that barely began and of a full one."""

OUTLIERS = 0.02
"""The part of the values, at the bad end, for which a linear axis is not stretched: runs that diverged."""


def shading(history: History) -> Any:
    """From a trial's number to its colour."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    colours = LinearSegmentedColormap.from_list("farthing", SHADES)
    return ScalarMappable(Normalize(0, max(1, len(history) - 1)), colours)


def merit(history: History) -> dict[int, Any]:
    """The colour of each run by the number of its last trial: the darker, the better its value is among the runs."""
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("farthing", SHADES)
    if not history.problem.is_simple:
        ranked = ranked_runs(history)
        return {trial.number: MUTED for trial in last_of_runs(history)} | {
            trial.number: colours(1.0 - place / max(1, len(ranked) - 1)) for place, trial in enumerate(ranked)
        }
    runs = last_of_runs(history)
    losses = sorted({history.loss(trial.points[-1].value or 0.0) for trial in runs if trial.points}, reverse=True)
    steps = max(1, len(losses) - 1)
    return {
        trial.number: colours(losses.index(history.loss(trial.points[-1].value or 0.0)) / steps)
        if trial.points
        else MUTED
        for trial in runs
    }


def set_value_axis(axes: Any, values: Sequence[float], history: History) -> None:
    """The same vertical axis for every panel: what is measured decides its scale, outliers do not."""
    if not values:
        return
    if is_wide(values):
        axes.set_yscale("log")
        set_plain_ticks(axes.yaxis, min(values), max(values))
        return
    ranked = sorted(values, key=history.loss)
    kept = ranked[: max(2, round((1 - OUTLIERS) * len(ranked)))]
    margin = 0.06 * (max(kept) - min(kept)) or 0.05 * abs(kept[0]) or 0.5
    axes.set_ylim(min(kept) - margin, max(kept) + margin)


BELOW = -0.17
"""The place of a legend below the axes, in units of their height: under the label of the axis."""


def add_legend(axes: Any) -> None:
    """The legend below the axes, where it hides no data."""
    handles, _ = axes.get_legend_handles_labels()
    if handles:
        columns = {"ncols": min(3, len(handles)), "columnspacing": 1.4, "handlelength": 1.6}
        axes.legend(loc="upper left", bbox_to_anchor=(0.0, BELOW), borderaxespad=0.0, **columns)


def set_whole_ticks(axis: Any) -> None:
    """There is no trial two and a half, nor such an epoch."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True))


def set_plain_ticks(axis: Any, low: float, high: float) -> None:
    """Labels a logarithmic axis in plain numbers: every decade, with 2 and 5 in between where there is room."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high / low < ROOM else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: plain_number(value)))
    axis.set_minor_formatter(NullFormatter())


def plain_number(value: float) -> str:
    """0.02, 500, and 1e-5 where that is shorter than its zeros."""
    text = f"{value:g}" if 1e-3 <= abs(value) < 1e5 else f"{value:.0e}"
    return text.replace("e-0", "e-").replace("e+0", "e")


def is_failed(trial: Trial) -> bool:
    return trial.state in (State.FAILED, State.LOST)


def area(history: History, trial: Trial) -> float:
    """Of the dot of a trial: the larger, the further it went."""
    return SMALLEST + (LARGEST - SMALLEST) * math.sqrt(history.reach(trial))


def draw_expected(axes: Any, place: float, predicted: Prediction, *, label: str) -> None:
    """A diamond at the expected value, with one standard deviation up and down where it is known."""
    axes.errorbar(
        [place],
        [predicted.mean],
        yerr=predicted.deviation,
        fmt="D",
        color=ACCENT,
        markersize=5,
        markerfacecolor="white",
        elinewidth=1.2,
        capsize=3,
        zorder=5,
        label=label,
        clip_on=False,
    )


def mark_failures(axes: Any, places: Sequence[Any], history: History) -> None:
    """A cross at the bad edge for each trial that has no value to be drawn at."""
    if not places:
        return  # an empty line that is not clipped takes room at the figure's corner
    heights = [0.985 if history.problem.minimize else 0.015] * len(places)
    transform = axes.get_xaxis_transform()
    axes.plot(places, heights, "x", color=FAILED, markersize=5, markeredgewidth=1.2, transform=transform, clip_on=False)


# ------------------------------------------------------------
# Whether numbers are better seen by their logarithms.


WIDE = 30.0
"""A positive range whose ends differ by more than this factor is drawn on a logarithmic axis."""


def is_wide(numbers: Iterable[float]) -> bool:
    """Whether a logarithmic axis shows these numbers better than a linear one."""
    ordered = sorted(numbers)
    return bool(ordered) and ordered[0] > 0 and ordered[-1] / ordered[0] > WIDE


def scale_for(numbers: Iterable[float]) -> Callable[[float], float]:
    """From a number to its place on the axis that suits them all."""
    return math.log10 if is_wide(numbers) else float
