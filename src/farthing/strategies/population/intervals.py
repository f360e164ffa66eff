"""When the intervals of a population end, in units of the space's trace fidelity."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from farthing.errors import InvalidArgument
from farthing.space import Fidelity, Space

STEPS = "steps"
"""The name of the trace fidelity that a space without one is given."""


@dataclass(frozen=True)
class Intervals:
    """Interval t, counted from 1, trains up to min(t · interval, steps) of the trace fidelity."""

    space: Space
    trace: str
    interval: int
    steps: float

    @property
    def count(self) -> int:
        return math.ceil(self.steps / self.interval)

    def fidelity(self, interval: int) -> Mapping[str, float]:
        """The fidelity at the end of an interval; all other fidelities are at full."""
        return self.space.check_fidelity({self.trace: min(interval * self.interval, self.steps)})


def shaped_space(space: Space, steps: int | None) -> Space:
    """The space, with a trace fidelity of `steps` steps if these are given and it has no fidelity."""
    if steps is None or space.fidelities or space.stages:
        return space
    return Space(space.parameters, fidelities={STEPS: Fidelity(1, steps, integer=True, trace=True)})


def intervals_of(space: Space, *, interval: int, steps: int | None) -> Intervals:
    traces = [name for name, fidelity in space.fidelities.items() if fidelity.trace]
    if len(traces) != 1:
        raise InvalidArgument(
            f"A population trains along one trace fidelity, got {len(traces)} of them in the space. Give steps=, or "
            'declare one: fidelities={"steps": Fidelity(1, 1000, integer=True, trace=True)}.'
        )
    declared = space.fidelities[traces[0]]
    total = declared.high if steps is None else float(steps)
    if total > declared.high:
        raise InvalidArgument(
            f"A population's steps must be within its trace fidelity, got {steps} for {traces[0]!r} up to "
            f"{declared.high:g}. Leave steps= out to train up to that."
        )
    if not declared.low <= interval <= total:
        raise InvalidArgument(
            f"An interval must be between the least {traces[0]!r}, {declared.low:g}, and all of it, {total:g}, "
            f"got {interval}. A tenth to a twentieth of it is usual."
        )
    return Intervals(space, traces[0], interval, total)
