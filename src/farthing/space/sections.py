"""What may stand in the three sections of a space: params, fidelities and stages."""

from collections.abc import Mapping
from typing import Any

from farthing.errors import InvalidSpace
from farthing.space import names
from farthing.space.fidelity import Fidelity
from farthing.space.parameters import Choice, Float, Int
from farthing.validation import refuse_non_mapping, shown


def check_sections(params: Mapping[str, Any], fidelities: Mapping[str, Any], *, stages: Mapping[str, Any]) -> None:
    """Refuse sections that do not go together, wrong names, and declarations that are none."""
    _check_params(params)
    _check_fidelities(fidelities)
    names.check_distinct(params, fidelities)
    _check_stages(stages)
    if stages and (params or fidelities):
        raise _not_beside_stages("params" if params else "fidelities")
    if not params and not any(stages.values()):
        raise InvalidSpace("A space must have at least one parameter, got none. Add one, such as a Float.")


def _check_params(params: Mapping[str, Any]) -> None:
    refuse_non_mapping(params, what="The parameters of a space", error=InvalidSpace)
    names.check_names(params, role="parameter")
    for name, declaration in params.items():
        if not isinstance(declaration, Float | Int | Choice):
            raise InvalidSpace(
                f"A parameter must be a Float, an Int or a Choice, got {shown(declaration)} for {name!r}. "
                "Declare it like Float(0.1, 1.0)."
            )


def _check_fidelities(fidelities: Mapping[str, Any]) -> None:
    refuse_non_mapping(fidelities, what="The fidelities of a space", error=InvalidSpace)
    names.check_names(fidelities, role="fidelity")
    for name, declaration in fidelities.items():
        if not isinstance(declaration, Fidelity):
            raise InvalidSpace(
                f"A fidelity must be a Fidelity, got {shown(declaration)} for {name!r}. "
                "Declare it like Fidelity(1, 50, integer=True)."
            )


def _check_stages(stages: Mapping[str, Any]) -> None:
    refuse_non_mapping(stages, what="The stages of a space", error=InvalidSpace)
    for stage, params in stages.items():
        names.check_identifier(stage, role="stage")
        _check_params(params)


def _not_beside_stages(section: str) -> InvalidSpace:
    remedy = {"params": "Move the params into a stage.", "fidelities": "Drop the fidelities, or drop the stages."}
    return InvalidSpace(f"Stages must stand alone in a space, got {section} beside them. {remedy[section]}")
