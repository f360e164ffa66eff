"""Reads the numbers that work returns and reports."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, SupportsFloat

from farthing.errors import InvalidParams, InvalidValue
from farthing.fields import Text
from farthing.space import Choice, Space
from farthing.trials import Params, Problem
from farthing.trials.measurement import finite_number
from farthing.validation import listed, refuse_non_mapping, refuse_unknown

GRADIENT = "gradient"
"""The key of a returned mapping, or of a command's line, that has the derivatives; one number there is a metric."""


@dataclass(frozen=True, slots=True)
class Result:
    """A value with what else came along, its gradient as it came. No value: the last report counts."""

    value: float | None = None
    metrics: dict[str, float | None] = field(default_factory=dict)
    gradient: Any = None


def read_result(returned: object, problem: Problem) -> Result:
    """The value that the work returned: a number, a mapping that holds it by its name, or nothing.

    Where a problem has several objectives or limits, it is a mapping that holds all of them.
    """
    name = problem.value
    if returned is None:
        return Result()
    if not isinstance(returned, Mapping):
        return Result(read_value(returned, name=name), with_needed({}, problem))
    if name not in returned and problem.is_simple:
        raise InvalidValue(
            f"A returned mapping must hold {name!r}, got {listed(returned) or 'an empty one'}. "
            f"Return {{{name!r}: ...}} or the number alone."
        )
    _require(returned, problem)
    others = {str(key): number for key, number in returned.items() if key != name and _is_number(number)}
    gradient = None if GRADIENT in others else returned.get(GRADIENT)
    metrics = with_needed({**others, **{key: returned[key] for key in problem.needed if key in returned}}, problem)
    return Result(read_value(returned[name], name=name), metrics, gradient)


def read_report(value: object, metrics: Mapping[str, object] | None, problem: Problem) -> Result:
    """A reported value with its metrics: a number, or a mapping that holds it and others by name."""
    if not isinstance(value, Mapping):
        return Result(read_value(value, name=problem.value), with_needed(metrics, problem))
    found = read_result(value, problem)
    return Result(found.value, read_metrics(metrics) | found.metrics, found.gradient)


def with_needed(metrics: Mapping[str, object] | None, problem: Problem) -> dict[str, float | None]:
    """The metrics, once it is certain that those which the problem needs are numbers."""
    given = metrics or {}
    _require({problem.value: None, **given}, problem)
    found = read_metrics({name: number for name, number in given.items() if name not in problem.needed})
    return found | {name: read_value(given[name], name=name) for name in problem.needed if name in given}


def _require(given: Mapping[str, object], problem: Problem) -> None:
    missing = [name for name in problem.returned if name not in given]
    if missing:
        raise InvalidValue(
            f"A result must have {listed(problem.returned)}, got none called {' or '.join(map(repr, missing))}. "
            f"Return or report a mapping: {{{', '.join(f'{one!r}: …' for one in problem.returned)}}}."
        )


def is_result(returned: object, problem: Problem) -> bool:
    """Whether the work meant its value: a number, also one that is not finite, or a mapping that holds it."""
    if isinstance(returned, Mapping):
        return any(name in returned for name in problem.named)
    number = _element(returned)
    return isinstance(number, SupportsFloat) and not isinstance(number, bool) and not hasattr(number, "__len__")


def read_value(value: object, *, name: str) -> float:
    """A finite number, also out of an array or tensor of one element."""
    return finite_number(_element(value), what=f"The value {name!r}")


def read_metrics(metrics: Mapping[str, object] | None) -> dict[str, float | None]:
    """Numbers by name; one that is not finite is kept as unknown, because it decides nothing."""
    return {Text().read(str(name)): _metric(number, name=str(name)) for name, number in (metrics or {}).items()}


def read_gradient(gradient: object, space: Space, params: Params) -> dict[str, float] | None:
    """The derivative of the value along some of the numbers among the trial's params, each in its own units."""
    if gradient is None:
        return None
    refuse_non_mapping(gradient, what="A gradient", error=InvalidValue)
    assert isinstance(gradient, Mapping)
    numbers = [name for name in params if not isinstance(space.parameters[name], Choice)]
    refuse_unknown(gradient, numbers, what="A gradient's names (active numeric params)", error=InvalidParams)
    slopes = {
        name: finite_number(_element(slope), what=f"The gradient along {name!r}") for name, slope in gradient.items()
    }
    return slopes or None


def _metric(given: object, *, name: str) -> float | None:
    number = _element(given)
    if number is None or (isinstance(number, float) and not math.isfinite(number)):
        return None
    return finite_number(number, what=f"The metric {name!r}")


def _is_number(given: object) -> bool:
    return type(_element(given)) in (int, float)


def _element(number: object) -> object:
    """The one element of an array or tensor; float() would warn about some of them."""
    item: Callable[[], object] | None = getattr(number, "item", None)
    if isinstance(number, (int, float)) or item is None:
        return number
    try:
        return item()
    except (TypeError, ValueError, RuntimeError):
        return number
