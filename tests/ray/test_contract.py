"""Work on a Ray cluster behaves as it does in processes of one machine: the tests of all executors, once more."""

import pytest
from contracts import test_executors as contract

from farthing.execution import Checkpoints
from farthing.execution.ray import RayExecutor

checkpoints = contract.checkpoints


@pytest.fixture(scope="module")
def _connected(nodes):
    import ray

    ray.init(address=nodes.address, log_to_driver=False)
    yield nodes
    ray.shutdown()


@pytest.fixture
def processes(_connected, checkpoints: Checkpoints):
    started = []

    def make(work, problem=contract.PLAIN, *, workers=1, **settings):
        executor = RayExecutor().start(work, problem, workers=workers, checkpoints=checkpoints, **settings)
        started.append(executor)
        while executor.free < workers:  # places come one by one
            executor.wait(contract.Listener())
        return executor

    yield make
    for executor in started:
        executor.close()


start = processes

ALIKE = [name for name in vars(contract) if name.startswith("test_") and "inline" not in name]
OF_THIS_MACHINE = ["test_workers_have_their_share_of_the_cores_and_their_device"]
globals().update({name: getattr(contract, name) for name in ALIKE if name not in OF_THIS_MACHINE})
