"""How an attempt at a trial ended."""

from collections.abc import Sequence
from dataclasses import dataclass

from farthing.trials.measurement import Measurement
from farthing.trials.trial import Failure, State


@dataclass(frozen=True, slots=True)
class Attempt:
    """Names a trial and the attempt at it that writes: the fencing number."""

    number: int
    attempt: int


@dataclass(frozen=True)
class Outcome:
    """The end of an attempt: done, failed or pruned.

    `measurements` are recorded with it, the value's own among them; `checkpoint` names the checkpoint that it left.
    `retry` puts a failed trial back to pending.
    """

    state: State
    value: float | None = None
    measurements: Sequence[Measurement] = ()
    failure: Failure | None = None
    checkpoint: str | None = None
    retry: bool = False
