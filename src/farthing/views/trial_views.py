"""A trial as plain data: its row in a table, and everything about it."""

from collections.abc import Mapping, Sequence

from farthing.space.stages import prefix_key
from farthing.study.views import short_number
from farthing.trials import History, Json, Measurement, Prediction, Trial
from farthing.trials.notes import reason_of
from farthing.trials.prefixes import is_stage, was_cached
from farthing.views.owners import where
from farthing.views.sampling import thinned

MOST_POINTS = 2_000
"""Of a curve that is shown, and of rounds."""


def predicted(prediction: Prediction | None) -> list[Json] | None:
    return None if prediction is None else [prediction.mean, prediction.deviation]


def trial_row(trial: Trial) -> dict[str, Json]:
    """What a table shows of a trial."""
    return {
        "number": trial.number,
        "state": trial.state.value,
        "value": trial.value,
        "cost": trial.cost,
        "params": dict(trial.params),
        "fidelity": dict(trial.fidelity),
        "predicted_value": predicted(trial.suggestion.predicted_value),
        "predicted_cost": predicted(trial.suggestion.predicted_cost),
        "resume_from": trial.resume_from,
        "attempt": trial.attempt,
        "opened_at": trial.opened_at,
        "finished_at": trial.finished_at,
        "worker": where(trial.owner or ""),
        "tags": list(trial.tags),
        "comment": trial.comment,
        "failure": trial.failure.reason if trial.failure else None,
        "last": point_form(trial.points[-1]) if trial.points else None,
    }


def trial_form(trial: Trial, lineage: Sequence[Trial], stages: Sequence[str]) -> dict[str, Json]:
    """Everything about one trial. `lineage` is the chain that it continues, itself last."""
    return {
        **trial_row(trial),
        "costs": trial.costs,
        "saved": trial.saved,
        "note": trial.note,
        "why": reason_of(trial),
        "overhead": trial.overhead,
        "checkpoint": trial.checkpoint,
        "resume_checkpoint": trial.resume_checkpoint,
        "traceback": trial.failure.traceback if trial.failure else "",
        "lineage": [{"number": link.number, "state": link.state.value, "value": link.value} for link in lineage],
        "points": [point_form(point) for point in thinned(trial.points, MOST_POINTS)],
        "stages": stages_of(trial, stages),
    }


def point_form(point: Measurement) -> dict[str, Json]:
    return {
        "value": point.value,
        "cost": sum(point.cost.values()),
        "fidelity": dict(point.fidelity),
        "step": point.step,
        "metrics": dict(point.metrics),
        "time": point.time,
    }


def stages_of(trial: Trial, names: Sequence[str]) -> list[dict[str, Json]]:
    """The stages of the latest attempt: what each cost, and whether its output was loaded."""
    ended = {
        point.step or 0: point
        for point in trial.measurements
        if is_stage(point) and point.attempt == trial.attempt and (point.step or 0) < len(names)
    }
    return [
        {
            "stage": names[step],
            "cost": sum(point.cost.values()),
            "loaded": was_cached(point),
            "saved": point.saved.get("cache", 0.0),
        }
        for step, point in sorted(ended.items())
    ]


def stage_tree(history: History, *, most: int) -> dict[str, Json]:
    """The outputs of stages as a tree: a node for each prefix, with how often it was computed and loaded."""
    space = history.problem.space
    names = list(space.stages)
    nodes: dict[str, dict[str, Json]] = {}
    for trial in history:
        parent = None
        for step, stage in enumerate(stages_of(trial, names)):
            key = prefix_key(space, trial.params, step + 1)
            node = nodes.setdefault(key, _node(key, parent, names[step], step, trial.params, space.stages[names[step]]))
            node["loaded" if stage["loaded"] else "computed"] += 1
            node["spent"] += stage["cost"]
            node["saved"] += stage["saved"]
            node["best"] = _better(history, node["best"], trial.value)
            parent = key
    by_use = sorted(nodes.values(), key=lambda node: (node["depth"], -node["loaded"] - node["computed"]))
    return {"stages": names, "nodes": by_use[:most], "of": len(nodes)}


def _node(
    key: str, parent: str | None, stage: str, depth: int, params: Mapping[str, Json], own: Sequence[str]
) -> dict[str, Json]:
    chosen = {name: params[name] for name in own if name in params}
    label = " ".join(f"{name}={short_number(value)}" for name, value in chosen.items())
    return {
        "key": key,
        "parent": parent,
        "stage": stage,
        "depth": depth,
        "label": label,
        "computed": 0,
        "loaded": 0,
        "spent": 0.0,
        "saved": 0.0,
        "best": None,
    }


def _better(history: History, known: float | None, value: float | None) -> float | None:
    if value is None:
        return known
    return value if known is None or history.problem.better(value, known) else known
