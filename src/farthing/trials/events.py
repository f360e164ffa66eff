"""Events of a history: what was declared, asked for or changed beside its trials."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from farthing.trials.suggestion import Json
from farthing.trials.trial import Trial

if TYPE_CHECKING:
    from farthing.trials.history import Event, History


NOISE_DECLARED = "noise declared"
"""The kind of event that says so. Its payload has `is_noisy`, and the number of `trials` that there were."""


def noise_event(*, is_noisy: bool, trials: int) -> dict[str, Json]:
    return {"is_noisy": is_noisy, "trials": trials}


def is_noisy(events: "Sequence[Event]") -> bool:
    """The last declaration; noise is assumed where nothing was."""
    return next((bool(event.payload["is_noisy"]) for event in reversed(events) if event.kind == NOISE_DECLARED), True)


# ------------------------------------------------------------
# The seconds for which the workers of a run had nothing to do, where seconds have a price: an event of the history.


IDLE = "workers idle"
"""The kind of event, at the end of a run. Its payload has the `seconds` of all workers together: those before the first
and after the last trial of each, and those for which nothing fitted the budget. Waiting for suggestions is stored with
the trial that was waited for."""


def idle_seconds(events: "Iterable[Event]") -> float:
    return math.fsum(event.payload["seconds"] for event in events if event.kind == IDLE)


# ------------------------------------------------------------
# The first trial of a worker process, an event of the history.
#
# It pays for more than its own work: the process imports libraries, reads data and warms up a device, and its later
# trials do not. Whether a process was new cannot be seen in a trial's number or cost, so it is stored.


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


# ------------------------------------------------------------
# Trials of code that is gone: the stages of a pipeline changed while its study went on.


CHANGED = "code of stages changed"
"""The kind of event that says so; its payload has the versions `before` and `after`, and whether it was `harmless`."""


def change(before: Mapping[str, str], after: Mapping[str, str], *, harmless: bool) -> dict[str, Json]:
    return {"before": dict(before), "after": dict(after), "harmless": harmless}


@dataclass(frozen=True)
class CodeChanges:
    """The changes of a history. Code that was changed back counts again, and so do its trials."""

    times: tuple[float, ...] = ()
    versions: tuple[str, ...] = ()
    """The version before the first change, and after each."""
    groups: Mapping[str, str] = field(default_factory=dict)
    """For each version one that stands for all that give the same values."""

    @classmethod
    def of(cls, events: "Iterable[Event]") -> "CodeChanges":
        changes = [event for event in events if event.kind == CHANGED]
        if not changes:
            return cls()
        keys = [(_key(event.payload["before"]), _key(event.payload["after"])) for event in changes]
        groups = {key: key for pair in keys for key in pair}
        for (before, after), event in zip(keys, changes, strict=True):
            if event.payload["harmless"]:
                old, new = groups[before], groups[after]
                groups = {key: new if group == old else group for key, group in groups.items()}
        return cls(tuple(event.time for event in changes), (keys[0][0], *(after for _, after in keys)), groups)

    def is_outdated(self, trial: Trial) -> bool:
        """Whether the trial ended under code that gives other values than that of today."""
        if not self.times or trial.finished_at is None:
            return False
        then = sum(time <= trial.finished_at for time in self.times)
        return self.groups[self.versions[then]] != self.groups[self.versions[-1]]


def _key(versions: Mapping[str, str]) -> str:
    return json.dumps(versions, sort_keys=True)


# ------------------------------------------------------------
# What users ask of a whole study while it goes: a budget, or to stop.
#
# Both are events of the history, so that every process that works on the study sees them, and a replay knows which
# budget was in force.


BUDGET = "budget set"
"""The kind of event that sets a budget. Its payload has the `limits`, the number of `trials` that there were, and
whether a run was `given` it: a program that is started again gives the same, and changes nothing. `noted` says that a
suggestion which knew it at once says so in its note; a study's first budget was set without that in earlier versions.
"""

STOP = "stop requested"
WITHDRAWN = "stop withdrawn"
"""The study may go on: somebody started a run."""


def budget_event(limits: Mapping[str, Json], *, trials: int, given: bool) -> dict[str, Json]:
    return {"limits": dict(limits), "trials": trials, "given": given, "noted": True}


def limits_in_force(events: "Sequence[Event]") -> Mapping[str, Json] | None:
    """The limits of the last budget that was set; None if none was."""
    return next((event.payload["limits"] for event in reversed(events) if event.kind == BUDGET), None)


def limits_given(events: "Sequence[Event]") -> Mapping[str, Json] | None:
    """The limits that a run was last given."""
    given = (event for event in reversed(events) if event.kind == BUDGET and event.payload["given"])
    return next((event.payload["limits"] for event in given), None)


def budgets_known(events: "Iterable[Event]", number: int) -> "list[Event]":
    """The budgets that the suggestion of that trial knew, if it noted nothing.

    One that was set since the trial before may have come while this one was suggested: whether that knew it is in its
    note (`changed_just_now`). Only of a study's first budget it was once taken for granted.
    """
    budgets = [event for event in events if event.kind == BUDGET]
    return [
        event
        for place, event in enumerate(budgets)
        if event.payload["trials"] < number or (event.payload["trials"] == number and _goes_without_note(place, event))
    ]


def changed_just_now(events: "Sequence[Event]", trials: int) -> bool:
    """Whether a budget was set since the last of so many trials was opened, so that whoever knows it must say so."""
    budgets = [event for event in events if event.kind == BUDGET]
    if not budgets or budgets[-1].payload["trials"] < trials:
        return False
    return not _goes_without_note(len(budgets) - 1, budgets[-1])


def _goes_without_note(place: int, event: "Event") -> bool:
    return place == 0 and not event.payload.get("noted")


def stop_requests(events: "Iterable[Event]") -> int:
    """How often the study was asked to stop."""
    return sum(event.kind == STOP for event in events)


def is_to_stop(events: "Sequence[Event]") -> bool:
    """Whether the last request to stop still stands."""
    last = next((event.kind for event in reversed(events) if event.kind in (STOP, WITHDRAWN)), None)
    return last == STOP
