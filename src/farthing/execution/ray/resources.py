"""The resources that each worker holds: cores, GPUs, memory, resources of your own; on one node or on several."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from farthing.costs.prices import ResourcesGiven, ResourcesLike
from farthing.errors import InvalidArgument
from farthing.fields import Number
from farthing.validation import shown

Resources: TypeAlias = ResourcesLike
"""`{"cpu": 1, "gpu": 0.25}`, or a list of these for work on several nodes: one bundle each, the work in the first; or a
function of params that returns either.
"""

RAYS_NAMES = {"cpu": "CPU", "gpu": "GPU"}
OPTIONS = {"CPU": "num_cpus", "GPU": "num_gpus", "memory": "memory"}
"""Ray's names of an actor's resources that are arguments of their own."""


@dataclass(frozen=True)
class Bundles:
    """The resources of one worker in Ray's words, by node."""

    bundles: tuple[Mapping[str, float], ...]

    @classmethod
    def of(cls, given: ResourcesGiven | None) -> "Bundles":
        """One core, where nothing is given."""
        if given is None:
            return cls(({"CPU": 1.0},))
        several: object = [given] if isinstance(given, Mapping) else given
        if isinstance(several, str) or not isinstance(several, Sequence) or not several:
            raise _not_resources(given)
        return cls(tuple(_bundle(one) for one in several))

    @property
    def is_group(self) -> bool:
        return len(self.bundles) > 1

    @property
    def options(self) -> dict[str, Any]:
        """The first bundle, as options of a Ray actor."""
        own = {name: amount for name, amount in self.bundles[0].items() if name not in OPTIONS}
        named = {OPTIONS[name]: amount for name, amount in self.bundles[0].items() if name in OPTIONS}
        return {"num_cpus": 0, **named, "resources": own}

    def __str__(self) -> str:
        words = [_words(bundle) for bundle in self.bundles]
        return " together with ".join(words)

    def lacking(self, nodes: Sequence[Mapping[str, float]]) -> list[str]:
        """The resources of which no node has as much as a bundle needs; `nodes` are the totals of each."""
        needed = {name: max(bundle.get(name, 0.0) for bundle in self.bundles) for each in self.bundles for name in each}
        return [
            name
            for name, amount in sorted(needed.items())
            if amount > max((node.get(name, 0.0) for node in nodes), default=0.0)
        ]


def _bundle(given: object) -> Mapping[str, float]:
    if not isinstance(given, Mapping) or not given or not all(isinstance(name, str) for name in given):
        raise _not_resources(given)
    rule = Number(least=0.0)
    amounts = {str(name): rule.checked(amount, what=f"An amount of {name!r}") for name, amount in given.items()}
    return {RAYS_NAMES.get(name.lower(), name): float(amount) for name, amount in amounts.items()}


def _words(bundle: Mapping[str, float]) -> str:
    return ", ".join(f"{amount:g} {name}" for name, amount in bundle.items() if amount) or "nothing"


def _not_resources(given: object) -> InvalidArgument:
    return InvalidArgument(
        f"resources= must map names to amounts, or be a list of such bundles, got {shown(given)}. "
        'Write for example resources={"cpu": 1, "gpu": 0.25}.'
    )
