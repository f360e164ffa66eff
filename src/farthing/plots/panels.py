"""The panels of a study's picture: value against cost, learning curves, one parameter, and a pipeline's stages."""

from collections.abc import Mapping, Sequence
from typing import Any

from farthing.analysis.best import MeasuredBest
from farthing.analysis.lines import progress_of
from farthing.analysis.runs import Curve, breadth, curve_axis, last_of_runs, learning_curves, with_value
from farthing.plots.look import (
    ACCENT,
    FAILED,
    GRID,
    MUTED,
    add_legend,
    area,
    draw_expected,
    is_failed,
    is_wide,
    mark_failures,
    set_plain_ticks,
    set_value_axis,
    set_whole_ticks,
)
from farthing.space import Choice, Int
from farthing.space.parameters import Parameter
from farthing.trials import History, Measurement, Trial
from farthing.trials.prefixes import is_stage, was_cached


def draw_progress(axes: Any, history: History, colours: Any, *, best: MeasuredBest) -> None:
    """A dot for each trial, the larger the further it went, and the best of all; beside them what a model predicts."""
    steps = progress_of(history)
    valued = [step for step in steps if step.trial.value is not None]
    values = [step.trial.value for step in valued if step.trial.value is not None]
    axes.scatter(
        [step.spent for step in valued],
        values,
        s=[area(history, step.trial) for step in valued] if history.problem.space.fidelities else 14,
        c=[colours.to_rgba(step.trial.number) for step in valued],
        linewidths=0,
        label="a trial",
    )
    axes.step(
        [step.spent for step in steps if step.best is not None],
        [step.best for step in steps if step.best is not None],
        where="post",
        color=ACCENT,
        linewidth=1.8,
        label="the best so far",
    )
    if best.predicted is not None and not history.is_full(best.trial):
        draw_expected(
            axes, history.cost, best.predicted, label=f"trial {best.trial.number}, predicted at full fidelity"
        )
    mark_failures(axes, [step.spent for step in steps if is_failed(step.trial)], history)
    set_value_axis(axes, values, history)
    axes.set_xlim(left=0)
    axes.set_title(f"Best {history.problem.value} against cost")
    axes.set_xlabel(f"cost of all trials ({history.problem.cost_unit})")
    axes.set_ylabel(history.problem.value)
    add_legend(axes)


# ------------------------------------------------------------
# The fidelities of each configuration: how far it was trained, in which steps, and on how much data.


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


# ------------------------------------------------------------
# Learning curves, the best one on top.


Line = tuple[list[float], list[float]]

THIN, THICK = 0.4, 1.0
"""Widths of the line of a run that has least of the other fidelities, and of one that has all of them."""


def has_curves(history: History) -> bool:
    return any(len(curve.points) > 1 for curve in learning_curves(history))


def draw_curves(axes: Any, history: History, colours: Mapping[int, Any], *, best: MeasuredBest) -> None:
    """A line for each run, over all the trials that carried it on; that of the best stands out.

    Rings mark pauses of a run that was continued; lines are as thick as the other fidelities are high.
    """
    curves = learning_curves(history)
    for curve in curves:
        width = THIN + (THICK - THIN) * breadth(history, curve.last)
        axes.plot(*_line(curve.points), color=colours[curve.last.number], linewidth=width, marker=".", markersize=3)
        axes.plot(*_line(curve.pauses), "o", color=colours[curve.last.number], markersize=5, markerfacecolor="white")
    _mark_failures(axes, curves)
    for curve in curves:
        if curve.includes(best.trial):
            label = f"trial {best.trial.number}, the best"
            axes.plot(*_line(curve.points), color=ACCENT, linewidth=2.0, label=label, zorder=4)
            axes.plot(*_line(curve.pauses), "o", color=ACCENT, markersize=5, markerfacecolor="white", zorder=5)
            _draw_prediction(axes, history, best, curve)
    _set_axes(axes, history, curves)
    axes.set_title("Learning curves (dark: better)")
    add_legend(axes)


def _draw_prediction(axes: Any, history: History, best: MeasuredBest, curve: Curve) -> None:
    """The prediction for the best run at full fidelity, if it has not been trained that far."""
    if best.predicted is None or best.params != best.trial.params or history.is_full(best.trial):
        return
    full = history.problem.space.full_fidelity[curve.axis]
    (place, value), predicted = curve.points[-1], best.predicted
    axes.plot([place, full], [value, predicted.mean], ":", color=ACCENT, linewidth=1.2, zorder=4)
    draw_expected(axes, full, predicted, label="predicted at full fidelity")


