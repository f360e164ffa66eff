"""What an online tuner decides for one round."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from farthing.costs import Clock, SystemClock
from farthing.trials import Params


class Stopwatch:
    """Adds up the seconds of the blocks it runs in."""

    def __init__(self, clock: Clock) -> None:
        self.seconds: float | None = None
        self._clock = clock

    @contextmanager
    def running(self) -> Iterator[None]:
        began = self._clock.elapsed()
        try:
            yield
        finally:
            self.seconds = (self.seconds or 0.0) + self._clock.elapsed() - began


@dataclass(frozen=True)
class Decision:
    """What to train with in this round, whether to measure it, and why.

    `measure_before` is set for rewards that are gains, where the value before the round is not known: measure it
    before training and pass it to `observe(…, before=…)`, or leave it out and the gain is shared among the rounds since
    the last measurement.
    """

    params: Params
    measure: bool
    reason: str
    round: int = 0
    measure_before: bool = False
    _stopwatch: Stopwatch = field(default_factory=lambda: Stopwatch(SystemClock()), compare=False, repr=False)

    @contextmanager
    def timing(self) -> Iterator[None]:
        """Charges the seconds inside the block as this round's validation."""
        with self._stopwatch.running():
            yield

    @property
    def timed_seconds(self) -> float | None:
        """The seconds of its `timing()` blocks so far; None without any."""
        return self._stopwatch.seconds
