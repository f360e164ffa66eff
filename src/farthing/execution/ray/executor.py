"""Runs jobs in worker processes on the nodes of a Ray cluster."""

import logging
import math
import os
import sys
import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from typing import Any

from farthing.costs.clock import Clock, SystemClock
from farthing.costs.prices import held_with
from farthing.errors import InvalidArgument, WorkError
from farthing.execution.checkpoints import Checkpoints
from farthing.execution.executor import Ended, Job, Listener, check_workers
from farthing.execution.ray import Bundles, RayExecutor, Resources
from farthing.execution.ray.connection import Connection
from farthing.execution.ray.place import CALLS_AT_ONCE, SECONDS_TO_LEAVE, RayPlace, farthing_version, python_version
from farthing.execution.ray.remote_worker import SECONDS_TO_END, WAKE, Bell, RemotePlace, RemoteWorker, check_node
from farthing.execution.slot import Slot
from farthing.execution.wire import to_bytes
from farthing.execution.work import as_work, packed
from farthing.execution.worker_process import import_path
from farthing.trials import Attempt, Failure, Json, Outcome, Problem, State

log = logging.getLogger("farthing")

SECONDS_BEFORE_SAYING = 10.0
"""A run that waits longer than this for resources says so, and from then on once a minute."""
SECONDS_BETWEEN_SAYING = 60.0
PLACEMENT_GROUP = "FARTHING_PLACEMENT_GROUP"
"""The variable of a worker with several bundles that has the number of its placement group: see `integrations.ray`."""


