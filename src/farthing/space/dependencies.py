"""Which parameters depend on which: the conditions of a space, seen together."""

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter

from farthing.errors import InvalidParams, InvalidSpace
from farthing.scalars import Option
from farthing.space.parameters import Parameter, with_condition
from farthing.validation import did_you_mean, listed


def resolve_conditions(parameters: Mapping[str, Parameter]) -> dict[str, Parameter]:
    """The parameters with the values in their conditions as the parents declare them; refuses what no parent can be."""
    return {name: _resolved(name, parameters) for name in parameters}


def activation_order(parameters: Mapping[str, Parameter]) -> tuple[str, ...]:
    """The names with every parent before its children; refuses cycles."""
    parents = {name: tuple(parameter.when) for name, parameter in parameters.items()}
    try:
        return tuple(TopologicalSorter(parents).static_order())
    except CycleError as error:
        cycle = " → ".join(repr(name) for name in error.args[1])
        raise InvalidSpace(f"Conditions must not form a cycle, got {cycle}. Drop one of these when=.") from None


def _resolved(name: str, parameters: Mapping[str, Parameter]) -> Parameter:
    parameter = parameters[name]
    when = {}
    for parent, values in parameter.when.items():
        _check_parent(parent, parameters, child=name)
        when[parent] = tuple(_possible(value, parent, parent=parameters[parent], child=name) for value in values)
    return with_condition(parameter, when)


def _check_parent(parent: str, parameters: Mapping[str, Parameter], *, child: str) -> None:
    if parent not in parameters:
        others = [name for name in parameters if name != child]
        remedy = f"Add it, or name one of {listed(others)}." if others else "Add it to the space."
        raise InvalidSpace(
            f"A condition must name a parameter of the same space, got {parent!r} for {child!r}. "
            + did_you_mean(parent, others, otherwise=remedy)
        )
    if not parameters[parent].can_be_parent:
        raise InvalidSpace(
            f"A parent must be a Choice or an Int, got the Float {parent!r} for {child!r}. "
            "Make the parent a Choice, or drop the condition."
        )


def _possible(value: Option, name: str, *, parent: Parameter, child: str) -> Option:
    try:
        return parent.check(value, name=name)
    except InvalidParams as error:
        raise InvalidSpace(f"The condition of {child!r} must name values its parent can take: {error}") from None
