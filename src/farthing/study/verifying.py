"""Training recommended configurations to full fidelity: these trials, and no others."""

import math
from collections.abc import Sequence
from dataclasses import replace

from farthing.costs import Remaining
from farthing.errors import InvalidArgument, NoResult
from farthing.models.threads import one_thread
from farthing.strategies.shared.cost_model import predicted_cost
from farthing.trials import History, Params, Prediction, State, Suggestion, Trial


def verified(history: History, params: Params) -> Trial | None:
    """The trial that ran these params to full fidelity, is to do so, or does; the first such one."""
    full = _at_full(history, params)
    done = [trial for trial in full if trial.state is State.DONE]
    return next(iter([*done, *(trial for trial in full if not trial.is_finished)]), None)


def verification(history: History, params: Params) -> Suggestion:
    """These params at full fidelity, from the furthest of their runs that leads there."""
    source = furthest(history, params)
    full = history.problem.space.full_fidelity
    suggestion = Suggestion(params, full, resume_from=None if source is None else source.number)
    return replace(suggestion, predicted_cost=_predicted_cost(history, suggestion, source))


def furthest(history: History, params: Params) -> Trial | None:
    """The trial nearest to full fidelity: a run may continue along its traces, the rest must be full already.

    A trial that left a checkpoint comes before one that went further and left none.
    """
    fidelities = history.problem.space.fidelities
    leading = [
        trial
        for trial in _done(history, params)
        if all(trial.fidelity[name] >= fidelity.high for name, fidelity in fidelities.items() if not fidelity.trace)
    ]
    return max(leading, key=lambda trial: (trial.checkpoint is not None, history.reach(trial)), default=None)


def runs_missing(history: History, params: Params, *, repeats: int) -> list[Suggestion]:
    """The trials that these params still need to have been trained to the end `repeats` times.

    The first continues what there is; the others start afresh, because they are to have a luck of their own.
    """
    there = len(trained(history, params))
    first = [verification(history, params)] if there == 0 else []
    fresh = Suggestion(params, history.problem.space.full_fidelity)
    return [*first, *[fresh] * (repeats - there - len(first))]


def trained(history: History, params: Params) -> list[Trial]:
    """The trials that trained these params to the end, or are to."""
    return [trial for trial in _at_full(history, params) if not trial.is_finished or trial.state is State.DONE]


def _at_full(history: History, params: Params) -> list[Trial]:
    return [trial for trial in history if history.is_full(trial) and trial.params == params]


def require_covered(suggestions: Sequence[Suggestion], left: Remaining, *, in_seconds: bool) -> None:
    for suggestion in suggestions:
        is_new = suggestion.resume_from is None
        _require_covered(suggestion, left, in_seconds=in_seconds)
        left = left.less(suggestion.predicted_cost, is_new=is_new)


def _require_covered(suggestion: Suggestion, left: Remaining, *, in_seconds: bool) -> None:
    predicted = suggestion.predicted_cost
    if left.covers(predicted, is_new=suggestion.resume_from is None, in_seconds=in_seconds):
        return
    price = "" if predicted is None else f", predicted to cost {predicted.mean:.3g},"
    raise InvalidArgument(
        f"A verification must fit the rest of the budget, got one{price} with {_amounts_left(left)} left. "
        "Budgets count all runs of a study: give a larger one, or none."
    )


def require_done(trial: Trial) -> Trial:
    if trial.state is State.DONE:
        return trial
    why = f": {trial.failure.reason}" if trial.failure else ""
    raise NoResult(
        f"A verification must be trained to the end, got trial {trial.number}, which is {trial.state}{why}. "
        f"Look at its output: farthing show --trial {trial.number} --log."
    )


def _predicted_cost(history: History, suggestion: Suggestion, source: Trial | None) -> Prediction | None:
    """As declared, or learnt from the costs so far; None where nothing was paid."""
    problem = history.problem
    if problem.declared_cost is None:
        with one_thread():
            return predicted_cost(history, suggestion)
    head_start = problem.cost_of(suggestion.params, source.fidelity) if source and source.checkpoint else 0.0
    return Prediction(max(0.0, problem.cost_of(suggestion.params, suggestion.fidelity) - head_start))


def _done(history: History, params: Params) -> list[Trial]:
    return [trial for trial in history.done if trial.params == params]


def _amounts_left(left: Remaining) -> str:
    amounts = {"cost": left.cost, "seconds": left.seconds, "trials": left.trials}
    return ", ".join(f"{name} {max(0.0, amount):.3g}" for name, amount in amounts.items() if amount < math.inf)
