"""Slices through a model: what it expects along one parameter, and the trials around."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from farthing.cli.plots.look import ACCENT, SHADES, set_value_axis
from farthing.cli.plots.parameters import places, set_parameter_axis
from farthing.cli.scales import is_wide
from farthing.models.linalg import Array
from farthing.space import Choice
from farthing.space.parameters import Parameter
from farthing.study.diagnosing import Diagnosis
from farthing.study.slicing import Slice
from farthing.trials import History

PALE, _, MIDDLE, DARK = SHADES

SURE = 2.0
"""Standard deviations that bands and bars reach to either side: 95 % of a normal distribution."""


def draw_slice(axes: Any, part: Slice, diagnosis: Diagnosis, history: History) -> None:
    """The expected value with its uncertainty, and a dot for each trial: the darker, the more it says about this."""
    parameter = history.problem.space.parameters[part.parameter]
    _draw_expected(axes, part, parameter)
    _draw_trials(axes, part, parameter, diagnosis, history)
    set_parameter_axis(axes, parameter)
    set_model_axis(axes, diagnosis, history)
    axes.set_title(part.parameter)
    axes.set_ylabel(history.problem.value)


def set_model_axis(axes: Any, diagnosis: Diagnosis, history: History) -> None:
    """The same vertical axis for all slices: what was observed and what is expected, but not all of the bands."""
    expected = [mean for part in diagnosis.slices for mean in part.mean]
    if not is_wide(diagnosis.observed):
        set_value_axis(axes, [*diagnosis.observed, *expected], history)
        return
    values = [*diagnosis.observed, *(mean for mean in expected if mean > 0)]
    set_value_axis(axes, values, history)
    axes.set_ylim(min(values) / 1.3, max(values) * 1.3)


def _draw_expected(axes: Any, part: Slice, parameter: Parameter) -> None:
    mean, reach = np.array(part.mean), SURE * np.array(part.deviation)
    if isinstance(parameter, Choice):
        where = [parameter.index_of(value) for value in part.values]
        axes.bar(where, 2 * reach, bottom=mean - reach, width=0.6, color=PALE, alpha=0.7, linewidth=0)
        axes.hlines(mean, np.array(where) - 0.3, np.array(where) + 0.3, color=MIDDLE, linewidth=1.8)
        return
    axes.fill_between(part.values, mean - reach, mean + reach, color=PALE, alpha=0.7, linewidth=0)
    axes.plot(part.values, mean, color=MIDDLE, linewidth=1.8)


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
