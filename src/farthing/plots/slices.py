"""Slices through a model: what it expects along one parameter, and the trials around."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from farthing.analysis.diagnosis import Diagnosis, Slice
from farthing.models.linalg import Array
from farthing.plots.look import ACCENT, SHADES, is_failed, mark_failures, set_value_axis
from farthing.plots.parameters import places, set_parameter_axis
from farthing.plots.scales import is_wide
from farthing.space import Choice
from farthing.space.parameters import Parameter
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
