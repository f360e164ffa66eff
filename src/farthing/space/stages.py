"""Stages: the parameters of a pipeline, grouped by the step that uses them."""

import json
from collections import Counter
from collections.abc import Hashable, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

from farthing.errors import InvalidParams
from farthing.space.parameters import Parameter, with_condition
from farthing.validation import shown

if TYPE_CHECKING:
    from farthing.space.space import Space

Prefix = tuple[tuple[str, tuple[tuple[str, Hashable], ...]], ...]
"""Stages in order, each with the names and values of its active parameters."""


def flatten(stages: Mapping[str, Mapping[str, Parameter]]) -> tuple[dict[str, Parameter], dict[str, tuple[str, ...]]]:
    """One mapping of all parameters, and the names of each stage in it.

    A name that several stages use becomes `stage.name` in each of them. A condition names a parameter of its own stage
    as that stage does, and any other by its name in the whole.
    """
    uses = Counter(chain.from_iterable(stages.values()))
    parameters: dict[str, Parameter] = {}
    layout: dict[str, tuple[str, ...]] = {}
    for stage, own in stages.items():
        names = {name: f"{stage}.{name}" if uses[name] > 1 else name for name in own}
        parameters |= {names[name]: _renamed_parents(parameter, names) for name, parameter in own.items()}
        layout[stage] = tuple(names.values())
    return parameters, layout


def local_name(name: str) -> str:
    """The name of a parameter inside its stage."""
    return name.rpartition(".")[2]


def prefix(space: "Space", params: Mapping[str, Any], length: int) -> Prefix:
    """The inputs of the first `length` stages: configurations with the same prefix share their outputs.

    `params` are canonical, as `Space.check`, the encoder and every trial have them. Parameters that are not active are
    left out.
    """
    if not 0 <= length <= len(space.stages):
        raise InvalidParams(
            f"A prefix must have 0 to {len(space.stages)} of the stages, got {shown(length)}. Count from the first."
        )
    first = tuple(space.stages)[:length]
    return tuple(
        (stage, tuple((local_name(name), _plain_zero(params[name])) for name in space.stages[stage] if name in params))
        for stage in first
    )


def prefix_key(space: "Space", params: Mapping[str, Any], length: int) -> str:
    """The prefix as JSON text, equal where the prefixes are equal: the name that events and caches know it by."""
    return json.dumps(
        {stage: dict(own) for stage, own in prefix(space, params, length)}, separators=(",", ":"), allow_nan=False
    )


def _plain_zero(value: Any) -> Any:
    """-0.0 equals 0.0 and must read alike."""
    return 0.0 if isinstance(value, float) and value == 0.0 else value


def _renamed_parents(parameter: Parameter, names: Mapping[str, str]) -> Parameter:
    return with_condition(parameter, {names.get(parent, parent): values for parent, values in parameter.when.items()})
