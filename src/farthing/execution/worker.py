"""A worker process: takes jobs from the coordinator, one at a time, until it hangs up."""

import faulthandler
import os
import pickle
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from farthing.errors import WorkError
from farthing.execution import messages, wire
from farthing.execution.attempts import Superseded, run_attempt
from farthing.execution.failures import failure_of
from farthing.execution.guardian import start_guardian
from farthing.execution.job_log import JobLog
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
from farthing.trials.news import News

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
