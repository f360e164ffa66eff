"""Measurements of a large history stay in the database: those of a trial are read when something looks at them.

A page about 50 000 trials shows a few of their curves, and a worker that joins a study needs none of the finished ones.
What was paid is asked of all trials or of none, so the first to ask reads it for all, in one pass.
"""

import math
from bisect import bisect_left
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from threading import Lock
from typing import Any, NamedTuple, overload

from sqlalchemy import Connection

from farthing.storage import rows, statements
from farthing.storage.forking import held
from farthing.trials import Measurement, State
from farthing.trials.measurement import LazyMeasurements, Payments

MANY = 50_000
"""Of more measurements than these a first reading takes none but those of the trials in flight."""

BLOCK = 256
"""Trials whose measurements are read together: who looks at one mostly looks at its neighbours next."""

MOST_BLOCKS = 8
"""Blocks that are kept; of trials with 20 measurements, some 40 000 rows."""

IN_FLIGHT = (State.PENDING.value, State.RUNNING.value)

Look = Callable[[Callable[[Connection], Any]], Any]


def all_curves(
    connection: Connection, look: Look, *, study_id: int, version: int
) -> Callable[[Sequence[Any]], Sequence[Measurement]]:
    """From the row of a trial to its measurements: in a large study, those of the trials that have ended are unread."""
    span = {"this_study": study_id, "until": version}
    if connection.scalars(statements.UP_TO_MANY, {**span, "many": MANY}).one() < MANY:
        found = rows.by_trial(chain.from_iterable(rows.plain(connection.execute(statements.ALL_MEASUREMENTS, span))))
        return lambda row: tuple(found.get(row[0], ()))
    shelf = Shelf(look, study_id, version=version)
    result = connection.execute(statements.CHANGED_MEASUREMENTS, {**span, "since": version})
    in_flight = rows.by_trial(chain.from_iterable(rows.plain(result)))

    def unread(row: Sequence[Any]) -> Sequence[Measurement]:
        number, state, attempt, *_ = row
        if state in IN_FLIGHT:
            return tuple(in_flight.get(number, ()))
        return UnreadMeasurements(shelf, number, attempt=attempt)

    return unread


class _Bill(NamedTuple):
    """The cost of an attempt, of one kind and measured, with no savings: most trials have no other."""

    attempt: int
    kind: str | None
    amount: float


NOTHING = _Bill(1, None, 0.0)
"""The bill of a trial without measurements."""