def _set_axes(axes: Any, history: History, curves: Sequence[Curve]) -> None:
    places = [place for curve in curves for place, _ in curve.points]
    if is_wide(places):
        axes.set_xscale("log")
        set_plain_ticks(axes.xaxis, min(places), max(places))
    elif all(place == round(place) for place in places):
        set_whole_ticks(axes.xaxis)
    set_value_axis(axes, [value for curve in curves for _, value in curve.points], history)
    axes.set_xlabel(curve_axis(history.problem.space))
    axes.set_ylabel(history.problem.value)


def _mark_failures(axes: Any, curves: Sequence[Curve]) -> None:
    """A cross where a run that failed stopped."""
    ends = [curve.points[-1] for curve in curves if is_failed(curve.last)]
    axes.plot([x for x, _ in ends], [y for _, y in ends], "x", color=FAILED, markersize=5, markeredgewidth=1.2)


def _line(points: Sequence[tuple[float, float]]) -> Line:
    return [place for place, _ in points], [value for _, value in points]


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


HUES = ("#16425b", "#2f7f95", "#e0a458", "#7db4c0", "#8f5d5d", "#9aa5b1")
"""Of the stages, in turn."""

COMPUTED, LOADED = 1.0, 0.28
"""How strong a stage is drawn."""


def has_stages(history: History) -> bool:
    return any(_stages_of(trial) for trial in history)


def draw_stage_costs(axes: Any, history: History) -> None:
    """The cost of each stage, added up as trials ended, and above it the savings of the cache."""
    trials = _ended(history)
    names = list(history.problem.space.stages)
    places = range(1, len(trials) + 1)
    spent = [_added_up([_cost(trial, step) for trial in trials]) for step in range(len(names))]
    saved = _added_up([sum(point.saved.get("cache", 0.0) for point in _stages_of(trial)) for trial in trials])
    axes.stackplot(places, *spent, colors=_colours(len(names)), labels=names, linewidth=0)
    total = [sum(amounts) for amounts in zip(*spent, strict=True)]
    without = [paid + kept for paid, kept in zip(total, saved, strict=True)]
    axes.plot(places, without, color=MUTED, linewidth=1.2, linestyle="--", label="without the cache")
    axes.set_xlim(1, max(2, len(trials)))
    axes.set_ylim(bottom=0)
    axes.set_title("Cost of the stages")
    _set_trial_axis(axes)
    axes.set_ylabel(f"{history.problem.cost_unit} so far")
    add_legend(axes)


def draw_cache(axes: Any, history: History) -> None:
    """For each trial and stage whether it was computed or loaded."""
    trials, names = _ended(history), list(history.problem.space.stages)
    for step, colour in enumerate(_colours(len(names))):
        for strength, chosen in ((COMPUTED, False), (LOADED, True)):
            places = [place for place, trial in enumerate(trials, start=1) if _was_loaded(trial, step) is chosen]
            axes.bar(places, 0.8, bottom=len(names) - 1.4 - step, width=1.0, color=colour, alpha=strength)
    axes.set_yticks(range(len(names)), [_hits(trials, step, name) for step, name in reversed(list(enumerate(names)))])
    axes.set_xlim(0.5, len(trials) + 0.5)
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.set_facecolor(GRID)
    axes.grid(visible=False)
    axes.set_title("Computed (dark) or loaded from the cache (light)")
    _set_trial_axis(axes)


def _set_trial_axis(axes: Any) -> None:
    set_whole_ticks(axes.xaxis)
    axes.set_xlabel("trials, as they ended")


def _hits(trials: Sequence[Trial], step: int, name: str) -> str:
    known = [loaded for trial in trials if (loaded := _was_loaded(trial, step)) is not None]
    return f"{name}\n{sum(known)} of {len(known)}"


def _ended(history: History) -> list[Trial]:
    return sorted((trial for trial in history if trial.is_finished), key=lambda trial: trial.finished_at or 0.0)


def _stages_of(trial: Trial) -> list[Measurement]:
    return [point for point in trial.measurements if is_stage(point) and point.attempt == trial.attempt]


def _cost(trial: Trial, step: int) -> float:
    return sum(sum(point.cost.values()) for point in _stages_of(trial) if point.step == step)


def _was_loaded(trial: Trial, step: int) -> bool | None:
    """None where the trial did not get that far."""
    found = [was_cached(point) for point in _stages_of(trial) if point.step == step]
    return found[0] if found else None


def _added_up(amounts: Sequence[float]) -> list[float]:
    total, sums = 0.0, []
    for amount in amounts:
        total += amount
        sums.append(total)
    return sums


def _colours(count: int) -> list[str]:
    return [HUES[place % len(HUES)] for place in range(count)]
