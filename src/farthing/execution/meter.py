"""Measures what an attempt costs."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from farthing.costs.clock import Clock
from farthing.trials.measurement import check_kind, cost_amount


@dataclass(frozen=True, slots=True)
class Bill:
    """The cost since the last bill, by kind. `charged` amounts replace the measured seconds of the attempt."""

    cost: dict[str, float]
    charged: bool


class Meter:
    """Counts seconds by kind, until an amount is charged: from then on only charged amounts count.

    Every moment belongs to one kind, at first training. With `measures` false the study's cost is no time, and only
    charges are billed.
    """

    def __init__(self, clock: Clock, *, measures: bool = True) -> None:
        self._clock = clock
        self._measures = measures
        self._kind = "training"
        self._since = clock.elapsed()
        self._seconds: dict[str, float] = {}
        self._billed_seconds = 0.0
        self._charges: dict[str, float] = {}
        self._charging = False

    @property
    def seconds(self) -> float:
        """All that was measured so far, billed or not."""
        return self._billed_seconds + sum(self._seconds.values()) + self._clock.elapsed() - self._since

    def charge(self, amount: object, *, kind: str) -> None:
        check_kind(kind)
        self._charges[kind] = cost_amount(self._charges.get(kind, 0.0) + cost_amount(amount))
        self._charging = True

    def count_as(self, kind: str) -> None:
        """All that is measured from the last bill on is of that kind, unless a `timing` block says otherwise."""
        before, self._kind = self._kind, check_kind(kind)
        if before != kind and before in self._seconds:
            self._seconds[kind] = self._seconds.get(kind, 0.0) + self._seconds.pop(before)

    @contextmanager
    def timing(self, kind: str) -> Iterator[None]:
        outer = self._switch(check_kind(kind))
        try:
            yield
        finally:
            self._switch(outer)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Time inside costs nothing: waiting for a report to be written is not part of the work."""
        self._switch(self._kind)
        try:
            yield
        finally:
            self._since = self._clock.elapsed()

    def bill(self) -> Bill:
        self._switch(self._kind)
        seconds, self._seconds = self._seconds, {}
        charges, self._charges = self._charges, {}
        self._billed_seconds += sum(seconds.values())
        if self._charging:
            return Bill(charges, charged=True)
        return Bill(seconds if self._measures else {}, charged=False)

    def _switch(self, kind: str) -> str:
        """Puts the time since the last switch on the kind it belongs to; returns that kind."""
        now, before = self._clock.elapsed(), self._kind
        if now > self._since:
            self._seconds[before] = self._seconds.get(before, 0.0) + now - self._since
        self._since, self._kind = now, kind
        return before
