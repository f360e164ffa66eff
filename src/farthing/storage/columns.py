"""Checks that a row has what its columns are declared to hold: SQLite keeps anything anywhere."""

import sys
from collections.abc import Sequence
from math import isfinite
from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Double, Integer, Text

from farthing.errors import StorageError
from farthing.validation import shown

LAST_SECOND = 253_402_300_799.0
"""The last of the year 9999, after which no calendar here goes."""

LARGEST = sys.float_info.max
"""Beyond it there is only infinity."""

_MOMENTS = ("created_at", "opened_at", "finished_at", "lease_until", "time", "started_at", "touched_at")
_TYPES: dict[type, tuple[type, ...]] = {
    BigInteger: (int,),
    Integer: (int,),
    Double: (float, int),
    Boolean: (bool, int),
    Text: (str,),
}


def damaged(rule: str, found: object, *, where: str = "") -> StorageError:
    """For stored things that no version of Farthing has written."""
    return StorageError(f"{rule}, got {shown(found)}{where}. Restore the database from a copy.")


class Columns:
    """Some columns of a table. Types that were seen once are not gone through again: millions of rows are read."""

    def __init__(self, columns: Sequence[Column[Any]]) -> None:
        self._names = [f"{column.table.name}.{column.name}" for column in columns]
        self._types = [_types_of(column) for column in columns]
        self._bounds = [
            (place, LAST_SECOND if column.name in _MOMENTS else LARGEST)
            for place, column in enumerate(columns)
            if isinstance(column.type, Double)
        ]
        self._known: set[tuple[type, ...]] = set()

    def are_sound(self, batch: Sequence[Sequence[Any]]) -> bool:
        """Whether `check` finds nothing in many rows, a column at a time; False where it may find something."""
        columns = list(zip(*batch, strict=True)) or [()] * len(self._types)
        are_typed = all(
            set(map(type, column)) <= set(types) for column, types in zip(columns, self._types, strict=True)
        )
        return are_typed and all(_is_within(columns[place], bound) for place, bound in self._bounds)

    def check(self, row: Sequence[Any]) -> None:
        form = tuple(map(type, row))
        if form not in self._known:
            for name, allowed, kind, value in zip(self._names, self._types, form, row, strict=True):
                if kind not in allowed:
                    raise damaged(f"A stored {name} must be of the type {allowed[0].__name__}", value)
            self._known.add(form)
        for place, bound in self._bounds:
            value = row[place]
            if value is not None and not -bound <= value <= bound:
                raise damaged(f"A stored {self._names[place]} must be a number within its bounds", value)


def _is_within(column: Sequence[float | None], bound: float) -> bool:
    """False also where only their sum is beyond it; NaN makes the sum NaN."""
    numbers = [number for number in column if number is not None]
    return not numbers or (-bound <= min(numbers) and max(numbers) <= bound and isfinite(sum(numbers)))


def _types_of(column: Column[Any]) -> tuple[type, ...]:
    allowed = next(types for kind, types in _TYPES.items() if isinstance(column.type, kind))
    return (*allowed, type(None)) if column.nullable else allowed
