"""Common to the declarations of parameters and fidelities: reading arguments, and the wording of errors."""

import math
from typing import Any, Protocol

from farthing.errors import InvalidParams, InvalidSpace
from farthing.fields.rules import Flag
from farthing.scalars import LARGEST_INTEGER, as_float, as_int
from farthing.validation import shown

# Beyond it, high / low and its logarithm's exponential can overflow.
WIDEST_RATIO = 1e300


class Ranged(Protocol):
    """Anything that has bounds."""

    @property
    def low(self) -> float: ...

    @property
    def high(self) -> float: ...


def store(declaration: object, **fields: object) -> None:
    """Set the fields of a frozen value under construction."""
    for name, value in fields.items():
        object.__setattr__(declaration, name, value)


def read_float(value: object, *, what: str) -> float:
    """A finite number as a float."""
    number = as_float(value)
    if number is None:
        raise InvalidSpace(f"{what} must be a finite number, got {shown(value)}. Write it like 0.1 or 1e-4.")
    return number


def read_int(value: object, *, what: str) -> int:
    """An integer; whole floats such as 10.0 are refused, because a declaration should say what it means."""
    number = as_int(value)
    if number is None:
        raise InvalidSpace(f"{what} must be an integer, got {shown(value)}. Write it like 10, without a point.")
    if abs(number) > LARGEST_INTEGER:
        raise InvalidSpace(
            f"{what} must lie within ±2**40, got {shown(value)}. Scale it down, or use a Float and round in the work."
        )
    return number


def read_flag(value: object, *, what: str) -> bool:
    """True or False, and nothing that is merely truthy."""
    return bool(Flag().checked(value, what=what, advice="Pass True or leave it out.", error=InvalidSpace))


def check_bounds(declaration: Ranged) -> None:
    """Refuse reversed and equal bounds, and a range whose width is no number."""
    if declaration.low >= declaration.high:
        raise InvalidSpace(
            f"Bounds must have low < high, got {declaration!r}. Swap or widen them; a constant needs no parameter."
        )
    if not math.isfinite(declaration.high - declaration.low):
        raise InvalidSpace(
            f"high - low must be a finite double, got {declaration!r}. Bring the bounds closer together."
        )


def check_logarithm(declaration: Ranged) -> None:
    """Refuse a range that has no logarithm, or too wide a one."""
    if declaration.low <= 0:
        raise InvalidSpace(f"A logarithmic range must have low > 0, got {declaration!r}. Raise low, or drop log=.")
    if declaration.high / declaration.low > WIDEST_RATIO:
        raise InvalidSpace(f"high / low must be at most 1e300, got {declaration!r}. Bring the bounds closer together.")


def misfit(declaration: object) -> InvalidSpace:
    """The refusal of a step that does not lead from low to high."""
    return InvalidSpace(f"The step must divide high - low, got {declaration!r}. Move a bound, or choose another step.")


def step_on_logarithm(declaration: object) -> InvalidSpace:
    """The refusal of a step on a logarithmic scale."""
    return InvalidSpace(f"A step must be on a linear scale, got {declaration!r}. Drop log= or step=.")


def outside(declaration: Ranged, value: object, *, name: str) -> InvalidParams:
    """The refusal of a value out of bounds."""
    bounds = f"[{declaration.low!r}, {declaration.high!r}]"
    return InvalidParams(f"{name} must lie in {bounds}, got {shown(value)}. Choose a value within the bounds.")


def off_grid(value: object, *, step: float, nearest: float, name: str) -> InvalidParams:
    """The refusal of a value between two steps."""
    return InvalidParams(
        f"{name} must be low plus a multiple of its step {step!r}, got {shown(value)}. The nearest such is {nearest!r}."
    )


def differing(**options: tuple[Any, Any]) -> dict[str, Any]:
    """The options, given as (value, default), that differ from their defaults."""
    return {name: value for name, (value, default) in options.items() if value != default}


def call_text(declaration: object, *arguments: object, **options: object) -> str:
    """The Python expression that makes the declaration."""
    texts = [*map(repr, arguments), *(f"{name}={value!r}" for name, value in options.items())]
    return f"{type(declaration).__name__}({', '.join(texts)})"
