"""The form that the payload of each event must have, so that whoever reads a stored one can rely on it."""

from collections.abc import Callable, Mapping
from typing import Any

from farthing.errors import FarthingError
from farthing.trials.durations import DURATION
from farthing.trials.events import BUDGET, CHANGED, IDLE, NOISE_DECLARED, WORKER_BEGAN
from farthing.trials.extension import EXTENDED, Extension
from farthing.trials.learned import LEARNED, Learned
from farthing.trials.prefixes import EVICTED

PARTS: Mapping[str, Mapping[str, type]] = {
    BUDGET: {"limits": dict, "trials": int, "given": bool},
    CHANGED: {"before": dict, "after": dict, "harmless": bool},
    DURATION: {"decade": int, "results": int, "trials": int},
    EVICTED: {"prefix": str},
    EXTENDED: {"before": dict, "after": dict, "fill": dict, "trials": int},
    IDLE: {"seconds": float},
    LEARNED: {"sources": list, "starts": list, "random": list, "costs": list},
    NOISE_DECLARED: {"is_noisy": bool, "trials": int},
    WORKER_BEGAN: {"trial": int, "attempt": int},
}
"""By the kind of event the parts that are read, with their types. Other kinds have payloads that nobody reads."""

READERS: Mapping[str, Callable[[Mapping[str, Any]], object]] = {
    EXTENDED: Extension.from_json,
    LEARNED: Learned.from_json,
}


def fault_of_payload(kind: str, payload: object) -> str | None:
    """The fault in the payload of an event of that kind; None if there is none."""
    parts = PARTS.get(kind, {})
    if parts and not isinstance(payload, dict):
        return "it is no mapping"
    found = payload if isinstance(payload, dict) else {}
    for name, form in parts.items():
        if type(found.get(name)) is not form:
            return f"its {name!r} is no {form.__name__}"
    return _fault_of_reading(kind, found)


def _fault_of_reading(kind: str, payload: Mapping[str, Any]) -> str | None:
    if kind not in READERS:
        return None
    try:
        READERS[kind](payload)
    except (AttributeError, FarthingError, KeyError, TypeError, ValueError) as error:
        return f"it cannot be read ({error})"
    return None
