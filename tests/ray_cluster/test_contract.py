"""Work on a Ray cluster behaves as it does in processes of one machine: the tests of all executors, once more."""

import pytest
from contracts import test_executors as contract

from farthing.execution import Checkpoints
from farthing.execution.ray import RayExecutor

pytestmark = pytest.mark.ray

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

ALIKE = [
    "a_report_is_durable_when_it_returns",
    "reports_come_in_order_with_their_attempt",
    "params_arrive_as_they_were_sent",
    "an_exception_is_kept_with_the_users_part_of_its_traceback",
    "an_attempt_that_was_taken_over_is_unwound_without_an_outcome",
    "work_whose_news_is_the_last_is_unwound_with_the_value_that_it_has",
    "a_listener_that_fails_is_heard_and_not_blamed_on_the_work",
    "a_checkpoint_is_handed_on",
    "a_checkpoint_that_is_gone_fails_the_job",
    "a_checkpoint_in_between_is_announced_and_survives_a_failure",
    "charges_replace_measured_seconds",
    "every_shape_of_work_runs",
    "waiting_ends_when_woken",
    "closing_drops_what_runs_and_may_be_repeated",
    "workers_run_at_the_same_time",
    "what_is_printed_lands_in_the_trials_log",
    "a_worker_starts_in_the_same_folder_and_comes_back_to_it",
]
"""Those that depend on where a worker is; each starts one on a node, which takes seconds."""
globals().update({f"test_{name}": getattr(contract, f"test_{name}") for name in ALIKE})
