"""Nodes of a Ray cluster as processes of this machine, to be killed and replaced."""

from types import TracebackType
from typing import Any

from ray.cluster_utils import Cluster

HEALTH = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 5000,
    "health_check_failure_threshold": 4,
}
"""A dead node is noticed within seconds, not within half a minute."""
KINDS: tuple[dict[str, Any], ...] = (
    {"num_cpus": 2, "num_gpus": 1, "resources": {"left": 1}},
    {"num_cpus": 2, "resources": {"right": 1}},
)
SECONDS_TO_START = 200


class Nodes:
    """Three nodes: the head takes no work; the others are of the `KINDS`, and are what faults happen to."""

    def __enter__(self) -> "Nodes":
        head = {"num_cpus": 0, "include_dashboard": False, "_system_config": HEALTH}
        self._cluster = Cluster(initialize_head=True, head_node_args=head)
        self._workers: list[Any] = [None for _ in KINDS]
        self.repair()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._cluster.shutdown()

    @property
    def address(self) -> str:
        return str(self._cluster.address)

    def kill(self, index: int) -> None:
        """Kills a node's own processes, as when a machine is lost; what ran there must end by itself."""
        self._cluster.remove_node(self._workers[index], allow_graceful=False)
        self._workers[index] = None

    def kill_named(self, name: str) -> None:
        """Kills the node of that name, which is Ray's."""
        self.kill([node.node_id for node in self._workers].index(name))

    def repair(self) -> None:
        """Adds a node for each that was killed."""
        for index, kind in enumerate(KINDS):
            if self._workers[index] is None:
                self._workers[index] = self._cluster.add_node(wait=False, **kind)
        self._cluster.wait_for_nodes(timeout=SECONDS_TO_START)
