"""The trials of a study as a table: filtered, sorted, a page at a time."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from farthing.trials import History, Json, Trial
from farthing.views.lines import Lines

Key = Callable[[int], tuple[bool, float | str]]
PLAIN_COLUMNS = ("number", "state", "value", "cost", "opened_at", "finished_at")
"""Columns that lines have: to sort by others takes the trials themselves."""


@dataclass(frozen=True)
class Query:
    """What a reader asked for. `where` maps a param to a text that its value contains or equals."""

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


def matching_lines(lines: Lines, query: Query) -> list[int]:
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


def matching_trials(history: History, query: Query) -> list[int]:
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


def _matches(trial: Trial, query: Query) -> bool:
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
