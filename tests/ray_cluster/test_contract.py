"""Work on a Ray cluster behaves as in processes of one machine: the contract, and more tests of all executors."""

import pytest
from contracts import test_executors as alike

from farthing.execution import Checkpoints
from farthing.execution.ray import RayExecutor
from farthing.testing import ExecutorContract
from farthing.testing.executor_contract import PLAIN, Heard

pytestmark = pytest.mark.ray

checkpoints = alike.checkpoints


@pytest.fixture(scope="module", autouse=True)
def _connected(nodes):
    import ray

    ray.init(address=nodes.address, log_to_driver=False)
    yield nodes
    ray.shutdown()


def started(work, problem=PLAIN, *, workers=1, **settings):
    executor = RayExecutor().start(work, problem, workers=workers, **settings)
    while executor.free < workers:  # places come one by one
        executor.wait(Heard())
    return executor


class TestOnRay(ExecutorContract):
    def started(self, work, problem, *, checkpoints):
        return started(work, problem, checkpoints=checkpoints)


@pytest.fixture
def processes(checkpoints: Checkpoints):
    made = []

    def make(work, problem=PLAIN, *, workers=1, **settings):
        made.append(started(work, problem, workers=workers, checkpoints=checkpoints, **settings))
        return made[-1]

    yield make
    for executor in made:
        executor.close()


start = processes

ALIKE = [
    "params_arrive_as_they_were_sent",
    "an_exception_is_kept_with_the_users_part_of_its_traceback",
    "work_whose_news_is_the_last_is_unwound_with_the_value_that_it_has",
    "a_checkpoint_that_is_gone_fails_the_job",
    "charges_replace_measured_seconds",
    "every_shape_of_work_runs",
    "waiting_ends_when_woken",
    "workers_run_at_the_same_time",
    "what_is_printed_lands_in_the_trials_log",
    "a_worker_starts_in_the_same_folder_and_comes_back_to_it",
]
"""Those that depend on where a worker is; each starts one on a node, which takes seconds."""
globals().update({f"test_{name}": getattr(alike, f"test_{name}") for name in ALIKE})
