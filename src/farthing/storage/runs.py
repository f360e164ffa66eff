"""The time for which a study has run, without trusting any wall clock.

A study has a time of its own, which passes while at least one run is going. A run *began* at some point of it and has
lasted *seconds* of its own monotonic clock since, so it has reached the sum of both; the study's time is the furthest
that a run has reached. If runs overlap, moments count once, because the later one begins where the earlier one is.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StudyRun:
    """`touched_at` is its last sign of life on the storage's clock; its `lease` is 0 once it has ended."""

    began: float
    seconds: float
    touched_at: float
    lease: float

    @property
    def reached(self) -> float:
        return self.began + self.seconds

    def reached_at(self, now: float) -> float:
        """The study's time that it has reached by now: signs of life come three times per lease, and one may be late.

        This is the one place where the storage's clock counts. A step of that clock just then is worth half a lease.
        """
        silence = now - self.touched_at
        return self.reached + (silence if 0.0 <= silence <= self.lease / 2 else 0.0)


def seconds_covered(runs: Iterable[StudyRun]) -> float:
    return max((run.reached for run in runs), default=0.0)


def next_beginning(runs: Iterable[StudyRun], *, now: float) -> float:
    """The second of its study's time at which a run begins that is started now."""
    return max((run.reached_at(now) for run in runs), default=0.0)
