"""JSON in a storage: compact text, and the plain values that come back from it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from farthing.errors import InvalidArgument, StorageError
from farthing.storage.storage import StudyRecord
from farthing.trials import Json, Suggestion
from farthing.validation import spelled_out

_encode = json.JSONEncoder(separators=(",", ":")).encode
_decode = json.JSONDecoder().decode
_scan = json.JSONDecoder().scan_once  # type: ignore[attr-defined]  # the types leave it out


def to_text(value: Json, *, what: str) -> str:
    """`value` as compact JSON in plain ASCII, which every database keeps as it is."""
    try:
        return _encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgument(
            f"{what} must be made of JSON values, got {_shown(value)}: {error}. "
            "Use numbers, strings, lists and dictionaries."
        ) from None


def from_text(text: str) -> Any:
    """The value. Half a character, which only JSON can hold and no file or terminal takes, comes back spelled out."""
    try:
        value, end = _scan(text, 0)  # three times as fast as `decode`, which looks for spaces around the value
        whole = value if end == len(text) else _decode(text)
        return _spelled_out(whole) if "\\u" in text else whole
    except (TypeError, ValueError, StopIteration, RecursionError):
        raise StorageError(
            f"Stored values must be JSON, got {_shown(text)}. Restore the database from a copy."
        ) from None


def _spelled_out(value: Any) -> Any:
    match value:
        case str():
            return spelled_out(value)
        case list():
            return [_spelled_out(part) for part in value]
        case dict():
            return {spelled_out(name): _spelled_out(part) for name, part in value.items()}
        case _:
            return value


def mapping_from_text(text: str) -> dict[str, Any]:
    value = from_text(text)
    if type(value) is not dict:
        raise StorageError(f"What is stored must be a mapping, got {_shown(text)}. Restore the database from a copy.")
    return value


def mappings_from_texts(texts: Sequence[str | None]) -> list[Mapping[str, Any]]:
    """Many mappings, an empty one for no text: read as one list, at a third of the time."""
    together = values_from_texts([text or "{}" for text in texts])
    if together is not None and all(type(value) is dict for value in together):
        return together
    return [mapping_from_text(text) if text else {} for text in texts]


def values_from_texts(texts: Sequence[str]) -> list[Any] | None:
    """Many values, read as one list; None where one of the texts is not JSON, which `from_text` says of it."""
    try:
        together: list[Any] = from_text(f"[{','.join(texts)}]")
    except StorageError:
        return None
    return together if len(together) == len(texts) else None


def as_stored(value: Json, *, what: str) -> Any:
    """`value` as it would come back from a database: a copy of its own, made of JSON values only."""
    return from_text(to_text(value, what=what))


def stored_record(record: StudyRecord, *, created_at: float) -> StudyRecord:
    """A new study as it would come back from a database."""
    return replace(
        record,
        strategy=as_stored(record.strategy, what="A strategy"),
        settings=as_stored(dict(record.settings), what="Settings"),
        created_at=created_at,
    )


def stored_suggestion(suggestion: Suggestion) -> Suggestion:
    """The suggestion as it would come back from a database."""
    return Suggestion(
        params=as_stored(dict(suggestion.params), what="Params"),
        fidelity=as_stored(dict(suggestion.fidelity), what="A fidelity") if suggestion.fidelity else {},
        resume_from=suggestion.resume_from,
        predicted_cost=suggestion.predicted_cost,
        predicted_value=suggestion.predicted_value,
        note=None if suggestion.note is None else as_stored(suggestion.note, what="A strategy's note"),
    )


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
