"""The value against one parameter."""

from collections.abc import Sequence
from typing import Any

from farthing.analysis.runs import last_of_runs, with_value
from farthing.plots.look import ACCENT, area, is_failed, mark_failures, set_plain_ticks, set_value_axis
from farthing.space import Choice, Int
from farthing.space.parameters import Parameter
from farthing.trials import History, Trial

JITTER = 0.22
"""Spread of the dots of one option, so that they do not hide each other."""


def draw_parameter(axes: Any, history: History, colours: Any, *, name: str, best: Trial) -> None:
    """A dot for each run; the larger, the further it went."""
    parameter = history.problem.space.parameters[name]
    runs = last_of_runs(with_value(history))
    active = [trial for trial in runs if name in trial.params]
    failed = [trial for trial in history if is_failed(trial) and name in trial.params]
    axes.scatter(
        places(active, parameter, name),
        [trial.value for trial in active],
        s=[area(history, trial) for trial in active],
        c=[colours.to_rgba(trial.number) for trial in active],
        edgecolors=[ACCENT if trial.number == best.number else "white" for trial in active],
        linewidths=[1.8 if trial.number == best.number else 0.3 for trial in active],
    )
    set_parameter_axis(axes, parameter)
    mark_failures(axes, places(failed, parameter, name), history)
    set_value_axis(axes, [trial.value for trial in runs if trial.value is not None], history)
    axes.set_title(name)
    axes.set_ylabel(history.problem.value)


def places(trials: Sequence[Trial], parameter: Parameter, name: str) -> list[float]:
    if isinstance(parameter, Choice):
        return [parameter.index_of(trial.params[name]) + _spread(trial.number) for trial in trials]
    return [trial.params[name] for trial in trials]


def _spread(number: int) -> float:
    """Multiples of the golden ratio modulo 1 fill the interval evenly, and a trial is always drawn in one place."""
    return JITTER * (2 * ((number * 0.6180339887498949) % 1) - 1)


def set_parameter_axis(axes: Any, parameter: Parameter) -> None:
    from matplotlib.ticker import MaxNLocator

    if isinstance(parameter, Choice):
        axes.set_xticks(range(len(parameter.options)), [str(option) for option in parameter.options])
        axes.set_xlim(-0.6, len(parameter.options) - 0.4)
        axes.grid(visible=False, axis="x")
        return
    if parameter.log:
        axes.set_xscale("log")
        set_plain_ticks(axes.xaxis, parameter.low, parameter.high)
    elif isinstance(parameter, Int):
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    axes.set_xlim(*_with_margin(parameter.low, parameter.high, log=parameter.log))


def _with_margin(low: float, high: float, *, log: bool) -> tuple[float, float]:
    if log:
        factor = (high / low) ** 0.04
        return low / factor, high * factor
    margin = 0.04 * (high - low)
    return low - margin, high + margin
