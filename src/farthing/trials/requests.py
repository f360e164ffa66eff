"""What users ask of a whole study while it goes: a budget, or to stop.

Both are events of the history, so that every process that works on the study sees them, and a replay knows which budget
was in force.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from farthing.trials.suggestion import Json

if TYPE_CHECKING:
    from farthing.trials.history import Event

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