class RunningOnRay:
    """Runs up to `workers` jobs at once, each in a place on a node that holds the worker's resources.

    All places are asked for at once, so that an autoscaler sees the demand; those that Ray has granted are used, and
    the others when they come. Where resources follow from the params, a place is asked for when there is a trial for
    it. A place whose actor or node died is asked for again. Its job ends as failed with `lost_node`, and Ray retries
    nothing: another attempt is the study's to make. Places of idle workers are given back when nothing is to be done.

    A job that continues a trial goes to the worker that ran it, if that is free, else to its node: a member of a
    population stays where it is, and moves by its checkpoint when its node is gone.
    """

    works_in_wait = False

    def __init__(
        self,
        settings: RayExecutor,
        work: object,
        problem: Problem,
        *,
        workers: int,
        checkpoints: Checkpoints,
        resources: Resources | None = None,
        clock: Clock | None = None,
    ) -> None:
        check_workers(workers)
        checked = as_work(work)
        checked.check(problem)
        content = packed(checked)
        self.workers = workers
        self._settings = settings
        self._problem = problem
        self._checkpoints = checkpoints
        self._resources = resources
        self._bundles = None if callable(resources) else Bundles.of(resources)
        self._bell = Bell()
        self._ended: list[Ended] = []
        self._homes: dict[int, RemotePlace] = {}
        self._last_said = -math.inf
        self._waiting_since: float | None = time.monotonic()
        self._proof = checkpoints.prove()
        self._places: list[RemotePlace | None] = []
        self._waiting: dict[int, tuple[Job, float]] = {}
        self._slots: list[Slot[RemoteWorker]] = []
        try:
            self._connection = Connection(settings.address, runtime_env=settings.runtime_env)
            self._ray = self._connection.ray
            self._work = self._ray.put(content)
            self._actor = self._ray.remote(RayPlace)
            self._places = [self._ask_for_place(self._bundles) if self._bundles else None for _ in range(workers)]
            self._slots = [self._slot(index, clock or SystemClock()) for index in range(workers)]
            self._wait_for_first_place()
        except BaseException:
            self.close()
            raise

    @property
    def free(self) -> int:
        """While a job waits for its place for long, no other place is asked for. Where places differ, no trial begins:
        a large one would never find its room.
        """
        idle = self._idle()
        if not self._is_waiting_long:
            return len(idle)
        return sum(self._places[index] is not None for index in idle) if self._bundles else 0

    @property
    def running(self) -> tuple[Attempt, ...]:
        waiting = [job.attempt for job, _ in self._waiting.values()]
        return tuple(slot.job.attempt for slot in self._slots if slot.job is not None) + tuple(waiting)

    def submit(self, job: Job) -> None:
        idle = self._idle()
        if not idle:
            raise InvalidArgument(
                f"A job needs a free worker, got {job.attempt} while all are busy. Wait for one to end."
            )
        bundles = self._bundles_of(job)
        index = min(idle, key=lambda index: self._distance(index, job, bundles))
        place = self._places[index]
        if place is not None and place.bundles == bundles:
            self._begin(index, job)
        else:
            self._give_up([index], "another trial needs other resources")
            self._places[index] = self._ask_for_place(bundles)
            self._waiting[index] = job, time.monotonic()

    def wait(self, listener: Listener, *, timeout: float | None = None) -> list[Ended]:
        until = math.inf if timeout is None else time.monotonic() + timeout
        is_over = False
        while not (self._ended or is_over):
            rung = self._bell.wait(self._first_deadline(until) - time.monotonic())
            has_new_place = self._attend_places(rung)
            for place, slot in zip(self._places, self._slots, strict=True):
                if ended := slot.attend(rung, listener):
                    self._ended.append(ended)
                    if place is not None:
                        place.idle_since = time.monotonic()
            self._replace_places()
            self._end_what_fits_nowhere()
            self._require_places()
            if self._is_waiting_long and not self._bundles:
                self.give_back(after=0.0)
            is_over = WAKE in rung or has_new_place or time.monotonic() >= until
        ended_jobs, self._ended = self._ended, []
        return ended_jobs

    def give_back(self, *, after: float) -> int:
        """Gives back the places that have been idle for that long; returns the number of idle ones that are still held.

        A job for a worker without a place asks for one again.
        """
        now = time.monotonic()
        idle = [
            (index, place)
            for index, (place, slot) in enumerate(zip(self._places, self._slots, strict=True))
            if place is not None and slot.job is None and index not in self._waiting
        ]
        self._give_up([index for index, place in idle if now - place.idle_since >= after], "there is nothing to do")
        return sum(self._places[index] is place and place.is_ready for index, place in idle)

    def wake(self) -> None:
        self._bell.ring(WAKE)

    def close(self) -> None:
        """Ends all workers with their groups, and gives the places back. Idle workers get a moment to leave."""
        self._give_up(range(len(self._slots)), "the run has ended")
        for place in self._places:  # where there are no slots yet
            if place is not None:
                place.give_up("the run has ended")
        self._slots, self._places = [], []
        self._checkpoints.withdraw(self._proof)
        if connection := getattr(self, "_connection", None):
            connection.close()

    def _give_up(self, indices: Collection[int], why: str) -> None:
        """Gives these places back, after their workers have ended; idle ones get a moment to leave."""
        living = [
            place.actor.end.remote(gently=self._slots[index].job is None)
            for index in indices
            if (place := self._places[index]) is not None
            and self._slots[index].worker is not None
            and not place.is_gone
        ]
        if living:
            with suppress(Exception):  # of a node that is gone there is nothing left to end
                self._ray.wait(living, num_returns=len(living), timeout=SECONDS_TO_LEAVE + SECONDS_TO_END)
        for index in indices:
            if (place := self._places[index]) is not None:
                place.give_up(why)
                self._places[index] = None
            if self._slots[index].worker is not None:
                self._slots[index].end_worker()

    # ---- places -----------------------------------------------------------------------------------------------------

    def _bundles_of(self, job: Job) -> Bundles:
        return self._bundles or Bundles.of(held_with(self._resources, job.params))

    def _ask_for_place(self, bundles: Bundles) -> RemotePlace:
        group, options = self._group(bundles), dict(bundles.options)
        if group is not None:
            within = import_module("ray.util.scheduling_strategies").PlacementGroupSchedulingStrategy
            options["scheduling_strategy"] = within(group, placement_group_bundle_index=0)
        actor = self._actor.options(
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=CALLS_AT_ONCE,
            **options,
            **self._connection.options,
        ).remote()
        proof = self._checkpoints.place, self._proof
        return RemotePlace(self._ray, actor, bell=self._bell, proof=proof, bundles=bundles, group=group)

    def _group(self, bundles: Bundles) -> Any:
        if not bundles.is_group:
            return None
        plain = [dict(bundle) for bundle in bundles.bundles]
        return self._ray.util.placement_group(plain, strategy=self._settings.arrangement)

    def _wait_for_first_place(self) -> None:
        while self._bundles and not any(place is not None and place.is_ready for place in self._places):
            self._attend_places(self._bell.wait(1.0))
            self._replace_places()
            self._require_places()

    def _attend_places(self, rung: set[int]) -> bool:
        """Heeds news of places; True if one has become ready. The worker in one that is gone has ended with it."""
        has_new = False
        for index, (place, slot) in enumerate(zip(self._places, self._slots, strict=True)):
            if place is None or place.number not in rung:
                continue
            if place.is_gone:
                self._refuse_unusable(place)
                if slot.worker is not None:
                    rung.add(slot.worker.sentinel)
            elif place.node is not None:
                self._check(place)
                has_new = True
                if index in self._waiting:
                    job, since = self._waiting.pop(index)
                    self._begin(index, job, waited=time.monotonic() - since)
        return has_new

    def _begin(self, index: int, job: Job, *, waited: float = 0.0) -> None:
        if (place := self._places[index]) is not None:
            self._homes[job.attempt.number] = place
        if job.seconds_left is not None:
            job = replace(job, seconds_left=job.seconds_left - waited)
        self._slots[index].take(job)

    def _check(self, place: RemotePlace) -> None:
        assert place.node is not None
        check_node(
            place.node,
            farthing=farthing_version(),
            python=python_version(),
            folder=self._checkpoints.place,
        )

    def _refuse_unusable(self, place: RemotePlace) -> None:
        """A trial that cannot run on a node whose machine lives will not run there on the next try either."""
        if place.is_unusable:
            ours = farthing_version()
            raise WorkError(
                f"Every node must have Farthing {ours} and be able to run it, got {place.why_gone}. Install it there, "
                f"or send it along: ft.RayExecutor(runtime_env={{'pip': ['farthing=={ours}']}})."
            )

    def _replace_places(self) -> None:
        for index, place in enumerate(self._places):
            if place is not None and place.is_gone and self._slots[index].worker is None:
                place.give_up("it is gone")
                is_needed = self._bundles is not None or index in self._waiting
                self._places[index] = self._ask_for_place(place.bundles) if is_needed else None

    def _end_what_fits_nowhere(self) -> None:
        """Where places differ, fails jobs that have waited too long for more than any node has: others go on."""
        until = time.monotonic() - self._settings.resource_timeout
        for index, (job, since) in tuple(self._waiting.items()):
            if not self._bundles and since < until and self._lacking(index):
                bundles = self._bundles_of(job)
                reason = (
                    f"The trial needs {bundles} on a node, got {self._what_is_lacking(bundles)} for "
                    f"{time.monotonic() - since:.0f} s. Let resources= ask for less, or add a node"
                )
                del self._waiting[index]
                self._give_up([index], "no node has what its trial needs")
                self._ended.append(Ended(job.attempt, Outcome(State.FAILED, failure=Failure(reason))))

    def _lacking(self, index: int) -> list[str]:
        """The resources that no node has enough of for the place that is asked for."""
        place = self._places[index]
        return [] if place is None else place.bundles.lacking(self._connection.nodes())

    def _require_places(self) -> None:
        """Says which resources a run waits for, and ends it where it has waited for all of them for too long."""
        asked = [place for place in self._places if place is not None]
        if not asked or any(place.is_ready for place in asked):
            self._waiting_since = None
            return
        bundles = asked[0].bundles
        now = time.monotonic()
        self._waiting_since = self._waiting_since or now
        waited = now - self._waiting_since
        if waited >= self._settings.resource_timeout:
            raise WorkError(
                f"A worker needs {bundles} on a node, got {self._what_is_lacking(bundles)} for {waited:.0f} s. Ask for "
                "less: resources={'cpu': 1}; or add a node."
            )
        if waited >= SECONDS_BEFORE_SAYING and now - self._last_said >= SECONDS_BETWEEN_SAYING:
            self._last_said = now
            log.warning("Waiting for %s on the Ray cluster: %s", bundles, self._what_is_lacking(bundles))

    def _what_is_lacking(self, bundles: Bundles) -> str:
        lacking = bundles.lacking(self._connection.nodes())
        return f"no node that has enough {' or '.join(lacking)}" if lacking else "no node on which that is free"

    # ---- jobs -------------------------------------------------------------------------------------------------------

    def _idle(self) -> list[int]:
        """Workers whose place is ready, or is asked for once there is a job."""
        return [
            index
            for index, (place, slot) in enumerate(zip(self._places, self._slots, strict=True))
            if slot.job is None and index not in self._waiting and (place is None or place.is_ready)
        ]

    @property
    def _is_waiting_long(self) -> bool:
        """Whether a job waits for long for a place that a node could have."""
        until = time.monotonic() - SECONDS_BEFORE_SAYING
        return any(since < until and not self._lacking(index) for index, (_, since) in self._waiting.items())

    def _distance(self, index: int, job: Job, bundles: Bundles) -> tuple[bool, bool, bool, bool, bool]:
        """Ranks a place for a job, the lowest first.

        A place that holds the resources it needs comes first, then one that holds none, then the nearest to the trial
        that it continues, then one with a worker.
        """
        place = self._places[index]
        before = job.attempt.number if job.attempt.number in self._homes else job.resume_from
        home = None if before is None else self._homes.get(before)
        is_other_node = home is not None and home.node is not None and home.node.node != _node_of(place)
        fits = place is not None and place.bundles == bundles
        is_free = self._slots[index].worker is None
        return not fits, place is not None and not fits, is_other_node, home is not None and home is not place, is_free

    def _first_deadline(self, until: float) -> float:
        deadlines = [slot.deadline for slot in self._slots]
        if self._waiting_since is not None or self._waiting:
            deadlines.append(time.monotonic() + 1.0)
        return min([until, *deadlines])

    def _slot(self, index: int, clock: Clock) -> Slot[RemoteWorker]:
        return Slot(
            lambda: self._start_worker(_there(self._places[index])),
            checkpoints=self._checkpoints,
            clock=clock,
            problem=self._problem,
        )

    def _start_worker(self, place: RemotePlace) -> RemoteWorker:
        setup, environment = to_bytes(self._setup()), self._environment(place)
        return RemoteWorker(
            self._ray, place, self._bell, start=lambda actor: actor.start.remote(setup, self._work, environment)
        )

    def _setup(self) -> dict[str, Json]:
        return {
            "problem": self._problem.to_json(),
            "checkpoints": self._checkpoints.place,
            "folder": os.getcwd(),
            "keeps_folder": "working_dir" in (self._settings.runtime_env or {}),
            "import_path": list(import_path()),
            "argv": list(sys.argv),
        }

    def _environment(self, place: RemotePlace) -> dict[str, str]:
        if place.group is None:
            return {}
        return {PLACEMENT_GROUP: place.group.id.hex()}


def _node_of(place: RemotePlace | None) -> str | None:
    return place.node.node if place is not None and place.node is not None else None


def _there(place: RemotePlace | None) -> RemotePlace:
    assert place is not None
    return place
