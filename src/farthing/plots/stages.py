"""The costs of a pipeline's stages, trial by trial, and which of them came from the cache."""

from collections.abc import Sequence
from typing import Any

from farthing.plots.look import GRID, MUTED, add_legend, set_whole_ticks
from farthing.trials import History, Measurement, Trial
from farthing.trials.prefixes import is_stage, was_cached

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
