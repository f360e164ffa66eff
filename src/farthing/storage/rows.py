"""Rows of the tables from values, and values from rows."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, repeat
from typing import Any

from sqlalchemy import CursorResult
from sqlalchemy.exc import DBAPIError

from farthing.errors import FarthingError, StorageError
from farthing.storage import tables
from farthing.storage.json_text import from_text, mapping_from_text, mappings_from_texts, to_text, values_from_texts
from farthing.storage.lifecycle import Entry, StudyRun
from farthing.storage.storage import StudyRecord
from farthing.storage.tables import LARGEST, Columns, damaged
from farthing.trials import (
    Event,
    Failure,
    Json,
    Measurement,
    Params,
    Prediction,
    Problem,
    State,
    Suggestion,
    Trial,
)
from farthing.trials.events import (
    BUDGET,
    CHANGED,
    DURATION,
    EXTENDED,
    IDLE,
    LEARNED,
    NOISE_DECLARED,
    WORKER_BEGAN,
    Extension,
    Learned,
)
from farthing.trials.measurement import KINDS, LARGEST_WHOLE
from farthing.trials.prefixes import EVICTED
from farthing.validation import shown, spelled_out

PARTS: Mapping[str, Mapping[str, type]] = {
    BUDGET: {"limits": dict, "trials": int, "given": bool},
    CHANGED: {"before": dict, "after": dict, "harmless": bool},
    DURATION: {"decade": int, "results": int, "trials": int},
    EVICTED: {"prefix": str},
    EXTENDED: {"before": dict, "after": dict, "fill": dict, "trials": int},
    IDLE: {"seconds": float},
    LEARNED: {"sources": list, "starts": list, "random": list, "costs": list},
    NOISE_DECLARED: {"is_noisy": bool, "trials": int},
    WORKER_BEGAN: {"trial": int, "attempt": int},
}
"""By the kind of event the parts that are read, with their types. Other kinds have payloads that nobody reads."""

READERS: Mapping[str, Callable[[Mapping[str, Any]], object]] = {
    EXTENDED: Extension.from_json,
    LEARNED: Learned.from_json,
}


def fault_of_payload(kind: str, payload: object) -> str | None:
    """The fault in the payload of an event of that kind; None if there is none."""
    parts = PARTS.get(kind, {})
    if parts and not isinstance(payload, dict):
        return "it is no mapping"
    found = payload if isinstance(payload, dict) else {}
    for name, form in parts.items():
        if type(found.get(name)) is not form:
            return f"its {name!r} is no {form.__name__}"
    return _fault_of_reading(kind, found)


def _fault_of_reading(kind: str, payload: Mapping[str, Any]) -> str | None:
    if kind not in READERS:
        return None
    try:
        READERS[kind](payload)
    except (AttributeError, FarthingError, KeyError, TypeError, ValueError) as error:
        return f"it cannot be read ({error})"
    return None


# ------------------------------------------------------------
# Rows.

Row = Mapping[str, Any]
Texts = tuple[Params, Json]
"""The params and the note of a trial."""

STUDY_COLUMNS = [tables.study.c[name] for name in ("name", "problem", "strategy", "settings", "created_at")]
TRIAL_COLUMNS = [column for column in tables.trial.c if column.name not in ("study_id", "version")]
MEASUREMENT_COLUMNS = [
    column for column in tables.measurement.c if column.name not in ("study_id", "version", "amount")
]

EVENT_COLUMNS = [tables.event.c[name] for name in ("kind", "payload", "time")]
RUN_COLUMNS = [tables.run.c[name] for name in ("began", "seconds", "touched_at", "lease")]
_RUN = Columns(RUN_COLUMNS)
_STUDY, _TRIAL, _MEASUREMENT, _EVENT = map(Columns, (STUDY_COLUMNS, TRIAL_COLUMNS, MEASUREMENT_COLUMNS, EVENT_COLUMNS))

_PARAMS, _NOTE = ([column.name for column in TRIAL_COLUMNS].index(name) for name in ("params", "note"))
_AT_ONCE = 5_000
_NUMBERS = (int, float)
_SCALARS = (*_NUMBERS, str, bool, type(None))
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
    _STUDY.check(row)
    name, problem, strategy, settings, created_at = row
    if created_at < 0:
        raise damaged("A stored study must have been created after 1970", created_at)
    return StudyRecord(
        name=name,
        problem=_problem(problem),
        strategy=_strategy(strategy),
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
        "started_at": trial.started_at,
        "labels": to_text(trial.labels, what="Labels") if trial.labels else None,
    }


def texts_of(batch: Sequence[Sequence[Any]]) -> Iterable[Texts | None]:
    """Checks the columns of many trials, and reads their texts together, at half the price; None where all must be
    looked at one by one.
    """
    params = values_from_texts([row[_PARAMS] for row in batch]) if _TRIAL.are_sound(batch) else None
    notes = (
        None if params is None else values_from_texts(["null" if row[_NOTE] is None else row[_NOTE] for row in batch])
    )
    if params is None or notes is None or not _are_params(params):
        return repeat(None, len(batch))
    return zip(params, notes, strict=True)


def entry(row: Sequence[Any], measurements: Sequence[Measurement] = (), texts: Texts | None = None) -> Entry:
    """From the columns `TRIAL_COLUMNS`, which are checked where `texts_of` has read the texts."""
    try:
        if texts is None:
            _TRIAL.check(row)
            texts = _params(row[_PARAMS]), _optional_value(row[_NOTE])
        return _entry(row, measurements, *texts)
    except StorageError as error:
        raise _of_trial(row[0], error) from None


def _of_trial(number: object, error: StorageError) -> StorageError:
    return StorageError(f"Trial {shown(number)} cannot be read: {error}")


def _entry(row: Sequence[Any], measurements: Sequence[Measurement], params: Params, note: Json) -> Entry:
    (
        number, state, attempt, retries, _, fidelity, resume_from, predicted_cost, predicted_value, _, value,
        failure, checkpoint, resume_checkpoint, overhead, owner, tags, comment, opened_at, paid_until, renewed_at,
        lease_until, finished_at, lease, waited, rate, started_at, labels,
    ) = row  # fmt: skip
    if resume_from is not None and not 0 <= resume_from < number:
        raise damaged("A stored trial must continue an earlier one", resume_from, where=f" in trial {number}")
    trial = Trial(
        number=number,
        suggestion=Suggestion(
            params=params,
            fidelity=_fidelity(fidelity),
            resume_from=resume_from,
            predicted_cost=_prediction(predicted_cost),
            predicted_value=_prediction(predicted_value),
            note=note,
        ),
        state=state_of(state),
        attempt=attempt,
        measurements=tuple(measurements) if isinstance(measurements, list) else measurements,
        value=value,
        failure=_failure(failure),
        checkpoint=checkpoint,
        resume_checkpoint=resume_checkpoint,
        overhead=overhead,
        owner=owner,
        tags=tuple(_texts(tags)) if tags else (),
        comment=_texts(f"[{comment}]")[0] if comment else "",
        opened_at=opened_at,
        finished_at=finished_at,
        lease_until=lease_until,
        waited=waited,
        started_at=started_at,
        labels=_labels(labels) if labels else (),
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
    try:
        return _measurement(row)
    except StorageError as error:
        raise _of_trial(row[0], error) from None


def _measurement(row: Sequence[Any]) -> Measurement:
    _MEASUREMENT.check(row)
    _, attempt, sequence, value, cost, charged, fidelity, step, metrics, saved, params, gradient, time, rate = row
    return Measurement(
        value=value,
        cost=cost_of(cost),
        charged=bool(charged),
        fidelity=_fidelity(fidelity),
        step=step,
        metrics=_metrics(metrics),
        saved=numbers_of(saved, what="savings"),
        params=None if params is None else _params(params),
        gradient=None if gradient is None else numbers_of(gradient, what="gradient"),
        attempt=attempt,
        sequence=sequence,
        time=time,
        rate=rate,
    )


def event_row(event: Event) -> Row:
    return {"kind": event.kind, "payload": to_text(event.payload, what="An event's payload"), "time": event.time}


def event(row: Sequence[Any]) -> Event:
    _EVENT.check(row)
    kind, text, time = row
    payload = from_text(text)
    if fault := fault_of_payload(kind, payload):
        raise damaged("A stored event must have the payload of its kind", kind, where=f", of which {fault}")
    return Event(kind, payload, time)


def run(row: Sequence[Any]) -> StudyRun:
    _RUN.check(row)
    return StudyRun(*row)


def value_of(value: object) -> float:
    """The value of a trial that has one."""
    if type(value) not in _NUMBERS or not -LARGEST <= value <= LARGEST:  # type: ignore[operator]
        raise damaged("A stored value must be a finite number", value)
    return value  # type: ignore[return-value]


def by_trial(rows: Iterable[Sequence[Any]]) -> dict[int, list[Measurement]]:
    """Measurements by the number of their trial, from rows in order."""
    measurements: dict[int, list[Measurement]] = {}
    for row in rows:
        measurements.setdefault(row[0], []).append(measurement(row))
    return measurements


def numbered(numbers: Sequence[int]) -> None:
    """All trials of a study have been read: they count from 0."""
    if numbers and (numbers[0], numbers[-1]) != (0, len(numbers) - 1):
        raise damaged("Stored trials must be numbered 0, 1, 2, …", list(numbers))


def _problem(text: str) -> Problem:
    try:
        return Problem.from_json(mapping_from_text(text))
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise damaged("A stored problem must be as it was written", text, where=f" ({error})") from None


def _strategy(text: str | None) -> Any:
    """Its name and arguments. Whether there is such a strategy is seen when it is made."""
    form = None if text is None else from_text(text)
    if form is None or form == {}:
        return form
    name, arguments = (form.get("name"), form.get("arguments", {})) if type(form) is dict else (None, None)
    if type(name) is not str or type(arguments) is not dict or spelled_out(name) != name:
        raise damaged("A stored strategy must have a name and arguments", text)
    return form


def state_of(text: str) -> State:
    if text not in _STATES:
        raise damaged(f"A stored state must be one of {', '.join(_STATES)}", text)
    return _STATES[text]


def _failure(text: str | None) -> Failure | None:
    """Its reason and its traceback; an older Farthing stored no traceback."""
    parts = _texts(text) if text else []
    if len(parts) > 2 or (text and not parts):
        raise damaged("A stored failure must be a reason and a traceback", text)
    return Failure(*parts) if parts else None


def _texts(text: str) -> list[str]:
    found = from_text(text)
    if type(found) is not list or not all(type(one) is str for one in found):
        raise damaged("What is stored here must be texts", text)
    return found


def _labels(text: str) -> tuple[str | None, ...]:
    found = from_text(text)
    if type(found) is not list or not all(one is None or type(one) is str for one in found):
        raise damaged("The labels of a trial's workers must be texts", text)
    return tuple(found)


def _optional_text(value: Json, *, what: str) -> str | None:
    return None if value is None else to_text(value, what=what)


def _optional_value(text: str | None) -> Any:
    return None if text is None else from_text(text)


def _mapping_text(mapping: Mapping[str, Any], *, what: str) -> str | None:
    return to_text(dict(mapping), what=what) if mapping else None


def _params(text: str) -> dict[str, Any]:
    """Whether they belong to the space is seen where they are encoded."""
    found = mapping_from_text(text)
    for value in found.values():
        if type(value) not in _SCALARS and not (type(value) is list and all(type(one) in _SCALARS for one in value)):
            raise damaged("Stored params must be numbers, texts, truth values, None, or lists of these", text)
    return found


def _are_params(found: Sequence[Any]) -> bool:
    """Whether all are params, by the types that occur; False where `_params` has to look."""
    are_mappings = set(map(type, found)) <= {dict}
    return are_mappings and set(map(type, chain.from_iterable(map(dict.values, found)))) <= set(_SCALARS)


def numbers_of(text: str | None, *, what: str) -> dict[str, float]:
    """A stored mapping to finite numbers; an empty one for no text."""
    if not text:
        return {}
    found = mapping_from_text(text)
    for number in found.values():
        if type(number) not in _NUMBERS or not -LARGEST <= number <= LARGEST:
            raise damaged(f"A stored {what} must be finite numbers", text)
    return found


def cost_of(text: str | None) -> dict[str, float]:
    found = numbers_of(text, what="cost")
    if not is_cost(found):
        raise damaged(f"A stored cost must be amounts of {', '.join(KINDS)}", text)
    return found


def costs_of(texts: Sequence[str | None]) -> list[Mapping[str, float]]:
    """The same of many: what is common to all of them is asked once."""
    found = mappings_from_texts(texts)
    amounts = [amount for cost in found for amount in cost.values()]
    are_numbers = set(map(type, amounts)) <= set(_NUMBERS) and not math.isnan(sum(amounts))
    if set().union(*found) <= set(KINDS) and are_numbers and (not amounts or _is_amount(min(amounts), max(amounts))):
        return found
    return [cost_of(text) for text in texts]  # which says what is wrong


def is_cost(found: Mapping[str, Any]) -> bool:
    for kind, amount in found.items():
        if type(amount) not in _NUMBERS or not _is_amount(amount) or kind not in KINDS:
            return False
    return True


def _is_amount(*amounts: float) -> bool:
    return all(0 <= amount <= LARGEST_WHOLE for amount in amounts)


def _metrics(text: str | None) -> dict[str, float | None]:
    found = mapping_from_text(text) if text else {}
    for number in found.values():
        if number is not None and not _is_number(number):
            raise damaged("A stored metric must be a number", text)
    return found


def _is_number(number: object) -> bool:
    """Any that a float can be: infinity and NaN too, which whoever shows them heeds."""
    return type(number) is float or (type(number) is int and abs(number) <= LARGEST)


def _fidelity(text: str | None) -> dict[str, float]:
    """One of its own for each trial and measurement, although few texts occur."""
    return dict(_known_fidelity(text)) if text else {}


@lru_cache(maxsize=1024)
def _known_fidelity(text: str) -> Mapping[str, float]:
    return numbers_of(text, what="fidelity")


def _prediction_text(prediction: Prediction | None) -> str | None:
    return None if prediction is None else to_text([prediction.mean, prediction.deviation], what="A prediction")


def _prediction(text: str | None) -> Prediction | None:
    if not text:
        return None
    match from_text(text):
        case [mean, deviation] if _is_number(mean) and (deviation is None or _is_number(deviation)):
            return Prediction(mean, deviation)
        case _:
            raise damaged("A stored prediction must be a mean and a deviation", text)
