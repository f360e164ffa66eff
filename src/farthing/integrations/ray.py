"""For work on several nodes of a Ray cluster: `study.run(work, executor="ray", resources=[{…}, {…}])`."""

import os
from importlib import import_module
from typing import Any

from farthing.errors import WorkError
from farthing.execution.ray.executor import PLACEMENT_GROUP


def placement_group() -> Any:
    """The placement group that the running trial holds; connects this process to the cluster if it is not connected.

    The trial itself runs in bundle 0. Tasks and actors that it starts in the others end with it:

        group = placement_group()
        there = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=1)
        ray.get(train_shard.options(scheduling_strategy=there).remote(…))
    """
    ray = import_module("ray")
    number = os.environ.get(PLACEMENT_GROUP)
    if number is None:
        raise WorkError(
            "Only a trial that holds several bundles has a placement group, got one without. Run it with "
            "executor='ray', resources=[{'cpu': 1}, {'cpu': 1}]."
        )
    if not ray.is_initialized():
        ray.init(address=os.environ["RAY_ADDRESS"], log_to_driver=False)
    return import_module("ray.util.placement_group").PlacementGroup(ray.PlacementGroupID.from_hex(number))
