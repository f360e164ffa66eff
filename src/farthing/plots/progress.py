"""The best value against what was spent."""

from typing import Any

from farthing.analysis.best import Best
from farthing.analysis.lines import progress_of
from farthing.plots.look import ACCENT, add_legend, area, draw_expected, is_failed, mark_failures, set_value_axis
from farthing.trials import History


def draw_progress(axes: Any, history: History, colours: Any, *, best: Best) -> None:
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
