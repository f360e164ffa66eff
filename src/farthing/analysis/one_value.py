"""A study seen by one of its values: what is said of one value, such as a model or a curve, is said of each in turn."""

from dataclasses import replace

from farthing.errors import InvalidArgument
from farthing.trials import History, Json, Measurement, Prediction, Problem, Suggestion, Trial
from farthing.trials.objectives import AtLeast, bounds_of
from farthing.trials.trial import THETA, noted
from farthing.validation import refuse_unknown


def by_value(history: History, name: str | None, *, example: str) -> History:
    """The history with that value alone; without a name with the one objective there is.

    A value that is only limited counts as one to minimise under `AtMost`, and to maximise under `AtLeast`.
    """
    problem = history.problem
    name = value_meant(problem, name, example=example)
    refuse_unknown([name], problem.named, what="Objectives and limited quantities", error=InvalidArgument)
    if problem.is_simple:
        return history
    alone = _alone(problem, name)
    return History(
        alone, [_seen(trial, name, problem) for trial in history], events=history.events, version=history.version
    )


def value_meant(problem: Problem, name: str | None, *, example: str) -> str:
    """That value, or the one objective; refuses to choose among several."""
    if name is None and problem.further:
        named = ", ".join(problem.named)
        raise InvalidArgument(f"It is of one value at a time, got several: {named}. Say which: {example}.")
    return problem.value if name is None else name


def _alone(problem: Problem, name: str) -> Problem:
    direction = {one.name: one.minimize for one in problem.objectives}
    minimize = direction.get(name, not isinstance(bounds_of(problem).get(name), AtLeast))
    return replace(problem, value=name, minimize=minimize, further=(), constraints={})


def _seen(trial: Trial, name: str, problem: Problem) -> Trial:
    if name == problem.value:
        return trial
    points = [_point(point, name, problem) for point in trial.measurements]
    latest = next((point.value for point in reversed(points) if point.value is not None), None)
    return replace(
        trial,
        measurements=points,
        value=None if trial.value is None else latest,
        suggestion=_suggestion(trial.suggestion, name),
    )


def _point(point: Measurement, name: str, problem: Problem) -> Measurement:
    """The point with that value, and the first objective among its metrics. Gradients are of the first objective."""
    if point.value is None:
        return point
    others = {one: number for one, number in point.metrics.items() if one != name}
    return replace(point, value=point.metrics.get(name), metrics={problem.value: point.value, **others}, gradient=None)


def _suggestion(suggestion: Suggestion, name: str) -> Suggestion:
    """The suggestion with the prediction and the fit of that value, as `LogEHVI` notes them."""
    note = dict(noted(suggestion.note))
    theta, predicted = note.get(f"{THETA} {name}"), note.get("predicted")
    found = predicted.get(name) if isinstance(predicted, dict) else None
    kept: dict[str, Json] = {key: one for key, one in note.items() if key != THETA}
    if theta is not None:
        kept[THETA] = theta
    return replace(suggestion, note=kept, predicted_value=None if found is None else Prediction(*found))