class Shelf:
    """The measurements of one study up to a version. Any thread may ask for them."""

    def __init__(self, look: Look, study_id: int, *, version: int) -> None:
        self._look = look
        self._span = {"this_study": study_id, "until": version}
        self._lock = Lock()
        self._blocks: OrderedDict[int, Mapping[int, Sequence[Measurement]]] = OrderedDict()
        self._bills: dict[int, _Bill | None] | None = None
        self._counts: dict[int, tuple[int, int]] | None = None

    def of(self, number: int) -> Sequence[Measurement]:
        """Reads a trial's measurements. They are read in blocks; the blocks that were used last are kept."""
        key = number // BLOCK
        with held(self._lock):
            if key not in self._blocks:
                self._blocks[key] = self._look(lambda connection: self._block(connection, key))
                if len(self._blocks) > MOST_BLOCKS:
                    self._blocks.popitem(last=False)
            self._blocks.move_to_end(key)
            return self._blocks[key].get(number, ())

    def bill(self, number: int) -> _Bill | None:
        """None where one does not say all: several attempts or kinds, a charge, or savings."""
        if (bills := self._bills) is None:
            with held(self._lock):
                bills = self._bills = self._look(self._all_bills) if self._bills is None else self._bills
        return bills.get(number, NOTHING)

    def counts(self, number: int) -> tuple[int, int]:
        """How many a trial has, and how many of them have metrics: of all trials at once, unless they are read."""
        with held(self._lock):
            if (block := self._blocks.get(number // BLOCK)) is not None:
                points = block.get(number, ())
                return len(points), sum(bool(point.metrics) for point in points)
            if (counts := self._counts) is None:
                counts = self._counts = self._look(self._all_counts)
            return counts.get(number, (0, 0))

    def _all_counts(self, connection: Connection) -> dict[int, tuple[int, int]]:
        found = chain.from_iterable(rows.plain(connection.execute(statements.MEASUREMENT_COUNTS, self._span)))
        return {number: (count, metrics) for number, count, metrics in found}

    def _block(self, connection: Connection, block: int) -> Mapping[int, Sequence[Measurement]]:
        bounds = {**self._span, "first": block * BLOCK, "last": (block + 1) * BLOCK - 1}
        found = connection.execute(statements.BLOCK_OF_MEASUREMENTS, bounds)
        return {number: tuple(own) for number, own in rows.by_trial(chain.from_iterable(rows.plain(found))).items()}

    def _all_bills(self, connection: Connection) -> dict[int, _Bill | None]:
        bills: dict[int, _Bill | None] = {}
        rest: list[Sequence[Any]] = []
        for batch in rows.plain(connection.execute(statements.ALL_PAYMENTS_MADE, self._span)):
            rest += batch
            whole = bisect_left(rest, rest[-1][0], key=itemgetter(0))
            bills.update(_bills(rest[:whole]))
            rest = rest[whole:]
        return {**bills, **dict(_bills(rest))}


def _bills(paid: Sequence[Sequence[Any]]) -> Iterator[tuple[int, _Bill | None]]:
    """By trial, from rows in order: trial, attempt, whether it was charged, savings, cost."""
    costs, end = rows.costs_of([row[-1] for row in paid]), 0
    for number, count in Counter(map(itemgetter(0), paid)).items():
        start, end = end, end + count
        yield number, _bill(paid[start:end], costs[start:end])


def _bill(paid: Sequence[Sequence[Any]], costs: Sequence[Mapping[str, float]]) -> _Bill | None:
    """Amounts are added exactly, as `Trial.costs` adds them."""
    kinds = list(set().union(*costs))
    _, attempt, *_ = paid[0]
    if len(kinds) > 1 or any(row[1] != attempt or row[2] or row[3] for row in paid):
        return None
    amounts = [amount for cost in costs for amount in cost.values()]
    return _Bill(attempt, kinds[0] if kinds else None, math.fsum(amounts))


class UnreadMeasurements(LazyMeasurements):
    """The measurements of one trial, equal to the tuple of them."""

    __slots__ = ("_attempt", "_number", "_shelf")

    def __init__(self, shelf: Shelf, number: int, *, attempt: int) -> None:
        self._shelf, self._number, self._attempt = shelf, number, attempt

    def _all(self) -> Sequence[Measurement]:
        return self._shelf.of(self._number)

    def _bill(self) -> _Bill | None:
        """Returns the latest attempt's, if there was no other: with several it matters which measurements were used."""
        bill = self._shelf.bill(self._number)
        return bill if bill is not None and bill.attempt == self._attempt else None

    def __len__(self) -> int:
        return self._shelf.counts(self._number)[0]

    def __iter__(self) -> Iterator[Measurement]:
        return iter(self._all())

    @overload
    def __getitem__(self, index: int) -> Measurement: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Measurement]: ...
    def __getitem__(self, index: int | slice) -> Measurement | Sequence[Measurement]:
        return self._all()[index]

    def payments(self) -> Payments:
        if bill := self._bill():
            return Payments([bill.attempt], [False], [{} if bill.kind is None else {bill.kind: bill.amount}])
        points = self._all()
        return Payments([p.attempt for p in points], [p.charged for p in points], [p.cost for p in points])

    def savings(self) -> list[Mapping[str, float]]:
        return [] if self._bill() else [point.saved for point in self._all() if point.saved]

    def metric_names(self) -> Iterator[str]:
        has_metrics = self._shelf.counts(self._number)[1] > 0
        return (name for point in (self._all() if has_metrics else ()) for name in point.metrics)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (tuple, UnreadMeasurements)) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]  # as of a tuple of measurements, which have dictionaries

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[type, tuple[list[Measurement]]]:
        """Copies and pickles are plain tuples."""
        return tuple, (list(self),)
