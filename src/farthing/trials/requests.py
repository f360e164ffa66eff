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
whether a run was `given` it: a program that is started again gives the same, and changes nothing."""

STOP = "stop requested"
WITHDRAWN = "stop withdrawn"
"""The study may go on: somebody started a run."""


def budget_event(limits: Mapping[str, Json], *, trials: int, given: bool) -> dict[str, Json]:
    return {"limits": dict(limits), "trials": trials, "given": given}


def limits_in_force(events: "Sequence[Event]") -> Mapping[str, Json] | None:
    """The limits of the last budget that was set; None if none was."""
    return next((event.payload["limits"] for event in reversed(events) if event.kind == BUDGET), None)


def limits_given(events: "Sequence[Event]") -> Mapping[str, Json] | None:
    """The limits that a run was last given."""
    given = (event for event in reversed(events) if event.kind == BUDGET and event.payload["given"])
    return next((event.payload["limits"] for event in given), None)


def budgets_known(events: "Iterable[Event]", number: int) -> "list[Event]":
    """The budgets that the suggestion of that trial knew, if it noted nothing.

    The first was set before anything was suggested under it. A later one may have come while the next trial was
    suggested: whether that knew it is in its note (`changed_just_now`).
    """
    budgets = [event for event in events if event.kind == BUDGET]
    return [
        event
        for place, event in enumerate(budgets)
        if event.payload["trials"] < number or (place == 0 and event.payload["trials"] == number)
    ]


def changed_just_now(events: "Sequence[Event]", trials: int) -> bool:
    """Whether the budget was changed since the last of so many trials was opened."""
    budgets = [event for event in events if event.kind == BUDGET]
    return len(budgets) > 1 and bool(budgets[-1].payload["trials"] >= trials)


def stop_requests(events: "Iterable[Event]") -> int:
    """How often the study was asked to stop."""
    return sum(event.kind == STOP for event in events)


def is_to_stop(events: "Sequence[Event]") -> bool:
    """Whether the last request to stop still stands."""
    last = next((event.kind for event in reversed(events) if event.kind in (STOP, WITHDRAWN)), None)
    return last == STOP
