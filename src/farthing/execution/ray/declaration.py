"""`executor=RayExecutor(…)`: which cluster, and how its nodes are set up."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from farthing.costs.clock import Clock
from farthing.errors import InvalidArgument
from farthing.execution.checkpoints import Checkpoints
from farthing.execution.ray.resources import Resources
from farthing.fields import Number, Text
from farthing.trials import Problem
from farthing.validation import listed, refuse_non_mapping, shown

if TYPE_CHECKING:
    from farthing.execution.ray.executor import RunningOnRay

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
