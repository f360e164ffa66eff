"""The trials of a study as tables for other programs."""

import csv
import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from farthing.errors import InvalidArgument, MissingExtra
from farthing.fields import OneOf
from farthing.scalars import is_number
from farthing.space import Space
from farthing.trials import History, Json, Problem, Trial, noted
from farthing.trials.measurement import metric_names
from farthing.trials.objectives import values_of
from farthing.validation import shown, spelled_out

if TYPE_CHECKING:
    import pandas as pd

    from farthing.analysis.front import FrontPoint


def table(history: History) -> list[dict[str, Json]]:
    """A row for each trial; parameters and fidelities have columns of their own."""
    columns, several = _columns(history.problem.space, history), _Several.of(history)
    return [_row(columns, trial) | several.cells(trial) for trial in history]


def write_csv(history: History, file: TextIO) -> None:
    """A row for each trial."""
    several = _Several.of(history)
    columns = [*_columns(history.problem.space, history), *several.columns]
    writer = csv.DictWriter(file, fieldnames=columns, lineterminator="\n", extrasaction="ignore")
    writer.writerow({column: spelled_out(column) for column in columns})
    for trial in map(_on_its_own, history):
        writer.writerow({name: _inert(cell) for name, cell in (_row(columns, trial) | several.cells(trial)).items()})


def write_json(history: History, file: TextIO) -> None:
    """Everything: the problem, and every trial with its measurements, of which one trial at a time is in memory."""
    file.write(f'{{\n "problem": {_indented(history.problem.to_json(), depth=1)},\n "trials": [')
    columns, several = _columns(history.problem.space, history), _Several.of(history)
    for trial in map(_on_its_own, history):
        form = {**_row(columns, trial), **several.cells(trial), **_details(trial)}
        file.write(f"{',' if trial.number else ''}\n  {_indented(form, depth=2)}")
    file.write("\n ]\n}" if len(history) else "]\n}")


def _on_its_own(trial: Trial) -> Trial:
    """A copy, with which all goes that is worked out of its measurements: the history's trial would keep it."""
    return replace(trial, measurements=tuple(trial.measurements))


def _indented(form: Json, *, depth: int) -> str:
    """As `json.dumps(…, indent=1)` writes it that deep in a document; a text in JSON has no line breaks."""
    return json.dumps(form, indent=1).replace("\n", "\n" + " " * depth)


def to_pandas(history: History) -> "pd.DataFrame":
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingExtra(
            "A data frame needs pandas, which is absent. Install it: pip install 'farthing[pandas]'."
        ) from error
    rows = table(history)
    columns = list(rows[0]) if rows else [*_columns(history.problem.space, history), *_Several.of(history).columns]
    frame = pd.DataFrame(rows, columns=columns).set_index("number")
    for column in ("opened_at", "finished_at"):
        frame[column] = pd.to_datetime(frame[column].astype(float), unit="s", utc=True)
    return frame


FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\n")
"""Spreadsheets execute a cell of text that begins with one of these."""

FORMATS = {"csv": write_csv, "json": write_json}


def export(history: History, to: str | Path | TextIO | None, *, format: str | None) -> str | None:
    """Writes the trials, one after the other, to a path or an open file; without either, returns the text."""
    if to is None:
        text = io.StringIO()
        _write(history, text, format=format or "csv")
        return text.getvalue()
    if not isinstance(to, (str, Path)):
        _require_open_file(to)
        _write(history, to, format=format or "csv")
        return None
    chosen = _known(format or Path(to).suffix.lstrip("."))
    with open(to, "w", encoding="utf-8") as file:
        _write(history, file, format=chosen)
    return None


def _write(history: History, file: TextIO, *, format: str) -> None:
    FORMATS[_known(format)](history, file)


def _require_open_file(given: object) -> None:
    if not callable(getattr(given, "write", None)):
        raise InvalidArgument(
            f"Trials are exported to a path or an open file, got {shown(given)}. Write study.export('trials.csv')."
        )


def _known(format: str) -> str:
    rule = OneOf(tuple(FORMATS))
    return str(rule.checked(format, what="An export's format", advice="Choose one: format='csv'."))


def _inert(cell: Json) -> Json:
    """The cell as a spreadsheet shows it: a text that it would take for a formula begins with an apostrophe.

    Carriage returns, which are written without quotes and would begin a row of their own, become new lines. Half a
    character, which no file takes, is spelled out.
    """
    if not isinstance(cell, str):
        return cell
    text = spelled_out(cell).replace("\r\n", "\n").replace("\r", "\n")
    return f"'{text}" if text.startswith(FORMULA_STARTS) and not is_number(text) else text


