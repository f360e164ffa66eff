"""Measurements of large histories as columns: an object is made of one when it is first read."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, overload

from sqlalchemy import CursorResult

from farthing.storage import rows
from farthing.storage.json_text import mapping_from_text
from farthing.trials import Measurement
from farthing.trials.measurement import LazyMeasurements, Payments

MANY = 50_000
"""Of more measurements than these in one reading, columns are kept: as objects they take four times the room."""

BATCH = 5_000
PLACES = {column.name: place for place, column in enumerate(rows.MEASUREMENT_COLUMNS)}
ATTEMPT, CHARGED, COST, SAVED = (PLACES[name] for name in ("attempt", "charged", "cost", "saved"))
REPEATED = [column.name == "fidelity" for column in rows.MEASUREMENT_COLUMNS]
"""Of curves that go along the same fidelities, each text occurs in every trial."""


def by_trial(found: "CursorResult[*tuple[Any, ...]]") -> dict[int, Sequence[Measurement]]:
    """Measurements by the number of their trial, from rows in order."""
    first = found.fetchmany(MANY)
    if len(first) < MANY:
        return dict(rows.by_trial(first))
    return Columns(chain([first], found.partitions(BATCH))).by_trial()


class Columns:
    """The columns of `MEASUREMENT_COLUMNS`, a list each."""

    def __init__(self, batches: Iterable[Sequence[Sequence[Any]]]) -> None:
        self._columns: list[list[Any]] = [[] for _ in rows.MEASUREMENT_COLUMNS]
        texts: dict[str, str] = {}
        for batch in batches:
            for column, values, is_repeated in zip(self._columns, zip(*batch, strict=True), REPEATED, strict=True):
                column.extend([texts.setdefault(text, text) for text in values] if is_repeated else values)

    def by_trial(self) -> dict[int, Sequence[Measurement]]:
        numbers = self._columns[0]
        starts = [place for place in range(len(numbers)) if place == 0 or numbers[place] != numbers[place - 1]]
        ends = [*starts[1:], len(numbers)]
        return {numbers[start]: StoredMeasurements(self, start, end) for start, end in zip(starts, ends, strict=True)}

    def measurement(self, place: int) -> Measurement:
        return rows.measurement([column[place] for column in self._columns])

    def part(self, column: int, start: int, end: int) -> list[Any]:
        return self._columns[column][start:end]


class StoredMeasurements(LazyMeasurements):
    """The measurements of one trial, equal to the tuple of them. They are read off the columns each time."""

    __slots__ = ("_columns", "_end", "_start")

    def __init__(self, columns: Columns, start: int, end: int) -> None:
        self._columns, self._start, self._end = columns, start, end

    def __len__(self) -> int:
        return self._end - self._start

    def __iter__(self) -> Iterator[Measurement]:
        return map(self._columns.measurement, range(self._start, self._end))

    @overload
    def __getitem__(self, index: int) -> Measurement: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Measurement, ...]: ...
    def __getitem__(self, index: int | slice) -> Measurement | tuple[Measurement, ...]:
        places = range(self._start, self._end)[index]
        if isinstance(places, range):
            return tuple(map(self._columns.measurement, places))
        return self._columns.measurement(places)

    def payments(self) -> Payments:
        costs: list[Mapping[str, float]] = [mapping_from_text(cost) if cost else {} for cost in self._part(COST)]
        return Payments(self._part(ATTEMPT), self._part(CHARGED), costs)

    def savings(self) -> list[Mapping[str, float]]:
        return [mapping_from_text(saved) for saved in self._part(SAVED) if saved]

    def _part(self, column: int) -> list[Any]:
        return self._columns.part(column, self._start, self._end)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (tuple, StoredMeasurements)) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]  # as of a tuple of measurements, which have dictionaries

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[type, tuple[list[Measurement]]]:
        """Copies and pickles are plain tuples, without the columns of all the others."""
        return tuple, (list(self),)
