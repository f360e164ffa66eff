"""Plain Python numbers and scalars from any kind of number, NumPy's included, without importing NumPy."""

import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, TypeAlias

Scalar: TypeAlias = str | int | float | bool | None
Option: TypeAlias = Scalar | tuple[Scalar, ...]

# Values travel through JSON, logarithms and other people's arithmetic; these absorb the rounding, nothing more.
ROUNDING = 1e-12
GRID_TOLERANCE = 1e-9

# An integer of this size still falls into its own bin when encoded as a double, on a logarithmic scale too.
LARGEST_INTEGER = 2**40


def plain(value: Any) -> Any:
    """A NumPy (or torch) scalar as the Python object it stands for; anything else unchanged."""
    return value.item() if getattr(value, "shape", None) == () and hasattr(value, "item") else value


def as_float(value: object) -> float | None:
    """The finite number that was given; None when it is not one. Booleans are not numbers."""
    if type(value) is float:  # most are, and asking what else they could be takes ten times as long
        return value if math.isfinite(value) else None
    number = plain(value)
    if isinstance(number, bool) or not isinstance(number, Real):
        return None
    try:
        result = float(number)
    except OverflowError:
        return None
    return result if math.isfinite(result) else None


def as_int(value: object) -> int | None:
    """The integer that was given; None for anything else, whole floats included."""
    if type(value) is int:
        return value
    number = plain(value)
    return None if isinstance(number, bool) or not isinstance(number, Integral) else int(number)


def as_whole(value: object) -> int | None:
    """The whole number that was given, as 3 or as 3.0 (tables and other languages turn integers into floats)."""
    exact, number = as_int(value), as_float(value)
    if exact is not None or number is None:
        return exact
    nearest = round(number)
    return nearest if abs(number - nearest) <= GRID_TOLERANCE else None


def is_number(text: str) -> bool:
    """Whether a text reads as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def as_scalar(value: object) -> Scalar:
    """The JSON scalar that was given, of exactly Python's own type; TypeError for anything else."""
    given = plain(value)
    if given is None or isinstance(given, bool):
        return given
    if isinstance(given, str):
        return _as_text(given)
    exact, number = as_int(given), as_float(given)
    if exact is None and number is None:
        raise TypeError("not a JSON scalar")
    return number if exact is None else exact


def as_option(value: object) -> Option:
    """A scalar, or a tuple of scalars; lists are tuples that came through JSON or TOML. TypeError for anything else."""
    return tuple(as_scalar(part) for part in value) if isinstance(value, list | tuple) else as_scalar(value)


def with_tuples(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """The params with tuples where JSON made lists of them."""
    if list not in map(type, params.values()):
        return params
    return {name: tuple(value) if type(value) is list else value for name, value in params.items()}


def _as_text(given: str) -> str:
    try:
        given.encode()
    except UnicodeEncodeError:
        raise TypeError("not text that files and databases can hold") from None
    return str.__str__(given)


def clipped(number: float, low: float, high: float, *, slack: float = 0.0) -> float | None:
    """The number within its bounds, rounding errors clipped; None when it lies truly outside."""
    nearest = min(max(number, low), high)
    return nearest if math.isclose(number, nearest, rel_tol=ROUNDING, abs_tol=slack) else None
