"""Distributions of Optuna as parameters of a space, and the other way round."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from farthing.errors import InvalidArgument, InvalidParams
from farthing.space import Choice, Float, Int, Parameter, Space
from farthing.space.space_validation import RESERVED
from farthing.validation import shown


@dataclass(frozen=True)
class Translation:
    """A space, Optuna's name for each of its parameters, and the distribution that each stands for.

    Options of a categorical distribution are their indices in the space if `by_index`: Optuna takes any object.
    """

    space: Space
    names: Mapping[str, str]
    distributions: Mapping[str, BaseDistribution]
    by_index: bool

    @classmethod
    def of_distributions(cls, distributions: Mapping[str, BaseDistribution]) -> "Translation":
        names = {f"p{place}": name for place, name in enumerate(distributions)}
        space = Space({own: parameter_of(distributions[name], by_index=True) for own, name in names.items()})
        return cls(space, names, dict(distributions), by_index=True)

    @classmethod
    def of_space(cls, space: Space) -> "Translation":
        if space.fidelities or space.stages:
            raise InvalidArgument(
                f"The space of a sampler must have parameters only, got {space!r}. Leave fidelities to "
                "FarthingPruner, which reads what trials report."
            )
        distributions = {name: distribution_of(parameter) for name, parameter in space.parameters.items()}
        return cls(space, {name: name for name in distributions}, distributions, by_index=False)

    def params_of(self, external: Mapping[str, Any]) -> dict[str, Any] | None:
        """Optuna's params in the space; None where it has no such configuration."""
        try:
            return dict(self.space.check({own: self._inner(own, external[name]) for own, name in self._in(external)}))
        except (InvalidParams, ValueError):
            return None

    def external(self, params: Mapping[str, Any]) -> dict[str, Any]:
        return {self.names[own]: self._outer(own, value) for own, value in params.items()}

    def _in(self, external: Mapping[str, Any]) -> list[tuple[str, str]]:
        return [(own, name) for own, name in self.names.items() if name in external]

    def _inner(self, own: str, value: Any) -> Any:
        distribution = self.distributions[self.names[own]]
        is_index = self.by_index and isinstance(distribution, CategoricalDistribution)
        return int(distribution.to_internal_repr(value)) if is_index else value

    def _outer(self, own: str, value: Any) -> Any:
        distribution = self.distributions[self.names[own]]
        if self.by_index and isinstance(distribution, CategoricalDistribution):
            return distribution.choices[value]
        return value


def parameter_of(distribution: BaseDistribution, *, by_index: bool = False) -> Parameter:
    match distribution:
        case FloatDistribution(low=low, high=high, log=log, step=step):
            return Float(low, high, log=log, step=step)
        case IntDistribution(low=low, high=high, log=log, step=step):
            return Int(low, high, log=log, step=1 if log else step)
        case CategoricalDistribution(choices=choices):
            return Choice(*range(len(choices))) if by_index else Choice(*choices)
        case _:
            raise InvalidArgument(
                f"A distribution must be float, int or categorical, got {shown(distribution)}. Use trial.suggest_…."
            )


def distribution_of(parameter: Parameter) -> BaseDistribution:
    match parameter:
        case Float(low=low, high=high, log=log, step=step):
            return FloatDistribution(low, high, log=log, step=step)
        case Int(low=low, high=high, log=log, step=step):
            return IntDistribution(low, high, log=log, step=step or 1)
        case Choice(options=options):
            return CategoricalDistribution(options)


def usable_names(names: list[str]) -> dict[str, str]:
    """For each name of Optuna's one that a space takes, which is mostly the same."""
    found: dict[str, str] = {}
    for name in names:
        own = re.sub(r"[^\w.-]|^(?=[\d.-])", "_", name)
        while own in found.values() or own in RESERVED:
            own += "_"
        found[name] = own
    return found
