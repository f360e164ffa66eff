"""The seconds for which the workers of a run had nothing to do, where seconds have a price: an event of the history."""

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from farthing.trials.history import Event

IDLE = "workers idle"
"""The kind of event, at the end of a run. Its payload has the `seconds` of all workers together: those before the first
and after the last trial of each, and those for which nothing fitted the budget. Waiting for suggestions is stored with
the trial that was waited for."""


def idle_seconds(events: "Iterable[Event]") -> float:
    return math.fsum(event.payload["seconds"] for event in events if event.kind == IDLE)
