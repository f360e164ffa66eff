"""The space: what may be tuned, as one immutable value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from farthing.errors import InvalidParams, InvalidSpace
from farthing.scalars import Option, Scalar
from farthing.space import serialization
from farthing.space.fidelity import Fidelity
from farthing.space.parameters import Choice, Parameter, is_active
from farthing.space.serialization import read_toml, write_toml
from farthing.space.space_validation import activation_order, check_parts, check_retired, resolve_conditions
from farthing.space.stages import flatten, local_name
from farthing.space.validation import store
from farthing.validation import refuse_non_mapping, refuse_unknown, shown

if TYPE_CHECKING:
    from farthing.space.encoding import Encoder

T = TypeVar("T")


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Space:
    """The parameters of a study, with fidelities or in stages. A plain number or text is a constant.

    `parameters` holds them all under the names they have in a trial's params. In a staged space that is the plain
    name if one stage has it and `stage.name` if several have; `stages` lists the names of each stage. `retired` has the
    parameters that are no longer tuned, with the value that new trials have. Two spaces are equal when they declare the
    same in the same order.
    """

    parameters: Mapping[str, Parameter]
    fidelities: Mapping[str, Fidelity]
    stages: Mapping[str, tuple[str, ...]]
    retired: Mapping[str, Option]
    _order: tuple[str, ...]

    def __init__(
        self,
        params: Mapping[str, Parameter | Scalar] | None = None,
        *,
        fidelities: Mapping[str, Fidelity] | None = None,
        stages: Mapping[str, Mapping[str, Parameter]] | None = None,
        retired: Mapping[str, Option] | None = None,
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
            retired=MappingProxyType(check_retired(_given(retired), parameters)),
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
        retired = f", retired={dict(self.retired)!r}" if self.retired else ""
        return f"Space({dict(self.parameters)!r}{fidelities}{retired})"

    def __reduce__(self) -> tuple[Callable[[Mapping[str, Any]], Space], tuple[serialization.Table]]:
        return Space.from_json, (self.to_json(),)

    @cached_property
    def encoder(self) -> Encoder:
        """The one translator to and from the unit cube."""
        from farthing.space.encoding import Encoder  # brings NumPy, which the command line and workers can do without

        return Encoder(self.parameters, self.fidelities, order=self._order, retired=self.retired)

    @property
    def tuned(self) -> Space:
        """The space without its retired parameters: what a user declares who never had them."""
        if not self.retired:
            return self
        kept = {name: parameter for name, parameter in self.parameters.items() if name not in self.retired}
        return Space(kept, fidelities=self.fidelities)

    def has(self, params: Mapping[str, Any]) -> bool:
        """Whether a new trial could have these params of an older one: whatever is retired has its value."""
        return all(params.get(name, value) == value for name, value in self.retired.items())

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
        retired = {"retired": serialization.plain_options(self.retired)} if self.retired else {}
        return {"params": serialization.parameter_tables(self.parameters), **fidelities, **retired}

    @staticmethod
    def from_json(tables: Mapping[str, Any]) -> Space:
        """The space that `to_json` wrote."""
        refuse_non_mapping(tables, what="The JSON form of a space", error=InvalidSpace)
        parts = ("params", "fidelities", "stages", "retired")
        refuse_unknown(tables, parts, what="Keys of a space", error=InvalidSpace)
        return space_from_tables(*(tables.get(name) for name in parts))

    def to_toml(self) -> str:
        """The space as the tables of a study file, from which `Space.from_toml` makes an equal space."""
        headed: dict[tuple[str, ...], serialization.Table] = {
            ("stages", name): own for name, own in self._stage_tables.items()
        }
        if not self.stages:
            headed["space",] = serialization.parameter_tables(self.parameters)
        if self.fidelities:
            headed["fidelities",] = serialization.fidelity_tables(self.fidelities)
        if self.retired:
            headed["retired",] = serialization.plain_options(self.retired)
        return write_toml(headed)

    @staticmethod
    def from_toml(text: str) -> Space:
        """The space in the tables [space], [fidelities], [retired] and [stages.NAME]; there may be no others."""
        tables, parts = read_toml(text), ("space", "fidelities", "stages", "retired")
        refuse_unknown(tables, parts, what="Tables of a space", error=InvalidSpace)
        return space_from_tables(*(tables.get(name) for name in parts))

    @property
    def _content(self) -> tuple[object, ...]:
        """The parts that make two spaces equal; the order counts, because the encoder's columns follow it."""
        parts = (self.parameters, self.fidelities, self.stages, self.retired)
        return tuple(tuple(part.items()) for part in parts)

    @property
    def _parameters_by_stage(self) -> dict[str, dict[str, Parameter]]:
        return {stage: {local_name(name): self.parameters[name] for name in own} for stage, own in self.stages.items()}

    @property
    def _stage_tables(self) -> serialization.Table:
        return {stage: serialization.parameter_tables(own) for stage, own in self._parameters_by_stage.items()}

    def _check_active(self, name: str, params: Mapping[str, Any]) -> Any:
        if name not in params and name in self.retired:
            return self.retired[name]
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
    retired: Mapping[str, Any] | None = None,
) -> Space:
    """The space that the tables [space], [fidelities], [stages] and [retired] declare."""
    return Space(
        None if space is None else serialization.read_parameters(space),
        fidelities=None if fidelities is None else serialization.read_fidelities(fidelities),
        stages=None if stages is None else serialization.read_stages(stages),
        retired=None if retired is None else serialization.read_options(retired),
    )
