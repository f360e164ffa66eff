"""Runs jobs on the machines of a Ray cluster. Ray places workers and notices that nodes die; all else is ours."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from farthing.costs.clock import Clock
from farthing.costs.prices import ResourcesGiven, ResourcesLike
from farthing.errors import InvalidArgument
from farthing.execution.checkpoints import Checkpoints
from farthing.fields import Number, Text
from farthing.trials import Problem
from farthing.validation import listed, refuse_non_mapping, shown

if TYPE_CHECKING:
    from farthing.execution.ray.executor import RunningOnRay

__all__ = ["RayExecutor", "Resources"]

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


Arrangement = Literal["PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD"]


@dataclass(frozen=True, kw_only=True)
class RayExecutor:
    """Runs the trials on a Ray cluster: `study.run(work, executor=ft.RayExecutor(address="head:6379"), workers=64)`.

    `executor="ray"` is the same with all defaults. Ray places the workers, and notices that a node died; leases,
    retries and time limits are Farthing's. A process that is already connected by `ray.init` uses that connection.

    Args:
        address: "auto" finds the cluster by the variable RAY_ADDRESS, or the one that runs on this machine.
        runtime_env: passed on to Ray: packages, modules, variables and files for the nodes.
        resource_timeout: seconds after which a run fails that has not got the resources of a single worker.
        arrangement: how Ray lays out the bundles of a worker that has several, on few nodes or on many.
    """

    address: str = "auto"
    runtime_env: Mapping[str, Any] | None = None
    resource_timeout: float = 600.0
    arrangement: Arrangement = "PACK"

    def __post_init__(self) -> None:
        Text().checked(self.address, what="address", advice="Write address='HOST:6379', or leave it out.")
        if self.runtime_env is not None:
            refuse_non_mapping(self.runtime_env, what="runtime_env", error=InvalidArgument)
        Number(above=0.0).checked(self.resource_timeout, what="resource_timeout, in seconds,")
        if self.arrangement not in get_args(Arrangement):
            raise InvalidArgument(
                f"arrangement must be one of {listed(get_args(Arrangement))}, got {shown(self.arrangement)}. "
                "Leave it out for 'PACK'."
            )

    def start(
        self,
        work: object,
        problem: Problem,
        *,
        workers: int,
        checkpoints: Checkpoints,
        resources: Resources | None = None,
        clock: Clock | None = None,
    ) -> "RunningOnRay":
        """The executor itself, which has at least one worker's place when this returns."""
        from farthing.execution.ray.executor import RunningOnRay

        return RunningOnRay(
            self, work, problem, workers=workers, checkpoints=checkpoints, resources=resources, clock=clock
        )
