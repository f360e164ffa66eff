"""Conditions: a parameter that is active only while its parents have certain values."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from farthing.errors import InvalidSpace
from farthing.scalars import Option, Scalar, as_scalar
from farthing.validation import shown

Condition: TypeAlias = dict[str, tuple[Option, ...]]
"""For every parent the values under which the parameter is active; empty when it always is."""

When: TypeAlias = Mapping[str, Scalar | Sequence[Scalar]] | None
"""How a user writes a condition."""


def read_condition(when: When) -> Condition:
    """The condition a user wrote, with every value or sequence of values as a tuple."""
    if when is None:
        return {}
    if not isinstance(when, Mapping):
        raise InvalidSpace(
            f"when= must map the names of parents to values, got {shown(when)}. "
            "Write it like when={'optimizer': 'sgd'}."
        )
    return {_parent_name(parent): _values(parent, values) for parent, values in when.items()}


def is_active(when: Condition, chosen: Mapping[str, Any]) -> bool:
    """Whether every parent is among the chosen (that is, active itself) and has one of its values."""
    return not when or all(parent in chosen and chosen[parent] in values for parent, values in when.items())


def _parent_name(name: object) -> str:
    if not isinstance(name, str):
        raise InvalidSpace(f"when= must name its parents by strings, got {shown(name)}. Use the parameter's name.")
    return name


def _values(parent: str, values: object) -> tuple[Scalar, ...]:
    several = values if isinstance(values, Sequence) and not isinstance(values, str) else (values,)
    try:
        result = tuple(as_scalar(value) for value in several)
    except TypeError:
        result = ()
    if not result:
        raise InvalidSpace(
            f"when= must give a parent one or more values, got {shown(values)} for {parent!r}. "
            "Write one value or a list of them: strings, finite numbers, booleans or None."
        )
    return result
