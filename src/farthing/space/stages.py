"""Stages: the parameters of a pipeline, grouped by the step that uses them."""

from collections import Counter
from collections.abc import Mapping
from itertools import chain

from farthing.space.parameters import Parameter, with_condition


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
    """What a parameter is called inside its stage."""
    return name.rpartition(".")[2]


def _renamed_parents(parameter: Parameter, names: Mapping[str, str]) -> Parameter:
    return with_condition(parameter, {names.get(parent, parent): values for parent, values in parameter.when.items()})