def trial_form(space: Space, trial: Trial) -> dict[str, Json]:
    """One trial as `write_json` has it, with the metrics that it has itself."""
    return {**_row(_columns(space, [trial]), trial), **_details(trial)}


def _columns(space: Space, trials: Iterable[Trial]) -> list[str]:
    names = [f"param.{name}" for name in space.parameters] + [f"fidelity.{name}" for name in space.fidelities]
    metrics = dict.fromkeys(name for trial in trials for name in metric_names(trial.measurements))
    return [
        "number",
        "state",
        "value",
        "cost",
        *names,
        *(f"metric.{name}" for name in metrics),
        "predicted_value",
        "predicted_deviation",
        "predicted_cost",
        "opened_at",
        "finished_at",
        "resume_from",
        "attempt",
        "overhead",
        "failure",
        "tags",
        "comment",
    ]


@dataclass(frozen=True)
class _Several:
    """The last columns of a study with several objectives or limits; none of any other.

    They name the first objective as the others are named, and have the predictions of the others; of what was trained
    as far as any, whether it is on the front, and the probability that it keeps the limits.
    """

    problem: Problem
    points: Mapping[int, "FrontPoint"]
    on_front: frozenset[int]

    @classmethod
    def of(cls, history: History) -> "_Several":
        problem = history.problem
        if problem.is_simple or not any(values_of(problem, trial) for trial in history.eligible):
            return cls(problem, {}, frozenset())
        from farthing.analysis.front import Front

        front = Front.of(history)
        points = {point.trial.number: point for point in (*front, *front.others)}
        return cls(problem, points, frozenset(point.trial.number for point in front))

    @property
    def columns(self) -> list[str]:
        if self.problem.is_simple:
            return []
        predicted = [f"predicted{kind}.{one.name}" for one in self.problem.further for kind in ("", "_deviation")]
        feasibility = ["feasibility"] if self.problem.constraints else []
        return [f"metric.{self.problem.value}", *predicted, "front", *feasibility]

    def cells(self, trial: Trial) -> dict[str, Json]:
        if self.problem.is_simple:
            return {}
        expected, point = noted(trial.note).get("predicted"), self.points.get(trial.number)
        known = expected if isinstance(expected, dict) else {}
        predicted = [number for one in self.problem.further for number in known.get(one.name, (None, None))]
        is_on = None if point is None else trial.number in self.on_front
        cells = [trial.value, *predicted, is_on, None if point is None else point.feasibility]
        return dict(zip(self.columns, cells, strict=False))


def _metrics(trial: Trial) -> dict[str, float | None]:
    """The last value of each metric."""
    return {name: number for point in trial.points for name, number in point.metrics.items()}


def _row(columns: list[str], trial: Trial) -> dict[str, Json]:
    """Times are seconds since 1970; predictions are those of the strategy that suggested the trial."""
    row: dict[str, Json] = dict.fromkeys(columns)
    value, cost = trial.suggestion.predicted_value, trial.suggestion.predicted_cost
    row |= {"number": trial.number, "state": trial.state.value, "value": trial.value, "cost": trial.cost}
    row |= {f"param.{name}": value for name, value in trial.params.items()}
    row |= {f"fidelity.{name}": value for name, value in trial.fidelity.items()}
    row |= {f"metric.{name}": number for name, number in _metrics(trial).items()}
    row |= {"predicted_value": value.mean if value else None, "predicted_cost": cost.mean if cost else None}
    row |= {"predicted_deviation": value.deviation if value else None}
    row |= {"opened_at": trial.opened_at, "finished_at": trial.finished_at}
    row |= {"resume_from": trial.resume_from, "attempt": trial.attempt, "overhead": trial.overhead}
    row |= {"failure": trial.failure.reason if trial.failure else None}
    return row | {"tags": " ".join(trial.tags), "comment": trial.comment}


def _details(trial: Trial) -> dict[str, Json]:
    return {
        "costs": trial.costs,
        "note": trial.note,
        "measurements": [
            {
                "value": point.value,
                "cost": dict(point.cost),
                "fidelity": dict(point.fidelity),
                "step": point.step,
                "metrics": dict(point.metrics),
                "saved": dict(point.saved),
                "gradient": None if point.gradient is None else dict(point.gradient),
                "attempt": point.attempt,
                "time": point.time,
            }
            for point in trial.measurements
        ],
    }
