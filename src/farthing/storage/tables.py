"""The tables, and checks of what is read from them: SQLite keeps anything anywhere.

JSON is kept as text, times as seconds since 1970, whole numbers in 64 bits.

`trial.paid_until` and `trial.renewed_at` are on the monotonic clock of the attempt's owner: only their difference, and
whether `renewed_at` has changed, mean anything to others; `study.suggester_renewed_at` is of the same kind. A run has
`began` and `seconds`, as `storage.lifecycle` has it. `rate` is the price of a measured second, where seconds have one;
`labels` are those of the workers of each attempt.
"""

import sys
from collections.abc import Sequence
from math import isfinite
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from farthing.errors import StorageError
from farthing.validation import shown

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "fk": "fk_%(table_name)s_%(referred_table_name)s",
    }
)

Whole = BigInteger().with_variant(Integer, "sqlite")
"""SQLite keeps any whole number in up to 64 bits, and counts up ids in columns of the type INTEGER only."""

study = Table(
    "study",
    metadata,
    Column("id", Whole, primary_key=True),
    Column("name", Text, nullable=False),
    Column("problem", Text, nullable=False),
    Column("measures_cost", Boolean, nullable=False),
    Column("strategy", Text),
    Column("settings", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("version", Whole, nullable=False),
    Column("trials", Whole, nullable=False),
    Column("suggester", Text),
    Column("suggester_renewed_at", Double),
    Column("suggester_lease", Double),
    UniqueConstraint("name"),
    sqlite_autoincrement=True,
)

trial = Table(
    "trial",
    metadata,
    Column("study_id", Whole, ForeignKey("study.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("number", Whole, primary_key=True, autoincrement=False),
    Column("version", Whole, nullable=False),
    Column("state", Text, nullable=False),
    Column("attempt", Whole, nullable=False),
    Column("retries", Whole, nullable=False),
    Column("params", Text, nullable=False),
    Column("fidelity", Text),
    Column("resume_from", Whole),
    Column("predicted_cost", Text),
    Column("predicted_value", Text),
    Column("note", Text),
    Column("value", Double),
    Column("failure", Text),
    Column("checkpoint", Text),
    Column("resume_checkpoint", Text),
    Column("overhead", Double, nullable=False),
    Column("owner", Text),
    Column("tags", Text),
    Column("comment", Text),
    Column("opened_at", Double, nullable=False),
    Column("paid_until", Double, nullable=False),
    Column("renewed_at", Double, nullable=False),
    Column("lease_until", Double),
    Column("finished_at", Double),
    Column("lease", Double),
    Column("waited", Double, nullable=False, server_default=text("0")),
    Column("rate", Double),
    Column("started_at", Double),
    Column("labels", Text),
)
Index("trial_by_version", trial.c.study_id, trial.c.version)

in_flight = trial.c.finished_at.is_(None)
Index("trial_in_flight", trial.c.study_id, trial.c.number, sqlite_where=in_flight, postgresql_where=in_flight)

measurement = Table(
    "measurement",
    metadata,
    Column("study_id", Whole, primary_key=True, autoincrement=False),
    Column("trial", Whole, primary_key=True, autoincrement=False),
    Column("attempt", Whole, primary_key=True, autoincrement=False),
    Column("sequence", Whole, primary_key=True, autoincrement=False),
    Column("version", Whole, nullable=False),
    Column("value", Double),
    Column("amount", Double, nullable=False),
    Column("cost", Text),
    Column("charged", Boolean, nullable=False),
    Column("fidelity", Text),
    Column("step", Whole),
    Column("metrics", Text),
    Column("saved", Text),
    Column("params", Text),
    Column("gradient", Text),
    Column("time", Double, nullable=False),
    Column("rate", Double),
    ForeignKeyConstraint(["study_id", "trial"], ["trial.study_id", "trial.number"], ondelete="CASCADE"),
    sqlite_with_rowid=False,
)

event = Table(
    "event",
    metadata,
    Column("study_id", Whole, ForeignKey("study.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("version", Whole, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("payload", Text, nullable=False),
    Column("time", Double, nullable=False),
    sqlite_with_rowid=False,
)

run = Table(
    "run",
    metadata,
    Column("study_id", Whole, ForeignKey("study.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("number", Whole, primary_key=True, autoincrement=False),
    Column("started_at", Double, nullable=False),
    Column("touched_at", Double, nullable=False),
    Column("began", Double, nullable=False, server_default=text("0")),
    Column("seconds", Double, nullable=False, server_default=text("0")),
    Column("lease", Double, nullable=False, server_default=text("0")),
    sqlite_with_rowid=False,
)


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
