"""The space: what may be tuned, as one immutable value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from farthing.errors import InvalidParams, InvalidSpace
from farthing.scalars import Scalar
from farthing.space import serialization
from farthing.space.conditions import is_active
from farthing.space.dependencies import activation_order, resolve_conditions
from farthing.space.fidelity import Fidelity
from farthing.space.parameters import Choice, Parameter
from farthing.space.space_validation import check_parts
from farthing.space.stages import flatten, local_name
from farthing.space.toml import read_toml, write_toml
from farthing.space.validation import store
from farthing.validation import refuse_non_mapping, refuse_unknown, shown

if TYPE_CHECKING:
    from farthing.space.encoding import Encoder

T = TypeVar("T")


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Space:
    """The parameters of a study, with fidelities or in stages. A plain number or text is a constant.

    `parameters` holds them all under the names they have in a trial's params. In a staged space that is the plain
    name if one stage has it and `stage.name` if several have; `stages` lists the names of each stage. Two
    spaces are equal when they declare the same in the same order.
    """

    parameters: Mapping[str, Parameter]
    fidelities: Mapping[str, Fidelity]
    stages: Mapping[str, tuple[str, ...]]
    _order: tuple[str, ...]

    def __init__(
        self,
        params: Mapping[str, Parameter | Scalar] | None = None,
        *,
        fidelities: Mapping[str, Fidelity] | None = None,
        stages: Mapping[str, Mapping[str, Parameter]] | None = None,
    ) -> None:
        plain, amounts, staged = declared(params), _given(fidelities), _given(stages)
        check_parts(plain, amounts, stages=staged)
        flat, layout = flatten(staged) if staged else (plain, {})
        parameters = resolve_conditions(flat)
        store(
            self,
            parameters=MappingProxyType(parameters),
            fidelities=MappingProxyType(dict(amounts)),
            stages=MappingProxyType(layout),
            _order=activation_order(parameters),
        )

    def __eq__(self, other: object) -> bool:
        return self._content == other._content if isinstance(other, Space) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._content)

    def __repr__(self) -> str:
        if self.stages:
            return f"Space(stages={self._parameters_by_stage!r})"
        fidelities = f", fidelities={dict(self.fidelities)!r}" if self.fidelities else ""
        return f"Space({dict(self.parameters)!r}{fidelities})"

    def __reduce__(self) -> tuple[Callable[[Mapping[str, Any]], Space], tuple[serialization.Table]]:
        return Space.from_json, (self.to_json(),)

    @cached_property
    def encoder(self) -> Encoder:
        """The one translator to and from the unit cube."""
        from farthing.space.encoding import Encoder  # brings NumPy, which the command line and workers can do without

        return Encoder(self.parameters, self.fidelities, order=self._order)

    @property
    def full_fidelity(self) -> dict[str, float]:
        """Every fidelity at its full amount."""
        return {name: fidelity.high for name, fidelity in self.fidelities.items()}

    def check(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The canonical params, in the space's order; InvalidParams when they do not belong to the space."""
        refuse_non_mapping(params, what="Params", error=InvalidParams)
        refuse_unknown(params, self.parameters, what="Parameters", error=InvalidParams)
        checked: dict[str, Any] = {}
        for name in self._order:
            if is_active(self.parameters[name].when, checked):
                checked[name] = self._check_active(name, params)
            elif name in params:
                raise self._inactive(name, params)
        return {name: checked[name] for name in self.parameters if name in checked}

    def check_fidelity(self, values: Mapping[str, Any] | None) -> dict[str, float]:
        """The canonical fidelity, in the space's order; one that is not named is at its full amount."""
        given = {} if values is None else values
        refuse_non_mapping(given, what="A fidelity", error=InvalidParams)
        refuse_unknown(given, self.fidelities, what="Fidelities", error=InvalidParams)
        amounts = self.full_fidelity | dict(given)
        return {name: fidelity.check(amounts[name], name=name) for name, fidelity in self.fidelities.items()}

    def active_names(self, params: Mapping[str, Any]) -> list[str]:
        """The parameters that are active under these params, in the space's order, present or not."""
        active: set[str] = set()
        for name in self._order:
            chosen = {parent: value for parent, value in params.items() if parent in active}
            if is_active(self.parameters[name].when, chosen):
                active.add(name)
        return [name for name in self.parameters if name in active]

    def stage_params(self, stage: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The active params of one stage, under the names they have inside it."""
        refuse_unknown([stage], self.stages, what="Stages", error=InvalidParams)
        return {local_name(name): params[name] for name in self.stages[stage] if name in params}

    def to_json(self) -> serialization.Table:
        """The space as plain tables, from which `Space.from_json` makes an equal space."""
        if self.stages:
            return {"stages": self._stage_tables}
        fidelities = {"fidelities": serialization.fidelity_tables(self.fidelities)} if self.fidelities else {}
        return {"params": serialization.parameter_tables(self.parameters), **fidelities}

    @staticmethod
    def from_json(tables: Mapping[str, Any]) -> Space:
        """The space that `to_json` wrote."""
        refuse_non_mapping(tables, what="The JSON form of a space", error=InvalidSpace)
        refuse_unknown(tables, ("params", "fidelities", "stages"), what="Keys of a space", error=InvalidSpace)
        return space_from_tables(tables.get("params"), tables.get("fidelities"), tables.get("stages"))

    def to_toml(self) -> str:
        """The space as the tables of a study file, from which `Space.from_toml` makes an equal space."""
        headed: dict[tuple[str, ...], serialization.Table] = {
            ("stages", name): own for name, own in self._stage_tables.items()
        }
        if not self.stages:
            headed["space",] = serialization.parameter_tables(self.parameters)
        if self.fidelities:
            headed["fidelities",] = serialization.fidelity_tables(self.fidelities)
        return write_toml(headed)

    @staticmethod
    def from_toml(text: str) -> Space:
        """The space in the tables [space], [fidelities] and [stages.NAME], of which there may be no others."""
        tables = read_toml(text)
        refuse_unknown(tables, ("space", "fidelities", "stages"), what="Tables of a space", error=InvalidSpace)
        return space_from_tables(tables.get("space"), tables.get("fidelities"), tables.get("stages"))

    @property
    def _content(self) -> tuple[object, ...]:
        """The parts that make two spaces equal; the order counts, because the encoder's columns follow it."""
        return tuple(self.parameters.items()), tuple(self.fidelities.items()), tuple(self.stages.items())

    @property
    def _parameters_by_stage(self) -> dict[str, dict[str, Parameter]]:
        return {stage: {local_name(name): self.parameters[name] for name in own} for stage, own in self.stages.items()}

    @property
    def _stage_tables(self) -> serialization.Table:
        return {stage: serialization.parameter_tables(own) for stage, own in self._parameters_by_stage.items()}

    def _check_active(self, name: str, params: Mapping[str, Any]) -> Any:
        if name not in params:
            raise InvalidParams(
                f"Every active parameter must have a value, got none for {name!r}. Add it to the params."
            )
        return self.parameters[name].check(params[name], name=name)

    def _inactive(self, name: str, params: Mapping[str, Any]) -> InvalidParams:
        return InvalidParams(
            f"An inactive parameter must be absent, got {name}={shown(params[name])}. "
            f"Leave it out, or meet its condition {shown(self.parameters[name].when)}."
        )


def declared(params: Mapping[str, Any] | None) -> Mapping[str, Parameter]:
    """The parameters, with a choice of one for each constant; anything else is left for the validation to refuse."""
    if not isinstance(params, Mapping):
        return _given(params)
    return {name: Choice(value) if _is_constant(value) else value for name, value in params.items()}


def _is_constant(value: object) -> bool:
    return value is None or isinstance(value, str | int | float)


def _given(section: Mapping[str, T] | None) -> Mapping[str, T]:
    return {} if section is None else section


def space_from_tables(
    space: Mapping[str, Any] | None = None,
    fidelities: Mapping[str, Any] | None = None,
    stages: Mapping[str, Any] | None = None,
) -> Space:
    """The space that the tables [space], [fidelities] and [stages] of a study file declare."""
    return Space(
        None if space is None else serialization.read_parameters(space),
        fidelities=None if fidelities is None else serialization.read_fidelities(fidelities),
        stages=None if stages is None else serialization.read_stages(stages),
    )
