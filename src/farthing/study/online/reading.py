"""Takes the value of a round, from a number or from the function that measures it."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import SupportsFloat

from farthing.costs import Clock
from farthing.errors import InvalidValue
from farthing.study.online.decision import Value
from farthing.trials.measurement import finite_number

log = logging.getLogger("farthing")


@dataclass(frozen=True)
class Reading:
    """A value, None where it was bad, and the seconds of the function that gave it."""

    value: float | None
    seconds: float | None = None


def read(given: Value, *, what: str, round: int, clock: Clock) -> Reading:
    """A function is called and timed; what it raises makes the value bad, and is logged."""
    if not callable(given):
        return Reading(_number_or_bad(given, what=what))
    began = clock.elapsed()
    value = _called(given, what=what, round=round)
    return Reading(value, max(clock.elapsed() - began, 0.0))


def _called(measure: Callable[[], float], *, what: str, round: int) -> float | None:
    try:
        value = measure()
    except Exception as error:
        log.warning("%s could not be measured in round %d, which counts as bad: %r", what, round, error)
        return None
    return _number_or_bad(value, what=what)


def _number_or_bad(value: object, *, what: str) -> float | None:
    """None for NaN and infinity; what is no number at all is a mistake in the program, and refused."""
    if isinstance(value, bool) or not isinstance(value, SupportsFloat):
        return finite_number(value, what=what)
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidValue(
            f"{what} must be one number, got {type(value).__name__}. Return a float from the validation."
        ) from error
    return number if isfinite(number) else None
