"""The diagnosis of a study: predictions, confidence, importance, and slices through the best trial."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from farthing.analysis.diagnosis import Diagnosis, Slice, diagnose
from farthing.analysis.model import REACH
from farthing.analysis.one_value import by_value
from farthing.analysis.text import short_params
from farthing.models.gp import calibration
from farthing.models.linalg import Array, BoolArray
from farthing.plots.figure import (
    MAIN_HEIGHT,
    MOST_COLUMNS,
    SMALL_HEIGHT,
    TITLE_HEIGHT,
    WIDTH,
)
from farthing.plots.look import (
    ACCENT,
    INK,
    MUTED,
    SHADES,
    add_legend,
    is_failed,
    is_wide,
    mark_failures,
    set_plain_ticks,
    set_value_axis,
)
from farthing.plots.panels import places, set_parameter_axis
from farthing.space import Choice
from farthing.space.parameters import Parameter
from farthing.study import Study
from farthing.trials import History

PALE, _, MIDDLE, DARK = SHADES

MOST_ROOM = 0.3
"""How far the axis goes for the bands, in units of its length without them."""


def draw_slice(axes: Any, part: Slice, diagnosis: Diagnosis, history: History) -> None:
    """The expected value with its uncertainty, and a dot for each trial: the darker, the more it says about this."""
    parameter = history.problem.space.parameters[part.parameter]
    _draw_expected(axes, part, parameter)
    _draw_trials(axes, part, parameter, diagnosis, history)
    set_parameter_axis(axes, parameter)
    failed = [trial for trial in history if is_failed(trial) and part.parameter in trial.params]
    mark_failures(axes, places(failed, parameter, part.parameter), history)
    set_model_axis(axes, diagnosis, history)
    axes.set_title(part.parameter)
    axes.set_ylabel(history.problem.value)


def set_model_axis(axes: Any, diagnosis: Diagnosis, history: History) -> None:
    """The same vertical axis for all slices: what was observed decides its scale, and the bands get some room."""
    set_value_axis(axes, diagnosis.observed, history)
    if is_wide(diagnosis.observed):
        axes.set_ylim(min(diagnosis.observed) / 1.5, max(diagnosis.observed) * 1.5)
        return
    low, high = axes.get_ylim()
    room = MOST_ROOM * (high - low)
    lowest = min(min(part.low) for part in diagnosis.slices)
    highest = max(max(part.high) for part in diagnosis.slices)
    axes.set_ylim(max(low - room, min(low, lowest)), min(high + room, max(high, highest)))


def _draw_expected(axes: Any, part: Slice, parameter: Parameter) -> None:
    if isinstance(parameter, Choice):
        where = np.array([parameter.index_of(value) for value in part.values])
        axes.bar(where, np.subtract(part.high, part.low), bottom=part.low, width=0.6, color=PALE, alpha=0.7)
        axes.hlines(part.expected, where - 0.3, where + 0.3, color=MIDDLE, linewidth=1.8)
        return
    axes.fill_between(part.values, part.low, part.high, color=PALE, alpha=0.7, linewidth=0)
    axes.plot(part.values, part.expected, color=MIDDLE, linewidth=1.8)


def _draw_trials(axes: Any, part: Slice, parameter: Parameter, diagnosis: Diagnosis, history: History) -> None:
    """Near trials are drawn over far ones, the best over all."""
    active = [row for row, number in enumerate(diagnosis.trials) if part.parameter in history[number].params]
    order = sorted(active, key=lambda row: (diagnosis.trials[row] == diagnosis.best, part.nearness[row]))
    trials = [history[diagnosis.trials[row]] for row in order]
    is_best = [trial.number == diagnosis.best for trial in trials]
    axes.scatter(
        places(trials, parameter, part.parameter),
        [diagnosis.observed[row] for row in order],
        s=[30 if best else 16 for best in is_best],
        c=_colours([part.nearness[row] for row in order]),
        edgecolors=[ACCENT if best else "white" for best in is_best],
        linewidths=[1.8 if best else 0.4 for best in is_best],
        zorder=3,
    )


def _colours(nearness: Sequence[float]) -> Array:
    """Dark for trials on the slice, nearly transparent for those that say nothing about it."""
    from matplotlib.colors import to_rgba

    colours = np.tile(to_rgba(DARK), (len(nearness), 1))
    colours[:, 3] = 0.12 + 0.88 * np.array(nearness)
    return colours


# ------------------------------------------------------------
# The whole picture.

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEWEST_BARS, MOST_BARS = 6, 12
"""Places for parameters among those that matter; of more parameters, the least important are left out."""

LONGEST_SUBTITLE = 110
"""Characters that fit beside the legend."""


def model_figure(study: Study, *, of: str | None = None) -> "Figure":
    """Raises `NoResult` where the study has too few values for a model."""
    history = by_value(study.history, of, example=f"study.plot('model', of={study.problem.value!r})")
    return _figure(study, history, diagnose(history))


def _figure(study: Study, history: History, diagnosis: Diagnosis) -> "Figure":
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    from farthing.plots.picture import Picture

    rows = math.ceil(len(diagnosis.slices) / MOST_COLUMNS)
    heights = [MAIN_HEIGHT, *[SMALL_HEIGHT] * rows]
    height = TITLE_HEIGHT + sum(heights)
    layout = ConstrainedLayoutEngine(rect=(0, 0, 1, sum(heights) / height), w_pad=0.08, h_pad=0.08)
    figure = Picture(figsize=(WIDTH, height), layout=layout)
    grid = figure.add_gridspec(len(heights), 1, height_ratios=heights)
    judged = grid[0].subgridspec(1, 3, width_ratios=(1.2, 1.0, 1.2))
    draw_predictions(figure.add_subplot(judged[0]), diagnosis)
    draw_calibration(figure.add_subplot(judged[1]), diagnosis)
    draw_importance(figure.add_subplot(judged[2]), diagnosis)
    _draw_slices(figure, [grid[row] for row in range(1, len(heights))], diagnosis, history)
    _add_title(figure, study, diagnosis)
    return figure


def draw_predictions(axes: Any, diagnosis: Diagnosis) -> None:
    """Each trial's value against what the model expects of it from the others."""
    low, high = _limits(diagnosis)
    axes.plot([low, high], [low, high], color=MUTED, linewidth=0.8)
    observed = np.array(diagnosis.observed)
    is_expected = (observed >= diagnosis.low) & (observed <= diagnosis.high)
    _draw_predicted(axes, diagnosis, is_expected, color=MIDDLE, label="as expected")
    _draw_predicted(axes, diagnosis, ~is_expected, color=ACCENT, label="outside the 95 % interval")
    if is_wide(diagnosis.observed):
        for scale, axis in ((axes.set_xscale, axes.xaxis), (axes.set_yscale, axes.yaxis)):
            scale("log")
            set_plain_ticks(axis, low, high)
    axes.set(xlim=(low, high), ylim=(low, high))
    axes.set(
        title="Each trial, predicted from the others", xlabel=f"{diagnosis.value} of the trial", ylabel="predicted"
    )
    add_legend(axes)


