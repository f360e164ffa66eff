"""Params of one space as params of another: what both have is kept, what only the new one has is filled in."""

from collections.abc import Callable
from typing import Any

from farthing.errors import InvalidParams
from farthing.scalars import as_float
from farthing.space import Choice, Float, Int, Parameter, Space
from farthing.trials import Params

MISSING = object()
"""Stands for a value that the parameter cannot take; None may be an option."""


def in_common(one: Space, other: Space) -> list[str]:
    return [name for name in one.parameters if name in other.parameters]


def carried_over(params: Params, space: Space, *, fill: Callable[[str], Any]) -> Params:
    """The params in that space: values outside its bounds are moved to them, missing ones are filled in by name."""
    whole: dict[str, Any] = {}
    while missing := [name for name in space.active_names(whole) if name not in whole]:
        for name in missing:
            value = _moved(params[name], space.parameters[name]) if name in params else MISSING
            whole[name] = fill(name) if value is MISSING else value
    return space.check(whole)


def _moved(value: Any, parameter: Parameter) -> Any:
    """The nearest value that the parameter can take, if there is one."""
    if isinstance(parameter, Choice):
        return _option(value, parameter)
    number = as_float(value)
    if number is None:
        return MISSING
    within = min(max(number, parameter.low), parameter.high)
    return _on_grid(within, parameter)


def _on_grid(number: float, parameter: Float | Int) -> float | int:
    if isinstance(parameter, Float) and parameter.step is None:
        return float(number)
    step = parameter.step or 1
    return parameter.value_at(round((number - parameter.low) / step))


def _option(value: Any, parameter: Choice) -> Any:
    try:
        return parameter.check(value, name="option")
    except InvalidParams:
        return MISSING
