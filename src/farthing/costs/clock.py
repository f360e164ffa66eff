"""Time is injected, so that budgets, leases and costs can be tested to the second."""

import time
from typing import Protocol

from farthing.errors import InvalidArgument
from farthing.validation import shown


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since 1970."""
        ...

    def elapsed(self) -> float:
        """Seconds since some fixed moment, never going back: differences of it are durations."""
        ...


class SystemClock:
    def now(self) -> float:
        return time.time()

    def elapsed(self) -> float:
        return time.perf_counter()


def as_clock(given: Clock | None) -> Clock:
    """The clock that was given, or the system's."""
    if given is None:
        return SystemClock()
    if isinstance(given, type) or not all(callable(getattr(given, name, None)) for name in ("now", "elapsed")):
        raise InvalidArgument(
            f"A clock must have now() and elapsed(), got {shown(given)}. Leave it out for the system's."
        )
    return given


class FakeClock:
    """Stands still until it is advanced."""

    def __init__(self, start: float = 1_000_000_000.0) -> None:
        self._time = start

    def now(self) -> float:
        return self._time

    def elapsed(self) -> float:
        return self._time

    def advance(self, seconds: float) -> None:
        self._time += seconds
