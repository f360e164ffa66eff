"""Puts the panels of a study together."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from farthing.analysis.best import MeasuredBest
from farthing.analysis.front import FrontChoice
from farthing.analysis.one_value import by_value
from farthing.analysis.text import found_best, short_params, short_prediction
from farthing.errors import InvalidArgument, NoResult
from farthing.plots import PlotKind
from farthing.plots.front import Pair, attainment_panels, draw_pair, pairs
from farthing.plots.look import MUTED, is_failed, merit, shading
from farthing.plots.panels import (
    draw_cache,
    draw_curves,
    draw_parameter,
    draw_progress,
    draw_spending,
    draw_stage_costs,
    has_curves,
    has_stages,
)
from farthing.session import session_of
from farthing.study import Study
from farthing.trials import History, Trial

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Panel = Callable[[Any], None]
"""Draws on the axes it is given."""


class Row(NamedTuple):
    """Panels beside each other, and how high they are in inches."""

    height: float
    panels: list[Panel]
    shares_value: bool = True


MOST_COLUMNS = 5
"""Of small panels in a row."""

FRONT_HEIGHT = 4.6
WIDTH, TITLE_HEIGHT, MAIN_HEIGHT, SPENDING_HEIGHT, STAGES_HEIGHT, SMALL_HEIGHT = 12.0, 0.7, 3.6, 2.5, 3.2, 2.5
"""Inches."""


def panels_figure(study: Study, *, kind: PlotKind) -> "Figure":
    """`all` panels, or only `progress`, `curves`, `fidelities`, `stages` or `params`."""
    best = found_best(session_of(study))
    if best is None:
        raise NoResult(f"A picture needs a trial that is done, got none of {study.name!r}. Run the study first.")
    if kind == "front" and best.choice is None:
        raise InvalidArgument(
            f"A picture of a front needs several objectives or limits, got {study.problem.aim}. Leave out the kind."
        )
    if kind == "stages" and not has_stages(study.history):
        raise NoResult(
            f"A picture of stages needs a pipeline's trials, got none of {study.name!r}. Leave out the kind."
        )
    if kind == "curves" and not has_curves(study.history):
        others = "stages" if has_stages(study.history) else "progress"
        raise NoResult(
            f"A picture of curves needs trials that report on their way, got none of {study.name!r}. "
            f"Report values as they come, or ask for {others!r}."
        )
    return _figure(study, best, kind=kind)


def _figure(study: Study, best: MeasuredBest, *, kind: PlotKind) -> "Figure":
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    from farthing.plots.picture import Picture

    history = study.history
    colours = shading(history)
    rows = _front_rows(history, best, kind=kind)
    for one in _by_objective(history):
        rows += _rows(_main_panels(one, _seen_by(one, best), colours=colours, kind=kind), MAIN_HEIGHT)
    rows += _rows(_spending_panels(study, best, kind=kind), SPENDING_HEIGHT)
    rows += _rows(_stage_panels(history, kind=kind), STAGES_HEIGHT, shares_value=False)
    for one in _by_objective(history):
        rows += _rows(_small_panels(one, best, colours=colours, kind=kind), SMALL_HEIGHT)
    heights = [row.height for row in rows]
    height = TITLE_HEIGHT + sum(heights)
    layout = ConstrainedLayoutEngine(rect=(0, 0, 1, sum(heights) / height), w_pad=0.08, h_pad=0.08)
    figure = Picture(figsize=(WIDTH, height), layout=layout)
    grid = figure.add_gridspec(len(rows), 1, height_ratios=heights)
    for place, row in enumerate(rows):
        _draw_row(figure, grid[place], row)
    _add_title(figure, study, best)
    if kind not in ("curves", "fidelities", "front"):  # their colours mean something else
        _add_scale(figure, history, colours)
    return figure


def _by_objective(history: History) -> list[History]:
    """The history; of several objectives one for each, because a panel is of one value."""
    if not history.problem.further:
        return [history]
    return [by_value(history, one.name, example="") for one in history.problem.objectives]


def _seen_by(history: History, best: MeasuredBest) -> MeasuredBest:
    """The recommendation with the value of that history."""
    name = history.problem.value
    return replace(best, value=best.values[name], predicted=best.predictions.get(name))


def _front_rows(history: History, best: MeasuredBest, *, kind: PlotKind) -> list[Row]:
    """Every two objectives, then what was attained for the cost; nothing for one value without limits."""
    choice = best.choice
    if choice is None or kind not in ("all", "progress", "front"):
        return []
    panels = [_pair_panel(choice, pair) for pair in pairs(choice.front)] if kind != "progress" else []
    return [
        *_rows(panels, FRONT_HEIGHT, shares_value=False),
        *_rows(attainment_panels(history), MAIN_HEIGHT, shares_value=False),
    ]


def _pair_panel(choice: FrontChoice, pair: Pair) -> Panel:
    return lambda axes: draw_pair(axes, choice.front, pair, best=choice.point)


def _main_panels(history: History, best: MeasuredBest, *, colours: Any, kind: PlotKind) -> list[Panel]:
    panels: list[Panel] = []
    if best.choice is None and kind in ("all", "progress"):
        panels.append(lambda axes: draw_progress(axes, history, colours, best=best))
    if kind == "curves" or (kind == "all" and has_curves(history)):
        panels.append(lambda axes: draw_curves(axes, history, merit(history), best=best))
    return panels


def _spending_panels(study: Study, best: MeasuredBest, *, kind: PlotKind) -> list[Panel]:
    history = study.history
    has_fidelities = bool(history.problem.space.fidelities)
    if kind == "fidelities" and not has_fidelities:
        raise InvalidArgument(
            f"A picture of fidelities needs a space that has some, got {study.name!r} without. Leave out the kind."
        )
    if not (has_fidelities and kind in ("all", "fidelities")):
        return []
    return [lambda axes: draw_spending(axes, history, merit(history), best=best.trial)]


def _small_panels(history: History, best: MeasuredBest, *, colours: Any, kind: PlotKind) -> list[Panel]:
    if kind not in ("all", "params"):
        return []
    names = history.problem.space.parameters
    return [_parameter_panel(history, colours, name=name, best=best.trial) for name in names]


def _stage_panels(history: History, *, kind: PlotKind) -> list[Panel]:
    if kind not in ("all", "stages") or not has_stages(history):
        return []
    return [lambda axes: draw_stage_costs(axes, history), lambda axes: draw_cache(axes, history)]


def _parameter_panel(history: History, colours: Any, *, name: str, best: Trial) -> Panel:
    return lambda axes: draw_parameter(axes, history, colours, name=name, best=best)


def _rows(panels: list[Panel], height: float, *, shares_value: bool = True) -> list[Row]:
    """The panels in rows of that height; a last row that is not full has empty places at its end."""
    if not panels:
        return []
    count = math.ceil(len(panels) / MOST_COLUMNS)
    columns = math.ceil(len(panels) / count)
    places = [*panels, *[_leave_empty] * (count * columns - len(panels))]
    starts = range(0, len(places), columns)
    return [Row(height, places[start : start + columns], shares_value=shares_value) for start in starts]


def _leave_empty(axes: Any) -> None:
    axes.set_axis_off()


def _draw_row(figure: Any, where: Any, row: Row) -> None:
    """Draws panels beside each other. If they share the value's axis, it is labelled at the left."""
    first: Any = None
    grid = where.subgridspec(1, len(row.panels))
    for place, panel in enumerate(row.panels):
        axes = figure.add_subplot(grid[place], sharey=first)
        panel(axes)
        if first is not None:
            axes.tick_params(labelleft=False)
            axes.set_ylabel("")
        first = axes if row.shares_value and first is None else first