def _draw_predicted(axes: Any, diagnosis: Diagnosis, some: BoolArray, *, color: str, label: str) -> None:
    observed, predicted = np.array(diagnosis.observed)[some], np.array(diagnosis.predicted)[some]
    reach = np.stack([predicted - np.array(diagnosis.low)[some], np.array(diagnosis.high)[some] - predicted])
    look = {"fmt": "o", "markersize": 4, "markeredgewidth": 0, "elinewidth": 0.8, "alpha": 0.85}
    if observed.size:
        axes.errorbar(observed, predicted, yerr=reach, color=color, label=label, **look)


def _limits(diagnosis: Diagnosis) -> tuple[float, float]:
    if is_wide(diagnosis.observed):
        return min(diagnosis.observed) / 1.5, max(diagnosis.observed) * 1.5
    numbers = [*diagnosis.observed, *diagnosis.predicted]
    margin = 0.08 * (max(numbers) - min(numbers)) or 0.5
    return min(numbers) - margin, max(numbers) + margin


def draw_calibration(axes: Any, diagnosis: Diagnosis) -> None:
    """The share of values inside the central interval of every level, and where chance may put it."""
    residuals = np.array(diagnosis.residuals)
    levels = np.linspace(0.0, 1.0, 101)
    chance = REACH * np.sqrt(levels * (1 - levels) / residuals.size)
    axes.fill_between(levels, levels - chance, levels + chance, color=PALE, alpha=0.7, linewidth=0, label="by chance")
    axes.plot(levels, levels, color=MUTED, linewidth=0.8)
    axes.step(levels, calibration(residuals, levels), where="post", color=MIDDLE, linewidth=1.8, label="this model")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.set(title="Are its intervals right?", xlabel="values that its interval should hold", ylabel="values inside")
    add_legend(axes)


