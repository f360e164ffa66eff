"""Validates a space: its params, fidelities and stages, and their names."""

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any

from farthing.errors import InvalidParams, InvalidSpace
from farthing.scalars import Option
from farthing.space.fidelity import Fidelity
from farthing.space.parameters import Choice, Float, Int, Parameter, with_condition
from farthing.validation import did_you_mean, listed, refuse_non_mapping, refuse_unknown, shown

# Command templates fill these in and reports use them as keys, so a parameter of the same name would be ambiguous.
RESERVED = frozenset({"step", "value", "cost", "metrics", "gradient", "resume_dir", "checkpoint_dir", "trial"})
INSIDE_NAMES = ".-/"
"""Characters that may stand inside the name of a value or of a parameter, but in no stage's, which are arguments."""


def check_parts(params: Mapping[str, Any], fidelities: Mapping[str, Any], *, stages: Mapping[str, Any]) -> None:
    """Refuse parts that do not go together, wrong names, and declarations that are none."""
    _check_params(params, is_staged=False)
    _check_fidelities(fidelities)
    _check_distinct(params, fidelities)
    _check_stages(stages)
    if stages and (params or fidelities):
        raise _not_beside_stages("params" if params else "fidelities")
    if not params and not any(stages.values()):
        raise InvalidSpace("A space must have at least one parameter, got none. Add one, such as a Float.")


def check_retired(retired: Mapping[str, Any], parameters: Mapping[str, Float | Int | Choice]) -> dict[str, Any]:
    """The canonical values of the retired parameters, which must be parameters, but not all of them."""
    refuse_non_mapping(retired, what="The retired parameters of a space", error=InvalidSpace)
    refuse_unknown(retired, parameters, what="Retired parameters", error=InvalidSpace)
    if retired and len(retired) == len(parameters):
        raise InvalidSpace("A space must have a parameter that is not retired, got none. Keep one that is tuned.")
    return {name: parameters[name].check(value, name=name) for name, value in retired.items()}


def _check_params(params: Mapping[str, Any], *, is_staged: bool) -> None:
    refuse_non_mapping(params, what="The parameters of a space", error=InvalidSpace)
    _check_names(params, role="parameter", also="" if is_staged else INSIDE_NAMES)
    for name, declaration in params.items():
        if not isinstance(declaration, Float | Int | Choice):
            raise InvalidSpace(
                f"A parameter must be a Float, an Int or a Choice, got {shown(declaration)} for {name!r}. "
                "Declare it like Float(0.1, 1.0)."
            )


def _check_fidelities(fidelities: Mapping[str, Any]) -> None:
    refuse_non_mapping(fidelities, what="The fidelities of a space", error=InvalidSpace)
    _check_names(fidelities, role="fidelity")
    for name, declaration in fidelities.items():
        if not isinstance(declaration, Fidelity):
            raise InvalidSpace(
                f"A fidelity must be a Fidelity, got {shown(declaration)} for {name!r}. "
                "Declare it like Fidelity(1, 50, integer=True)."
            )


def _check_stages(stages: Mapping[str, Any]) -> None:
    refuse_non_mapping(stages, what="The stages of a space", error=InvalidSpace)
    for stage, params in stages.items():
        _check_identifier(stage, role="stage")
        _check_params(params, is_staged=True)


def _not_beside_stages(section: str) -> InvalidSpace:
    remedy = {"params": "Move the params into a stage.", "fidelities": "Drop the fidelities, or drop the stages."}
    return InvalidSpace(f"Stages must stand alone in a space, got {section} beside them. {remedy[section]}")


def _check_names(names: Iterable[object], *, role: str, also: str = "") -> None:
    """Refuse names that are no identifiers or that reports and commands use; `lambda` and other keywords are fine.

    The characters in `also` may stand inside a name.
    """
    for name in names:
        _check_identifier(_with_underscores(name, also), role=role, given=name)
        if name in RESERVED:
            raise InvalidSpace(
                f"The name of a {role} must not be a word of reports and commands, got {name!r}. "
                f"Rename it, for example to 'my_{name}'."
            )


def is_name(name: str) -> bool:
    """Whether a value may be called so: `val/loss` is a name."""
    return as_identifier(name).isidentifier()


def as_identifier(name: str) -> str:
    """With underscores for what only the names of values may hold: `val_loss` of `val/loss`."""
    return str(_with_underscores(name, INSIDE_NAMES))


def _with_underscores(name: object, characters: str) -> object:
    """The name with underscores for those characters, except at its ends."""
    if not isinstance(name, str) or len(name) < 3:
        return name
    return name[0] + name[1:-1].translate(str.maketrans(characters, "_" * len(characters))) + name[-1]


def _check_identifier(name: object, *, role: str, given: object = None) -> None:
    """Refuse a name that could not be a keyword argument."""
    if not (isinstance(name, str) and name.isidentifier()):
        raise InvalidSpace(
            f"The name of a {role} must be an identifier, got {shown(name if given is None else given)}. "
            "Use letters, digits and underscores, such as 'learning_rate'."
        )


def _check_distinct(parameters: Iterable[str], fidelities: Iterable[str]) -> None:
    """Refuse a name that stands for a parameter and for a fidelity."""
    for name in sorted(set(parameters) & set(fidelities)):
        raise InvalidSpace(
            f"A parameter and a fidelity must have different names, got {name!r} for both. Rename one of them."
        )


# ------------------------------------------------------------
# Which parameters depend on which: the conditions of a space, seen together.


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
