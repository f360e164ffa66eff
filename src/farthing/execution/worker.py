"""A worker process: takes jobs from the coordinator, one at a time, until it hangs up."""

import ctypes
import faulthandler
import os
import pickle
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from farthing.errors import WorkError
from farthing.execution import messages, wire
from farthing.execution.attempts import Superseded, run_attempt
from farthing.execution.executor import News
from farthing.execution.failures import failure_of
from farthing.execution.messages import (
    Finished,
    Ready,
    Unready,
    WorkerMessage,
    job_from_json,
    message_to_json,
)
from farthing.execution.platform import end_with_parent
from farthing.execution.running_trial import CutShort, RunningTrial
from farthing.execution.stored_checkpoints import checkpoints_at
from farthing.execution.work import CarriesOut
from farthing.trials import Outcome, Problem

# ------------------------------------------------------------
# A process beside each worker that ends the worker's group when the coordinator dies.
#
# A thread of the worker could not: work that holds the interpreter lets no other thread run. The kernel's parent-
# death signal alone would not do either: it ends the worker, but not the processes that the work has started.


def start_guardian(lifeline: int, *, others: Sequence[int]) -> None:
    """Starts a guardian in this process's group, which waits for the other end of the lifeline to close.

    It is no child of this process, so that work that waits for its children does not wait for it. It closes its copies
    of the `others`, descriptors whose closing by the worker could not be seen otherwise. To be called before any
    thread is started.
    """
    starter = os.fork()
    if starter:
        os.waitpid(starter, 0)
    elif os.fork():
        os._exit(0)
    else:
        _guard(lifeline, others)


def _guard(lifeline: int, others: Sequence[int]) -> None:
    try:
        for descriptor in others:
            os.close(descriptor)
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # signals that the work sends to its group
        os.read(lifeline, 1)  # nothing is ever written: this returns when the coordinator's end is closed
        os.killpg(0, signal.SIGKILL)
    finally:
        os._exit(1)


# ------------------------------------------------------------
# Sends all that a process prints to the log of the job it runs.


class JobLog:
    """Redirects the descriptors of standard output and error, so that C libraries and child programs are heard too."""

    def __init__(self) -> None:
        self._between_jobs = os.dup(2)
        self._c_library = ctypes.CDLL(None)

    @contextmanager
    def writing_to(self, path: Path) -> Iterator[None]:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o666)
        self._point_to(descriptor)
        os.close(descriptor)
        sys.stdout, sys.stderr = _open_stream(sys.stdout, 1), _open_stream(sys.stderr, 2)
        try:
            yield
        finally:
            self._flush()
            self._point_to(self._between_jobs)

    def _point_to(self, descriptor: int) -> None:
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)

    def _flush(self) -> None:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):  # work may have closed or replaced them
                stream.flush()
        self._c_library.fflush(None)


def _open_stream(stream: TextIO | None, descriptor: int) -> TextIO:
    """The stream as it is, or a new one where work has closed it or it is not written line by line yet."""
    if stream is not None and not stream.closed and getattr(stream, "line_buffering", True):
        return stream
    return open(descriptor, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)


ASKS_TO_END = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(wire_fd: int, lifeline_fd: int, coordinator_pid: int) -> None:
    """Runs until the coordinator hangs up, or until it dies: then this process ends at once with all its children."""
    start_guardian(lifeline_fd, others=(0, 1, 2, wire_fd))
    os.close(lifeline_fd)
    end_with_parent(coordinator_pid)
    os.set_inheritable(wire_fd, False)
    faulthandler.enable(file=2, all_threads=False)
    coordinator = socket.socket(fileno=wire_fd)
    log = JobLog()
    worker = _prepare(coordinator, log)
    if worker is not None:
        worker.serve()


def _prepare(coordinator: socket.socket, log: JobLog) -> "_Worker | None":
    """Unpacks the work and says whether that went well."""
    setup, work = wire.receive(coordinator), wire.receive_bytes(coordinator)
    sys.argv = setup["argv"]
    try:
        os.chdir(setup["folder"])
        worker = _Worker(coordinator, log, setup, pickle.loads(work))  # noqa: S301  # our own parent's, by private socket
    except BaseException as error:
        _tell(coordinator, Unready(failure_of(error)))
        return None
    _tell(coordinator, Ready())
    return worker


def _tell(coordinator: socket.socket, message: WorkerMessage) -> None:
    wire.send(coordinator, message_to_json(message))


class _Worker:
    def __init__(self, coordinator: socket.socket, log: JobLog, setup: dict[str, Any], work: CarriesOut) -> None:
        self._coordinator = coordinator
        self._log = log
        self._folder = setup["folder"]
        self._problem = Problem.from_json(setup["problem"])
        self._checkpoints = checkpoints_at(setup["checkpoints"])
        self._work = work
        self._process = os.getpid()

    def serve(self) -> None:
        while True:
            try:
                form = wire.receive(self._coordinator)
            except EOFError:
                return
            outcome = self._run(form)
            self._end_stray_fork()
            _tell(self._coordinator, Finished(outcome))

    def _run(self, form: dict[str, Any]) -> Outcome | None:
        job = job_from_json(form)
        channel = _WireChannel(self._coordinator)
        trial = RunningTrial(job, self._problem, send=channel.send, checkpoints=self._checkpoints)
        try:
            os.chdir(self._folder)
            log = self._checkpoints.log_path(trial.number, trial.attempt)
            with _ending_as_before(), self._log.writing_to(log):
                return run_attempt(self._work, trial)
        except OSError as error:
            return trial._fail(failure_of(error))
        finally:
            self._checkpoints.keep_log(job.attempt)
            channel.close()

    def _end_stray_fork(self) -> None:
        """Work that forks may return twice; only the first process speaks for the trial."""
        if os.getpid() != self._process:
            os._exit(0)


@contextmanager
def _ending_as_before() -> Iterator[None]:
    """Puts back how this process heeds what asks it to end: a job that ignores that must not make the next immortal."""
    before = {number: signal.getsignal(number) for number in ASKS_TO_END}
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler is not None:  # None is a handler that was not set in Python
                signal.signal(number, handler)


class _WireChannel:
    """Sends news to the coordinator and blocks until it says that they are durable, or not wanted any more."""

    def __init__(self, coordinator: socket.socket) -> None:
        self._coordinator = coordinator
        self._process = os.getpid()
        self._one_at_a_time = threading.Lock()
        self._is_closed = False

    def close(self) -> None:
        """Refuses what threads that the work left behind may still want to say: the next job has the wire now."""
        with self._one_at_a_time:
            self._is_closed = True

    def send(self, news: News) -> None:
        if os.getpid() != self._process:
            raise WorkError(
                "A trial must be reported on from the process that runs it, got a fork of it. Report there."
            )
        with self._one_at_a_time:
            if self._is_closed:
                raise WorkError("A trial must report before it ends, got a report after that. Wait for your threads.")
            _tell(self._coordinator, news)
            match wire.receive(self._coordinator):
                case messages.GO_ON:
                    return
                case messages.CUT_SHORT:
                    raise CutShort
                case _:
                    raise Superseded
