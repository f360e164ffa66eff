"""A worker's place on a node of a Ray cluster: this file runs there, as an actor."""

import json
import os
import platform
import select
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

from farthing.execution.checkpoints import Checkpoints
from farthing.execution.platform import THREAD_LIMITS
from farthing.execution.slot import SECONDS_TO_DIE
from farthing.execution.stored_checkpoints import checkpoints_at
from farthing.execution.wire import BrokenWire, to_bytes
from farthing.execution.worker_process import LONGEST_WAIT, WorkerProcess, wait_for_events
from farthing.trials import Attempt

MESSAGE, EXITED, BROKEN, CLOSED = b"m", b"x", b"b", b"c"
"""First byte of an answer: the worker's message follows; it has ended; it sent no message; it hung up, but lives."""
FINISHED = b'["finished"'
"""How the last message of a job begins."""
SECONDS_TO_LEAVE = 1.0
"""Longest time for an idle worker to end by itself."""
CALLS_AT_ONCE = 4
"""Calls that the actor takes at the same time: one that stays, one that waits for the worker, and those that end it."""


class RayPlace:
    """Starts the same worker process as on one machine, in a group of its own, and passes messages to and fro.

    The work runs in the worker, not in the actor: a time limit ends it with all that it started, and work that holds
    the interpreter blocks nothing. When this actor dies, by whatever cause, the worker's guardian ends the group.

    Answers are bytes, never objects: nothing that a worker sent is unpickled.
    """

    def __init__(self) -> None:
        self._lifeline = os.pipe()
        self._starter = ThreadPoolExecutor(1)  # a worker dies with the thread that started it: it must outlive it
        self._talking = threading.Lock()
        self._worker: WorkerProcess | None = None
        self._messages: deque[bytes] = deque()
        self._files: Checkpoints | None = None
        self._attempt: Attempt | None = None

    def describe(self, folder: str, proof: str) -> bytes:
        """This machine and its versions. `proof` is a file that the coordinator wrote in the study's folder."""
        context = import_module("ray").get_runtime_context()
        return to_bytes(
            {
                "node": context.get_node_id(),
                "host": platform.node(),
                "python": python_version(),
                "farthing": farthing_version(),
                "sees_folder": checkpoints_at(folder).sees(proof),
                "pid": os.getpid(),
            }
        )

    def stay(self) -> None:
        """Never returns: this call fails when the actor dies, which tells the coordinator at once."""
        threading.Event().wait()

    def start(self, setup: bytes, work: bytes, environment: Mapping[str, str]) -> bytes:
        """Starts a worker, in the place of one that has ended, and returns its first message."""
        self.end(gently=False)
        form = self._adapted(json.loads(setup))
        self._files = checkpoints_at(form["checkpoints"])
        with self._talking:
            variables = {**worker_variables(os.environ), **environment}
            starting = self._starter.submit(WorkerProcess, lifeline=self._lifeline[0], environment=variables)
            self._worker, self._messages = starting.result(), deque()
            self._worker.mailbox.post(to_bytes(form))
            self._worker.mailbox.post(work)
            return self._answer(self._worker)

    def exchange(self, message: bytes) -> bytes:
        """Passes a message to the worker and returns what it says to that."""
        with self._talking:
            if self._worker is None:
                return BROKEN + b"it has no worker"
            if message.startswith(b"{"):  # a job; the other messages are words
                self._attempt = Attempt(*json.loads(message)["attempt"])
                if self._files is not None:
                    self._files.show_log(self._attempt)
            self._worker.mailbox.post(message)
            return self._answer(self._worker)

    def end(self, *, gently: bool) -> None:
        """Ends the worker with its group; an idle one may be given a moment to leave by itself."""
        worker = self._worker
        if worker is None:
            return
        if gently:
            worker.mailbox.hang_up()
            wait_for_events({worker.sentinel: select.POLLIN}, SECONDS_TO_LEAVE)
        worker.kill()  # a call that waits for the worker's message now returns
        with self._talking:
            if self._worker is worker:
                self._worker = None
                worker.end()
                self._keep_log()

    def _answer(self, worker: WorkerProcess) -> bytes:
        """Blocks until the worker has sent a message or has ended; what was sent before the end comes first."""
        until = time.monotonic() + LONGEST_WAIT
        while not self._messages:
            has_ended = worker.sentinel in self._events(worker, until)
            worker.mailbox.flush()
            try:
                self._messages += worker.mailbox.payloads()
            except BrokenWire as error:
                return BROKEN + str(error).encode()
            if self._messages:
                break
            if has_ended:
                worker.kill()  # what it started lives on in its group
                self._keep_log()
                return EXITED + to_bytes({"code": worker.exit_code(), "output": worker.last_output()})
            if worker.mailbox.is_closed:
                if time.monotonic() >= until:
                    return CLOSED
                until = min(until, time.monotonic() + SECONDS_TO_DIE)
        message = self._messages.popleft()
        if message.startswith(FINISHED):
            self._end_attempt()  # the worker has kept its log
        return MESSAGE + message

    def _keep_log(self) -> None:
        """Keeps the log of the attempt that the worker died in: it cannot do so itself any more."""
        if self._files is not None and self._attempt is not None:
            self._files.keep_log(self._attempt)
        self._end_attempt()

    def _end_attempt(self) -> None:
        if self._files is not None and self._attempt is not None:
            self._files.hide_log(self._attempt)
        self._attempt = None

    def _events(self, worker: WorkerProcess, until: float) -> set[int]:
        events = {worker.sentinel: select.POLLIN}
        if not worker.mailbox.is_closed:
            more = select.POLLOUT if worker.mailbox.has_mail_to_send else 0
            events[worker.mailbox.fileno()] = select.POLLIN | more
        return wait_for_events(events, until - time.monotonic())

    def _adapted(self, setup: dict[str, Any]) -> dict[str, Any]:
        """The setup for this machine: modules are also looked for where the coordinator finds them.

        The work starts in the coordinator's folder, if it is here too and Ray was not told of another.
        """
        found = [entry for entry in setup.pop("import_path") if entry not in sys.path and os.path.exists(entry)]
        sys.path.extend(found)
        if setup.pop("keeps_folder") or not Path(setup["folder"]).is_dir():
            setup["folder"] = os.getcwd()
        return setup


def python_version() -> str:
    return ".".join(platform.python_version_tuple()[:2])


def farthing_version() -> str:
    """Returns the path of the package that this code is in."""
    return str(sys.modules["farthing"].__version__)


def worker_variables(base: Mapping[str, str]) -> dict[str, str]:
    """The environment of a worker: what Ray gave its actor, and as many threads as it has cores.

    The GPUs that Ray assigned are in CUDA_VISIBLE_DEVICES, Ray's name of the node is in FARTHING_NODE, and
    `ray.init()` in the work finds this cluster.
    """
    context = import_module("ray").get_runtime_context()
    cores = max(1, int(context.get_assigned_resources().get("CPU", 1)))
    ours = {"RAY_ADDRESS": context.gcs_address, "FARTHING_NODE": context.get_node_id()}
    return {**dict.fromkeys(THREAD_LIMITS, str(cores)), **base, **ours}
