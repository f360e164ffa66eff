"""Reads the numbers that work returns and reports."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, SupportsFloat

from farthing.errors import InvalidParams, InvalidValue
from farthing.fields import Text
from farthing.scalars import as_float, as_whole
from farthing.space import Choice, Fidelity, Space
from farthing.trials import Params, Problem
from farthing.trials.measurement import LARGEST_WHOLE, finite_number
from farthing.trials.objectives import GRADIENT
from farthing.validation import listed, refuse_non_mapping, refuse_unknown, shown


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


# ------------------------------------------------------------
# The position of a report on its trial's curve.


def fidelity_of_report(space: Space, own: Mapping[str, float], named: Mapping[str, object]) -> dict[str, float]:
    """The fidelity a value was measured at: as the report names it, the trial's own where it does not.

    On a trace the amount may be anything up to the trial's own, also below the least that a trial may be asked for:
    a run of ten epochs passes through the first.
    """
    refuse_unknown(named, space.fidelities, what="Fidelities", error=InvalidParams)
    _check_trace_is_named(space, named)
    return {
        name: _amount(fidelity, named[name], name=name, own=own[name]) if name in named else own[name]
        for name, fidelity in space.fidelities.items()
    }


def next_step(given: object, last: int) -> int:
    """The step of a report in a space without fidelities: as given, otherwise one more than the last."""
    if given is None:
        return last + 1
    step = as_whole(given)
    if step is None or not 0 <= step <= LARGEST_WHOLE:
        raise InvalidParams(
            f"A step must be a whole number from 0 to 2**63 - 1, got {shown(given)}. Leave it out to count 1, 2, 3, …"
        )
    return step


def _check_trace_is_named(space: Space, named: Mapping[str, object]) -> None:
    traces = [name for name, fidelity in space.fidelities.items() if fidelity.trace]
    if traces and not any(name in named for name in traces):
        raise InvalidParams(
            f"A report must say how far along {traces[0]!r} it was measured, got none of {', '.join(traces)}. "
            f"Write trial.report(value, {traces[0]}=...)."
        )


def _amount(fidelity: Fidelity, given: object, *, name: str, own: float) -> float:
    if not fidelity.trace:
        return fidelity.check(given, name=name)
    amount = as_whole(given) if fidelity.integer else as_float(given)
    if amount is None:
        kind = "a whole number" if fidelity.integer else "a finite number"
        raise InvalidParams(f"{name} must be {kind}, got {shown(given)}. Count the work done from the very start.")
    if not 0 < amount <= own:
        advice = f"Stop at trial.fidelity[{name!r}]." if amount > 0 else "Count from 1: report what is done."
        raise InvalidParams(f"{name} must be above 0 and at most the trial's own {own:g}, got {shown(given)}. {advice}")
    return amount
