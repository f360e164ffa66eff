"""Rows of the tables from values, and values from rows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import CursorResult
from sqlalchemy.exc import DBAPIError

from farthing.errors import StorageError
from farthing.storage import tables
from farthing.storage.json_text import from_text, mapping_from_text, to_text
from farthing.storage.lifecycle import Entry
from farthing.storage.storage import StudyRecord
from farthing.trials import Event, Failure, Json, Measurement, Prediction, Problem, State, Suggestion, Trial
from farthing.trials.event_payloads import fault_of_payload

Row = Mapping[str, Any]

STUDY_COLUMNS = [tables.study.c[name] for name in ("name", "problem", "strategy", "settings", "created_at")]
TRIAL_COLUMNS = [column for column in tables.trial.c if column.name not in ("study_id", "version")]
MEASUREMENT_COLUMNS = [
    column for column in tables.measurement.c if column.name not in ("study_id", "version", "amount")
]

LAST_SECOND = 253_402_300_800.0
"""With it the year 10000 begins, which no calendar here has."""

_AT_ONCE = 5_000
_NUMBERS = (int, float)
_STATES = {state.value: state for state in State}


def plain(found: "CursorResult[*tuple[Any, ...]]") -> Iterator[Sequence[Sequence[Any]]]:
    """Batches of rows as the driver gives them: without SQLAlchemy's own, which cost as much again.

    SQLite has no truth values, so that these are 0 and 1 here.
    """
    cursor, errors = found.cursor, found.dialect.loaded_dbapi.Error
    try:
        while cursor is not None and (batch := cursor.fetchmany(_AT_ONCE)):
            yield batch
    except errors as error:
        raise DBAPIError("reading rows", None, error) from error
    found.close()


def study_row(record: StudyRecord) -> Row:
    return {
        "name": record.name,
        "problem": to_text(record.problem.to_json(), what="A problem"),
        "measures_cost": record.problem.measures_cost,
        "strategy": _optional_text(record.strategy, what="A strategy"),
        "settings": to_text(dict(record.settings), what="Settings"),
        "created_at": record.created_at,
    }


def study_record(row: Sequence[Any]) -> StudyRecord:
    name, problem, strategy, settings, created_at = row
    if not isinstance(created_at, (int, float)) or not 0 <= created_at < LAST_SECOND:
        raise StorageError(
            f"A stored study must have been created between 1970 and 9999, got {created_at!r}. "
            "Restore the database from a copy."
        )
    return StudyRecord(
        name=name,
        problem=Problem.from_json(from_text(problem)),
        strategy=_optional_value(strategy),
        settings=mapping_from_text(settings),
        created_at=created_at,
    )


def trial_row(entry: Entry) -> Row:
    """The columns of a new trial."""
    trial = entry.trial
    suggestion = trial.suggestion
    return {
        "number": trial.number,
        "params": to_text(dict(suggestion.params), what="Params"),
        "fidelity": _mapping_text(suggestion.fidelity, what="A fidelity"),
        "resume_from": suggestion.resume_from,
        "predicted_cost": _prediction_text(suggestion.predicted_cost),
        "predicted_value": _prediction_text(suggestion.predicted_value),
        "note": _optional_text(suggestion.note, what="A strategy's note"),
        "resume_checkpoint": trial.resume_checkpoint,
        "overhead": trial.overhead,
        "opened_at": trial.opened_at,
        **changing_row(entry),
    }


def changing_row(entry: Entry) -> Row:
    """The columns of a trial that may change after it was opened."""
    trial = entry.trial
    failure = trial.failure
    return {
        "state": trial.state.value,
        "attempt": trial.attempt,
        "retries": entry.retries,
        "value": trial.value,
        "failure": _optional_text([failure.reason, failure.traceback] if failure else None, what="A failure"),
        "checkpoint": trial.checkpoint,
        "owner": trial.owner,
        "tags": to_text(trial.tags, what="Tags") if trial.tags else None,
        "comment": to_text(trial.comment, what="A comment") if trial.comment else None,
        "paid_until": entry.paid_until,
        "renewed_at": entry.renewed_at,
        "lease_until": trial.lease_until,
        "finished_at": trial.finished_at,
        "lease": entry.lease,
        "waited": trial.waited,
        "rate": entry.rate,
    }


def entry(row: Sequence[Any], measurements: Sequence[Measurement] = ()) -> Entry:
    """From the columns `TRIAL_COLUMNS`."""
    (
        number, state, attempt, retries, params, fidelity, resume_from, predicted_cost, predicted_value, note, value,
        failure, checkpoint, resume_checkpoint, overhead, owner, tags, comment, opened_at, paid_until, renewed_at,
        lease_until, finished_at, lease, waited, rate,
    ) = row  # fmt: skip
    if resume_from is not None and not 0 <= resume_from < number:
        raise StorageError(
            f"A stored trial must continue an earlier one, got {resume_from!r} in trial {number}. "
            "Restore the database from a copy."
        )
    trial = Trial(
        number=number,
        suggestion=Suggestion(
            params=mapping_from_text(params),
            fidelity=_fidelity(fidelity),
            resume_from=resume_from,
            predicted_cost=_prediction(predicted_cost),
            predicted_value=_prediction(predicted_value),
            note=_optional_value(note),
        ),
        state=_state(state),
        attempt=attempt,
        measurements=tuple(measurements) if isinstance(measurements, list) else measurements,
        value=value,
        failure=Failure(*from_text(failure)) if failure else None,
        checkpoint=checkpoint,
        resume_checkpoint=resume_checkpoint,
        overhead=overhead,
        owner=owner,
        tags=tuple(from_text(tags)) if tags else (),
        comment=from_text(comment) if comment else "",
        opened_at=opened_at,
        finished_at=finished_at,
        lease_until=lease_until,
        waited=waited,
    )
    if lease is None and lease_until is not None:  # written by an older Farthing, on the database's clock
        lease = lease_until - renewed_at
    return Entry(trial, retries, paid_until, renewed_at, lease or 0.0, rate)


def measurement_row(number: int, point: Measurement) -> Row:
    return {
        "trial": number,
        "attempt": point.attempt,
        "sequence": point.sequence,
        "value": point.value,
        "amount": sum(point.cost.values()),
        "cost": _mapping_text(point.cost, what="A cost"),
        "charged": point.charged,
        "fidelity": _mapping_text(point.fidelity, what="A fidelity"),
        "step": point.step,
        "metrics": _mapping_text(point.metrics, what="Metrics"),
        "saved": _mapping_text(point.saved, what="Savings"),
        "params": _optional_text(None if point.params is None else dict(point.params), what="Params"),
        "gradient": _optional_text(None if point.gradient is None else dict(point.gradient), what="A gradient"),
        "time": point.time,
        "rate": point.rate,
    }


def measurement(row: Sequence[Any]) -> Measurement:
    """From the columns `MEASUREMENT_COLUMNS`."""
    _, attempt, sequence, value, cost, charged, fidelity, step, metrics, saved, params, gradient, time, rate = row
    return Measurement(
        value=value,
        cost=_mapping(cost),
        charged=bool(charged),
        fidelity=_fidelity(fidelity),
        step=step,
        metrics=_mapping(metrics),
        saved=_mapping(saved),
        params=_optional_mapping(params),
        gradient=_optional_mapping(gradient),
        attempt=attempt,
        sequence=sequence,
        time=time,
        rate=rate,
    )


def event_row(event: Event) -> Row:
    return {"kind": event.kind, "payload": to_text(event.payload, what="An event's payload"), "time": event.time}


def event(row: Sequence[Any]) -> Event:
    kind, text, time = row
    payload = from_text(text)
    if fault := fault_of_payload(kind, payload):
        raise StorageError(
            f"A stored event must have the payload of its kind, got one of kind {kind!r}: {fault}. "
            "Restore the database from a copy."
        )
    return Event(kind, payload, time)


def by_trial(rows: Iterable[Sequence[Any]]) -> dict[int, list[Measurement]]:
    """Measurements by the number of their trial, from rows in order."""
    measurements: dict[int, list[Measurement]] = {}
    for row in rows:
        measurements.setdefault(row[0], []).append(measurement(row))
    return measurements


def _state(text: str) -> State:
    if text not in _STATES:
        raise StorageError(
            f"A stored state must be one of {', '.join(_STATES)}, got {text!r}. Restore the database from a copy."
        )
    return _STATES[text]


def _optional_text(value: Json, *, what: str) -> str | None:
    return None if value is None else to_text(value, what=what)


def _optional_value(text: str | None) -> Any:
    return None if text is None else from_text(text)


def _mapping_text(mapping: Mapping[str, Any], *, what: str) -> str | None:
    return to_text(dict(mapping), what=what) if mapping else None


def _optional_mapping(text: str | None) -> dict[str, Any] | None:
    return None if text is None else mapping_from_text(text)


def _mapping(text: str | None) -> dict[str, Any]:
    return mapping_from_text(text) if text else {}


def _fidelity(text: str | None) -> dict[str, float]:
    if not text:
        return {}
    at = mapping_from_text(text)
    for value in at.values():
        if type(value) not in _NUMBERS:
            raise StorageError(
                f"A stored fidelity must be numbers, got {text[:60]!r}. Restore the database from a copy."
            )
    return at


def _prediction_text(prediction: Prediction | None) -> str | None:
    return None if prediction is None else to_text([prediction.mean, prediction.deviation], what="A prediction")


def _prediction(text: str | None) -> Prediction | None:
    return Prediction(*from_text(text)) if text else None
