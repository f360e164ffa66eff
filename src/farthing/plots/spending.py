"""The fidelities of each configuration: how far it was trained, in which steps, and on how much data."""

from collections.abc import Mapping
from typing import Any

from farthing.analysis.runs import breadth, curve_axis, learning_curves
from farthing.plots.look import ACCENT
from farthing.trials import History, Trial

FEWEST = 12
"""Places for bars; of fewer runs the bars would be walls."""

WIDEST, THINNEST = 0.86, 0.1
"""Widths of the bars of a run that has all of its other fidelities and of one that has next to none, where 1 is the way
to the next bar."""


def draw_spending(axes: Any, history: History, colours: Mapping[int, Any], *, best: Trial) -> None:
    """A bar for each run in the order in which they were begun, as high as it came, with a line where it was continued.

    Bars are as wide as the share of the fidelities that they are not high in, so that their area is the work.
    """
    space = history.problem.space
    axis = curve_axis(space)
    runs = sorted(learning_curves(history), key=lambda curve: curve.trials[0].number)
    widths = [max(THINNEST, WIDEST * breadth(history, run.last)) for run in runs]
    axes.bar(
        range(len(runs)),
        [run.points[-1][0] for run in runs],
        widths,
        color=[colours[run.last.number] for run in runs],
        edgecolor=[ACCENT if run.includes(best) else "none" for run in runs],
        linewidth=1.2,
    )
    for place, (run, width) in enumerate(zip(runs, widths, strict=True)):
        heights = [height for height, _ in run.pauses]
        axes.hlines(heights, place - width / 2, place + width / 2, color="white", linewidth=1.2)
        if run.includes(best):
            _name(axes, f"trial {best.number}", place, run.points[-1][0])
    others = [name for name in space.fidelities if name != axis]
    wide = f"wide: more {', '.join(others)}, " if others else ""
    axes.set_title(f"What each run was given ({wide}dark: better, line: continued there)")
    axes.set_xlim(-0.7, max(len(runs), FEWEST) - 0.3)
    axes.set_ylim(0, 1.1 * space.full_fidelity[axis])
    axes.set_xticks([])
    axes.grid(visible=False, axis="x")
    axes.set_xlabel("runs in the order in which they were begun")
    axes.set_ylabel(axis)


def _name(axes: Any, text: str, place: float, height: float) -> None:
    where = {"xytext": (0, 3), "textcoords": "offset points", "ha": "center"}
    axes.annotate(text, (place, height), fontsize=8, color=ACCENT, **where)
