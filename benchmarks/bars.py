"""Bars that a measured figure must clear, and the results that hold them."""

from collections.abc import Sequence
from typing import Any, TypedDict


class Bar(TypedDict):
    """`measured` is None when it could not be measured, as where a peer gave no answer: such a bar does not hold."""

    what: str
    bar: str
    measured: Any
    holds: bool


class Result(TypedDict):
    """What a speed benchmark returns: its figures, its bars, and what it had to do without and why."""

    figures: dict[str, Any]
    bars: list[Bar]
    left_out: list[str]


def at_most(what: str, *, limit: float, measured: float | None, unit: str) -> Bar:
    holds = measured is not None and measured <= limit
    return Bar(what=what, bar=f"≤ {limit:g} {unit}", measured=measured, holds=holds)


def none_of(what: str, *, unwanted: Sequence[str], found: Sequence[str] | None) -> Bar:
    measured = None if found is None else ", ".join(found) or "none"
    return Bar(
        what=what, bar=f"none of {', '.join(unwanted)}", measured=measured, holds=found is not None and not found
    )