def draw_importance(axes: Any, diagnosis: Diagnosis) -> None:
    """A bar for each of the parameters that matter most."""
    names, shares = zip(*list(diagnosis.importance.items())[:MOST_BARS], strict=True)
    bars = axes.barh(names, shares, color=MIDDLE, height=0.62)
    axes.bar_label(bars, [f"{share:.0%}" for share in shares], padding=4, fontsize=8, color=INK)
    axes.set_ylim(max(len(names), FEWEST_BARS) - 0.5, -0.5)
    axes.set_xlim(0, 1.12 * (max(shares) or 1.0))
    axes.set_xticks([])
    axes.grid(visible=False)
    axes.tick_params(left=False)
    axes.spines["bottom"].set_visible(False)
    axes.set_title("What matters")


def _draw_slices(figure: Any, rows: list[Any], diagnosis: Diagnosis, history: History) -> None:
    """Slices in rows; they share the value's axis, which is labelled at the left."""
    columns = math.ceil(len(diagnosis.slices) / len(rows))
    places = [place for row in rows for place in row.subgridspec(1, columns)]
    first = None
    for number, part in enumerate(diagnosis.slices):
        axes = figure.add_subplot(places[number], sharey=first)
        draw_slice(axes, part, diagnosis, history)
        if number % columns:
            axes.tick_params(labelleft=False)
            axes.set_ylabel("")
        first = first or axes


def _add_title(figure: Any, study: Study, diagnosis: Diagnosis) -> None:
    height = figure.get_size_inches()[1]
    what = "learning curves, at full fidelity" if diagnosis.is_by_curves else "trials"
    value = "" if study.problem.is_simple else f"{diagnosis.value} of "
    title = f"{study.name}: a model of {value}{len(diagnosis.trials)} {what}"
    best = f"slices through trial {diagnosis.best}, the best:  {short_params(study.history[diagnosis.best].params)}"
    subtitle = best if len(best) <= LONGEST_SUBTITLE else best[: LONGEST_SUBTITLE - 1] + "…"
    figure.text(0.1 / WIDTH, 1 - 0.1 / height, title, va="top", fontsize=13, fontweight="bold")
    figure.text(0.1 / WIDTH, 1 - 0.4 / height, subtitle, va="top", fontsize=9, color=MUTED)
    failed = ",  ×: failed" if diagnosis.failed else ""
    meanings = ("line and band: expected value, 95 % interval", f"pale dots: trials far from the slice{failed}")
    for place, meaning in enumerate(meanings):
        top = 1 - (0.14 + 0.18 * place) / height
        figure.text(1 - 0.1 / WIDTH, top, meaning, va="top", ha="right", fontsize=8, color=MUTED)
