"""The first trial of a worker process, an event of the history.

It pays for more than its own work: the process imports libraries, reads data and warms up a device, and its later
trials do not. Whether a process was new cannot be seen in a trial's number or cost, so it is stored.
"""

from typing import TYPE_CHECKING

from farthing.trials.suggestion import Json
from farthing.trials.trial import Trial

if TYPE_CHECKING:
    from farthing.trials.history import History

WORKER_BEGAN = "worker began"
"""The kind of event. Its payload has the `trial` and the `attempt` that a process ran first."""


def worker_event(trial: int, attempt: int) -> dict[str, Json]:
    return {"trial": trial, "attempt": attempt}


class FirstTrials:
    """The attempts that were the first of their process, as pairs of trial and attempt: a memo of a history."""

    def __init__(self) -> None:
        self._read = 0
        self._found: frozenset[tuple[int, int]] = frozenset()

    def of(self, history: "History") -> frozenset[tuple[int, int]]:
        events = history.events
        if len(events) < self._read:
            self._read, self._found = 0, frozenset()
        new = [event.payload for event in events[self._read :] if event.kind == WORKER_BEGAN]
        self._found |= {(one["trial"], one["attempt"]) for one in new}
        self._read = len(events)
        return self._found


def began_its_worker(history: "History", trial: Trial) -> bool:
    """Whether the last attempt at this trial was the first work of its process."""
    return (trial.number, trial.attempt) in history.memo(FirstTrials)
