"""Reads a history at the price of what changed, and without a transaction.

The first statement reads the trials and the version they belong to. Measurements and events are never changed once they
are written, so what has a version up to that one belongs to it too, whenever it is read.
"""

import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import chain
from typing import Any

from sqlalchemy import Connection, CursorResult, Executable

from farthing.costs import Clock
from farthing.storage import lifecycle, rows, statements
from farthing.storage.lifecycle import Entry, study_not_found
from farthing.storage.measurement_rows import Look, all_curves
from farthing.storage.storage import Changes
from farthing.storage.tables import damaged
from farthing.storage.watching import LeaseWatch
from farthing.trials import Event, Measurement, State

Curves = Mapping[int, Sequence[Measurement]]

_STANDING = len(statements.HISTORY.selected_columns) - len(rows.TRIAL_COLUMNS)
"""Number of columns of a row of `HISTORY` before the trial's own."""


def standing(row: Sequence[Any]) -> Sequence[Any]:
    """How the study stands, of a row of a history: its id and version, whether it charges, now and its last event."""
    study_id, version, charges, now, last_event = row[:_STANDING]
    if type(version) is not int or not isinstance(now, (int, float)) or type(last_event) not in (int, type(None)):
        raise damaged("A stored version must be a whole number", version if type(version) is not int else last_event)
    return study_id, version, charges, now, last_event


@dataclass(frozen=True, slots=True)
class _Seen:
    """The state of a study's last reader: its version, and the measurements of the trials in flight."""

    version: int
    curves: Curves


@dataclass(frozen=True, slots=True)
class _Span:
    """The versions of a study from which something is read: those after `since`, up to `until`."""

    connection: Connection
    study_id: int
    since: int
    until: int

    def rows(self, statement: Executable, **parameters: Any) -> "CursorResult[*tuple[Any, ...]]":
        bounds = {"this_study": self.study_id, "since": self.since, "until": self.until}
        return self.connection.execute(statement, {**bounds, **parameters})


class HistoryReader:
    """Remembers the measurements of trials in flight, so that each is read once, however long a trial reports."""

    def __init__(self, watch: LeaseWatch, look: Look) -> None:
        self._watch = watch
        self._look = look
        self._seen: dict[int, _Seen] = {}

    def read(
        self, connection: Connection, name: str, *, since: int, running: bool = True, clock: Clock | None
    ) -> Changes:
        """The changes after `since` and, with `running`, every trial that is running."""
        with _without_collecting() if since == 0 else nullcontext():
            return self._read(connection, name, since=since, running=running, clock=clock)

    def _read(self, connection: Connection, name: str, *, since: int, running: bool, clock: Clock | None) -> Changes:
        parameters = {"this_name": name, "since": since, "clock": clock.now() if clock else None}
        changed = statements.HISTORY if running else statements.CHANGED_HISTORY
        result = connection.execute(changed if since else statements.WHOLE_HISTORY, parameters)
        batches = rows.plain(result)
        first = next(batches, ())
        if not first:
            raise study_not_found(name)
        study_id, version, charges, now, last_event = standing(first[0])
        span = _Span(connection, study_id, since, version)
        trials = (_of_trials(batch) for batch in chain([first], batches))
        entries, curves = self._all(span, trials) if since == 0 else self._changed(span, [*chain.from_iterable(trials)])
        self._seen[study_id] = _Seen(version, curves if since == 0 else _curves_in_flight(curves, entries))
        self._watch.see(name, entries, all_that_run=running or since == 0)
        return Changes(
            version=version,
            trials=[
                lifecycle.as_read(entry, now=now, charge=bool(charges), has_ended=self._watch.has_ended(name, entry))
                if entry.trial.state is State.RUNNING
                else entry.trial
                for entry in entries
            ],
            events=_events(span) if (last_event or 0) > since else [],
        )

    def _all(self, span: _Span, batches: Iterable[Sequence[Sequence[Any]]]) -> tuple[list[Entry], Curves]:
        """Every trial, some rows at a time, and the measurements of those in flight."""
        curves = all_curves(span.connection, self._look, study_id=span.study_id, version=span.until)
        entries: list[Entry] = []
        for batch in batches:
            texts = rows.texts_of(batch)
            entries += [rows.entry(row, curves(row), text) for row, text in zip(batch, texts, strict=True)]
        rows.numbered([entry.trial.number for entry in entries])
        return entries, {
            entry.trial.number: entry.trial.measurements for entry in entries if not entry.trial.is_finished
        }

    def _changed(self, span: _Span, trials: Sequence[Sequence[Any]]) -> tuple[list[Entry], Curves]:
        curves = self._curves(span, read=[row[0] for row in trials])
        return [rows.entry(row, curves.get(row[0], ())) for row in trials], curves

    def _curves(self, span: _Span, *, read: Sequence[int]) -> Curves:
        """The measurements of the trials with the numbers `read`, and of all in flight."""
        seen = self._seen.get(span.study_id)
        if seen is None or seen.version != span.since:
            return _by_trial(span.rows(statements.CHANGED_MEASUREMENTS))
        if span.until == span.since:
            return seen.curves
        known = [number for number in read if number in seen.curves]
        new = _by_trial(span.rows(statements.NEW_MEASUREMENTS, seen=known))
        longer = {number: lifecycle.joined(seen.curves.get(number, ()), points) for number, points in new.items()}
        return {**seen.curves, **longer}


def _of_trials(batch: Sequence[Sequence[Any]]) -> list[Sequence[Any]]:
    """The trials' own columns; a study without trials has a row without one."""
    return [row[_STANDING:] for row in batch if row[_STANDING] is not None]


def _by_trial(found: "CursorResult[*tuple[Any, ...]]") -> Curves:
    return rows.by_trial(chain.from_iterable(rows.plain(found)))


@contextmanager
def _without_collecting() -> Iterator[None]:
    """Pauses the garbage collector, which would look through all that is read again and again and find nothing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _events(span: _Span) -> list[Event]:
    return [rows.event(row) for row in span.rows(statements.NEW_EVENTS)]


def _curves_in_flight(curves: Curves, read: Sequence[Entry]) -> Curves:
    """Without those of the trials that were read and found to have ended."""
    ended = {entry.trial.number for entry in read if entry.trial.is_finished}
    return {number: points for number, points in curves.items() if number not in ended}
