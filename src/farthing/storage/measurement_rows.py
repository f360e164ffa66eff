"""Measurements of large histories as rows: an object is made of one when it is first read."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, chain
from operator import itemgetter
from typing import Any, overload

from sqlalchemy import CursorResult

from farthing.storage import rows
from farthing.storage.json_text import mapping_from_text, mappings_from_texts
from farthing.trials import Measurement
from farthing.trials.measurement import LazyMeasurements, Payments

MANY = 50_000
"""Of more measurements than these in one reading, rows are kept: as objects they take four times the room."""

PLACES = {column.name: place for place, column in enumerate(rows.MEASUREMENT_COLUMNS)}
TRIAL, ATTEMPT, CHARGED, COST, METRICS, SAVED = (
    PLACES[name] for name in ("trial", "attempt", "charged", "cost", "metrics", "saved")
)


def by_trial(found: "CursorResult[*tuple[Any, ...]]") -> dict[int, Sequence[Measurement]]:
    """Measurements by the number of their trial, from rows in order."""
    points = list(chain.from_iterable(rows.plain(found)))
    if len(points) < MANY:
        return dict(rows.by_trial(points))
    counts = Counter(map(itemgetter(TRIAL), points))
    ends = accumulate(counts.values())
    return {
        number: StoredMeasurements(points, end - count, end)
        for (number, count), end in zip(counts.items(), ends, strict=True)
    }


class StoredMeasurements(LazyMeasurements):
    """The measurements of one trial, equal to the tuple of them. They are read off the rows of all each time."""

    __slots__ = ("_end", "_rows", "_start")

    def __init__(self, all_rows: Sequence[Sequence[Any]], start: int, end: int) -> None:
        self._rows, self._start, self._end = all_rows, start, end

    def __len__(self) -> int:
        return self._end - self._start

    def __iter__(self) -> Iterator[Measurement]:
        return map(rows.measurement, self._rows[self._start : self._end])

    @overload
    def __getitem__(self, index: int) -> Measurement: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Measurement, ...]: ...
    def __getitem__(self, index: int | slice) -> Measurement | tuple[Measurement, ...]:
        places = range(self._start, self._end)[index]
        if isinstance(places, range):
            return tuple(rows.measurement(self._rows[place]) for place in places)
        return rows.measurement(self._rows[places])

    def payments(self) -> Payments:
        texts = self._part(COST)
        costs: list[Mapping[str, float]] = [*mappings_from_texts(texts)]
        if not all(rows.is_cost(cost) for cost in costs):
            costs = [rows.cost_of(text) for text in texts]  # which says what is wrong
        return Payments(self._part(ATTEMPT), self._part(CHARGED), costs)

    def savings(self) -> list[Mapping[str, float]]:
        return [rows.numbers_of(saved, what="savings") for saved in self._part(SAVED) if saved]

    def metric_names(self) -> Iterator[str]:
        return chain.from_iterable(mapping_from_text(metrics) for metrics in self._part(METRICS) if metrics)

    def _part(self, column: int) -> list[Any]:
        return [row[column] for row in self._rows[self._start : self._end]]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (tuple, StoredMeasurements)) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]  # as of a tuple of measurements, which have dictionaries

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[type, tuple[list[Measurement]]]:
        """Copies and pickles are plain tuples, without the rows of all the others."""
        return tuple, (list(self),)