def _add_title(figure: Any, study: Study, best: MeasuredBest) -> None:
    ledger = study.ledger
    is_predicted = best.predicted is not None and not study.history.is_full(best.trial)
    value = f"predicted {short_prediction(best.predicted)}" if best.predicted and is_predicted else f"{best.value:.4g}"
    found = f"{study.problem.value} {value}"
    if study.problem.further and best.choice is not None:
        found = f"a front of {len(best.choice.front)}"
    title = f"{study.name}: {found} after {ledger.total:.4g} {ledger.unit}"
    others = "" if best.choice is None else f"{short_params(best.values)}  "
    chosen = f"trial {best.trial.number}  {others}{short_params({**best.trial.fidelity, **best.params})}"
    height = figure.get_size_inches()[1]
    figure.text(0.1 / WIDTH, 1 - 0.1 / height, title, va="top", fontsize=13, fontweight="bold")
    figure.text(0.1 / WIDTH, 1 - 0.4 / height, chosen, va="top", fontsize=9, color=MUTED)


def _add_scale(figure: Any, history: History, colours: Any) -> None:
    """The legend of colours, sizes and crosses, at the right of the title."""
    height = figure.get_size_inches()[1]
    axes = figure.add_axes((1 - 1.8 / WIDTH, 1 - 0.26 / height, 1.4 / WIDTH, 0.1 / height))
    figure.colorbar(colours, cax=axes, orientation="horizontal", ticks=[]).outline.set_visible(False)
    words = {"transform": axes.transAxes, "va": "center", "fontsize": 8}
    axes.text(-0.05, 0.5, "first trial", ha="right", **words)
    axes.text(1.05, 0.5, "last", ha="left", **words)
    meanings = ["large: trained further"] if history.problem.space.fidelities else []
    if any(is_failed(trial) for trial in history):
        meanings.append("×: failed")
    axes.text(1.0, -1.9, ",  ".join(meanings), ha="right", color=MUTED, **words)
