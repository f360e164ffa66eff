"""Runs jobs in worker processes of this machine."""

import math
import os
import select
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from weakref import WeakSet

from farthing.costs.clock import Clock, SystemClock
from farthing.errors import InvalidArgument, WorkError
from farthing.execution.checkpoints import Checkpoints
from farthing.execution.executor import Ended, Job, Listener, check_workers
from farthing.execution.platform import worker_environment
from farthing.execution.slot import Slot
from farthing.execution.wire import to_bytes
from farthing.execution.work import as_work, packed
from farthing.execution.worker_process import WorkerProcess, wait_for_events
from farthing.trials import Attempt, Json, Problem

SECONDS_TO_LEAVE = 1.0
"""Longest time for idle workers to end by themselves when the executor is closed."""


_executors: "WeakSet[ProcessExecutor]" = WeakSet()


class ProcessExecutor:
    """Runs up to `workers` jobs at once, each in a supervised process.

    Work travels to the workers by value where it was defined in a script or a notebook, and by name where it can be
    imported; the script itself is not imported again, so it needs no `if __name__ == "__main__":`. Workers are started
    when there is a job for them and stay for the next.

    The death of a worker ends one job: it fails with a reason, and the worker is replaced. A job past its time
    limit is killed, with all the processes in its group; so are the workers when this process ends, however it ends.
    Not covered are a process that leaves its worker's group (`setsid`): it is not found; and one that a finished job
    left behind: it lives until its worker ends.

    `devices` gives worker i the device i mod n, by its environment. Workers have as many threads as if there were
    `sharing` of them, if that is more than there are.
    """

    works_in_wait = False

    def __init__(
        self,
        work: object,
        problem: Problem,
        *,
        workers: int,
        checkpoints: Checkpoints,
        devices: Sequence[str] | None = None,
        clock: Clock | None = None,
        sharing: int = 1,
    ) -> None:
        check_workers(workers)
        checked = as_work(work)
        checked.check(problem)
        self._work = packed(checked)
        self._problem = problem
        self._checkpoints = checkpoints
        self._devices = devices
        self._sharing = max(workers, sharing)
        self._slots = [self._slot(index, clock or SystemClock()) for index in range(workers)]
        self._ended: list[Ended] = []
        self._lifeline: tuple[int, ...] = os.pipe()  # workers hold the first end; they die when ours is closed
        self._starter = ThreadPoolExecutor(1)  # workers die with the thread that started them: it must outlive them
        _executors.add(self)
        self._woken, self._waker = socket.socketpair()
        self._waker.setblocking(False)

    @property
    def workers(self) -> int:
        return len(self._slots)

    @property
    def free(self) -> int:
        return sum(slot.job is None for slot in self._slots)

    @property
    def running(self) -> tuple[Attempt, ...]:
        return tuple(slot.job.attempt for slot in self._slots if slot.job is not None)

    def submit(self, job: Job) -> None:
        idle = [slot for slot in self._slots if slot.job is None]
        if not idle:
            raise InvalidArgument(
                f"A job needs a free worker, got {job.attempt} while all are busy. Wait for one to end."
            )
        with_worker = [slot for slot in idle if slot.worker is not None]
        (with_worker or idle)[0].take(job)
        self._checkpoints.show_log(job.attempt)

    def wait(self, listener: Listener, *, timeout: float | None = None) -> list[Ended]:
        until = math.inf if timeout is None else time.monotonic() + timeout
        is_over = False
        while not (self._ended or is_over):
            ready = self._wait_for_events(until)
            for slot in self._slots:
                if ended := slot.attend(ready, listener):
                    self._checkpoints.hide_log(ended.attempt)
                    self._ended.append(ended)
            is_over = self._was_woken(ready) or time.monotonic() >= until
        ended_jobs, self._ended = self._ended, []
        return ended_jobs

    def wake(self) -> None:
        with suppress(OSError):  # full: it will wake up anyway; closed: no thread is asleep
            self._waker.send(b"!")

    def close(self) -> None:
        """Ends all workers. Those that are idle get a moment to leave by themselves, with their `atexit` handlers."""
        self._let_idle_workers_leave()
        for slot in self._slots:
            if slot.worker is not None:
                slot.end_worker()
        self._slots = []
        self._woken.close()
        self._waker.close()
        self._starter.shutdown()
        self.cut_lifeline()

    def cut_lifeline(self) -> None:
        for end in self._lifeline:
            os.close(end)
        self._lifeline = ()

    def _slot(self, index: int, clock: Clock) -> Slot[WorkerProcess]:
        return Slot(
            lambda: self._start_worker(index),
            checkpoints=self._checkpoints,
            clock=clock,
            problem=self._problem,
        )

    def _start_worker(self, index: int) -> WorkerProcess:
        environment = worker_environment(os.environ, index=index, workers=self._sharing, devices=self._devices)
        try:
            starting = self._starter.submit(WorkerProcess, lifeline=self._lifeline[0], environment=environment)
            worker = starting.result()
        except OSError as error:
            raise WorkError(f"A worker needs a process of its own, got {error}. Free memory or processes.") from error
        worker.mailbox.post(to_bytes(self._setup()))
        worker.mailbox.post(self._work)
        return worker

    def _setup(self) -> Json:
        return {
            "problem": self._problem.to_json(),
            "checkpoints": self._checkpoints.place,
            "folder": os.getcwd(),
            "argv": sys.argv,
        }

    def _wait_for_events(self, until: float) -> set[int]:
        """The descriptors of workers that have sent something, take more, or have died."""
        events = {self._woken.fileno(): select.POLLIN}
        for worker in self._living_workers():
            events[worker.sentinel] = select.POLLIN
            if not worker.mailbox.is_closed:
                has_more = worker.mailbox.has_mail_to_send
                events[worker.mailbox.fileno()] = select.POLLIN | (select.POLLOUT if has_more else 0)
        first = min([until, *(slot.deadline for slot in self._slots)])
        return wait_for_events(events, first - time.monotonic())

    def _living_workers(self) -> Iterator[WorkerProcess]:
        return (slot.worker for slot in self._slots if slot.worker is not None)

    def _was_woken(self, ready: set[int]) -> bool:
        return self._woken.fileno() in ready and bool(self._woken.recv(4096))

    def _let_idle_workers_leave(self) -> None:
        idle = [slot.worker for slot in self._slots if slot.worker is not None and slot.job is None]
        for worker in idle:
            worker.mailbox.hang_up()
        staying = {worker.sentinel: select.POLLIN for worker in idle}
        until = time.monotonic() + SECONDS_TO_LEAVE
        while staying and time.monotonic() < until:
            for sentinel in wait_for_events(staying, until - time.monotonic()):
                del staying[sentinel]


def _let_go_in_child() -> None:
    """A fork of the coordinator that outlives it must not keep its workers alive."""
    for executor in list(_executors):
        executor.cut_lifeline()


os.register_at_fork(after_in_child=_let_go_in_child)
