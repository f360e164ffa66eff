"""Whether equal params may give different values, as the user declares it: an event of the history."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from farthing.trials.suggestion import Json

if TYPE_CHECKING:
    from farthing.trials.history import Event

NOISE_DECLARED = "noise declared"
"""The kind of event that says so. Its payload has `is_noisy`, and the number of `trials` that there were."""


def noise_event(*, is_noisy: bool, trials: int) -> dict[str, Json]:
    return {"is_noisy": is_noisy, "trials": trials}


def is_noisy(events: "Sequence[Event]") -> bool:
    """What was declared last; noise is assumed where nothing was."""
    return next((bool(event.payload["is_noisy"]) for event in reversed(events) if event.kind == NOISE_DECLARED), True)
