"""A trial as plain data: its row in a table, and everything about it."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from farthing.analysis.lines import Lines
from farthing.analysis.sampling import thinned
from farthing.analysis.text import short_number, where
from farthing.space.stages import prefix_key
from farthing.trials import History, Json, Measurement, Prediction, Trial
from farthing.trials.prefixes import is_stage, was_cached
from farthing.trials.trial import reason_of
from farthing.validation import shown

MOST_POINTS = 2_000
"""Of a curve that is shown, and of rounds."""


MODEL_KEYS = {"theta", "cost_theta", "fitted_on", "why", "retained"}
"""In notes: hyperparameters on the scales of the models, and what is said elsewhere."""


def predicted(prediction: Prediction | None) -> list[Json] | None:
    return None if prediction is None else [prediction.mean, prediction.deviation]


def trial_row(trial: Trial) -> dict[str, Json]:
    """The columns that a table shows of a trial."""
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
        "started_at": trial.started_at,
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
        "words": note_text(trial.note),
        "overhead": trial.overhead,
        "checkpoint": trial.checkpoint,
        "resume_checkpoint": trial.resume_checkpoint,
        "traceback": trial.failure.traceback if trial.failure else "",
        "lineage": [{"number": link.number, "state": link.state.value, "value": link.value} for link in lineage],
        "points": [point_form(point) for point in thinned(trial.points, MOST_POINTS)],
        "stages": stages_of(trial, stages),
    }


def note_text(note: Json) -> str:
    """The strategy's note in words: models by the trials they were fitted to, the rest by name; JSON has all of it."""
    if not isinstance(note, dict):
        return "" if note is None else shown(note)
    fitted = [f"by a model fitted to {note['fitted_on']} trials"] if "fitted_on" in note else []
    others = {name: value for name, value in note.items() if name not in MODEL_KEYS and value is not True}
    flags = [name for name, value in note.items() if value is True]
    return ", ".join([*fitted, *flags, *(f"{name} {shown(value)}" for name, value in others.items())])


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


# ------------------------------------------------------------
# The trials of a study as a table: filtered, sorted, a page at a time.


Key = Callable[[int], tuple[bool, float | str]]
PLAIN_COLUMNS = ("number", "state", "value", "cost", "opened_at", "finished_at")
"""Columns that lines have: to sort by others takes the trials themselves."""


@dataclass(frozen=True)
class RowQuery:
    """The filter that a reader asked for. `where` maps a param to a text that its value contains or equals."""

    sort: str = "number"
    descending: bool = False
    states: tuple[str, ...] = ()
    text: str = ""
    tag: str = ""
    where: Mapping[str, str] = field(default_factory=dict)
    offset: int = 0
    limit: int = 50

    @property
    def needs_trials(self) -> bool:
        return bool(self.text or self.tag or self.where) or self.sort not in PLAIN_COLUMNS


def matching_lines(lines: Lines, query: RowQuery) -> list[int]:
    """The numbers of the trials, filtered and sorted by the columns of lines."""
    states = set(query.states)
    places = [place for place, state in enumerate(lines.states) if not states or state in states]
    columns: dict[str, Sequence[float | str | None]] = {
        "number": lines.number.tolist(),
        "state": lines.states,
        "value": lines.value.tolist(),
        "cost": lines.cost.tolist(),
        "opened_at": lines.opened_at.tolist(),
        "finished_at": lines.finished_at.tolist(),
    }
    column = columns[query.sort]
    return [int(lines.number[place]) for place in _sorted(places, lambda place: column[place], query.descending)]


def matching_trials(history: History, query: RowQuery) -> list[int]:
    """The same, by anything that a trial has."""
    found = [trial.number for trial in history if _matches(trial, query)]
    return _sorted(found, lambda number: _cell(history[number], query.sort), query.descending)


def _sorted(places: list[int], cell: Callable[[int], Json], descending: bool) -> list[int]:
    """Empty cells come last, whichever way it is sorted."""
    cells = {place: _plain(cell(place)) for place in places}
    full = [place for place in places if cells[place] is not None]
    empty = [place for place in places if cells[place] is None]
    numeric = all(isinstance(cells[place], (int, float)) for place in full)
    ordered = sorted(full, key=lambda place: cells[place] if numeric else str(cells[place]))  # type: ignore[return-value,arg-type]
    return [*(reversed(ordered) if descending else ordered), *empty]


def _plain(cell: Json) -> float | str | None:
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return None
    return cell if isinstance(cell, (int, float)) else str(cell)


def _cell(trial: Trial, column: str) -> Json:
    kind, _, name = column.partition(".")
    if kind == "param":
        return trial.params.get(name)
    if kind == "fidelity":
        return trial.fidelity.get(name)
    return {
        "state": trial.state.value,
        "value": trial.value,
        "cost": trial.cost,
        "opened_at": trial.opened_at,
        "finished_at": trial.finished_at,
    }.get(column, trial.number)


def _matches(trial: Trial, query: RowQuery) -> bool:
    if query.states and trial.state.value not in query.states:
        return False
    if query.tag and query.tag not in trial.tags:
        return False
    if any(not _fits(trial.params.get(name), wanted) for name, wanted in query.where.items()):
        return False
    return not query.text or query.text.casefold() in _words(trial).casefold()


def _fits(value: Json, wanted: str) -> bool:
    """A number within `low..high`, or a value whose text contains what is wanted."""
    low, dots, high = wanted.partition("..")
    if dots and isinstance(value, (int, float)):
        return _number(low, -math.inf) <= value <= _number(high, math.inf)
    return value is not None and wanted.casefold() in str(value).casefold()


def _number(text: str, otherwise: float) -> float:
    try:
        return float(text)
    except ValueError:
        return otherwise


def _words(trial: Trial) -> str:
    failure = trial.failure.reason if trial.failure else ""
    return " ".join([json.dumps(dict(trial.params), ensure_ascii=False), *trial.tags, trial.comment, failure])
