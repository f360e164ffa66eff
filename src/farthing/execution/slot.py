"""One of an executor's places: a job, and the worker process that has it."""

import math
import time
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from farthing.costs.clock import Clock
from farthing.errors import Pruned, StaleAttempt, TrialFinished, WorkError
from farthing.execution.checkpoints import Checkpoints
from farthing.execution.executor import Checkpointed, Ended, Job, Listener, News
from farthing.execution.failures import Exit
from farthing.execution.messages import (
    CUT_SHORT,
    GO_ON,
    STOP,
    Finished,
    Ready,
    Unready,
    WorkerMessage,
    check_fits,
    job_to_json,
    message_from_json,
)
from farthing.execution.ranks import refusal_in
from farthing.execution.wire import BrokenWire, to_bytes
from farthing.execution.worker_process import last_lines
from farthing.trials import Attempt, Failure, Json, Kind, Measurement, Outcome, Problem, State

STARTS = 3
"""Number of workers in a row that may die before they are ready; more would be an endless loop."""
SECONDS_TO_START = 300.0
"""Longest time until a worker is ready, the imports of the work included."""
SECONDS_TO_DIE = 5.0
"""Longest life of a worker without a connection: one that has lost it is as a rule just ending."""


class Letterbox(Protocol):
    """The coordinator's end of the connection to a worker. It never blocks. `is_closed`: no more will come."""

    @property
    def is_closed(self) -> bool: ...

    def fileno(self) -> int:
        """The number by which `Slot.attend` is told that something has come."""
        ...

    def post(self, payload: bytes) -> None: ...

    def flush(self) -> None: ...

    def messages(self) -> Iterator[Json]: ...


class WorkerHandle(Protocol):
    """A worker, on this machine or on another. `Slot.attend` is told by `sentinel` that it has ended."""

    @property
    def mailbox(self) -> Letterbox: ...

    @property
    def sentinel(self) -> int: ...

    @property
    def is_usable(self) -> bool:
        """Whether it lives and can be talked to."""
        ...

    @property
    def lost_node(self) -> bool:
        """Whether the machine that it was on is gone."""
        ...

    def end(self) -> Exit:
        """Ends the worker with all that it started, if it has not ended, and says how it did."""
        ...

    def last_output(self) -> str:
        """The end of what it printed outside of any job."""
        ...


@dataclass
class _Assignment:
    """A job as far as it has been seen: `paid_until` is the moment up to which its cost is known.

    `begins_worker` says that a worker was started for it.
    """

    job: Job
    begins_worker: bool
    has_begun: bool = False
    paid_until: float = 0.0
    measurements: int = 0
    value: float | None = None
    checkpoint: str | None = None
    is_superseded: bool = False

    def heed(self, news: News) -> None:
        """Keeps the news that an outcome needs if the worker dies, or is ended."""
        match news:
            case Measurement(sequence=sequence, value=value):
                self.measurements = max(self.measurements, sequence + 1)
                self.value = self.value if value is None else value
            case Checkpointed(checkpoint):
                self.checkpoint = checkpoint


W = TypeVar("W", bound=WorkerHandle)


class Slot(Generic[W]):
    """Gives its job to a worker, passes the worker's news on, and says how the job ended.

    The worker is started for the first job, kept for the next, and replaced when it has died. `deadline` is the moment,
    by `time.monotonic`, until which `attend` must be called even when nothing has happened.
    """

    def __init__(
        self,
        start_worker: Callable[[], W],
        *,
        checkpoints: Checkpoints,
        clock: Clock,
        problem: Problem,
    ) -> None:
        self.worker: W | None = None
        self.deadline = math.inf
        self._start_worker = start_worker
        self._checkpoints = checkpoints
        self._clock = clock
        self._problem = problem
        self._assignment: _Assignment | None = None
        self._failed_starts = 0
        self._ends_at = math.inf

    @property
    def job(self) -> Job | None:
        return self._assignment.job if self._assignment else None

    def take(self, job: Job) -> None:
        if self.worker is not None and not self.worker.is_usable:
            self.end_worker()
        self._assignment = _Assignment(job, begins_worker=self.worker is None)
        self._ends_at = math.inf if job.seconds_left is None else time.monotonic() + job.seconds_left
        if self.worker is None:
            self._start()
        else:
            self._begin()

    def attend(self, ready: Container[int], listener: Listener) -> Ended | None:
        """Heeds the worker's mail, its death and the deadline, in this order: what was sent in time counts.

        `ready` holds the descriptors that have something to say. Returns the job's end when it has come.
        """
        worker = self.worker
        if worker is None:
            return None
        has_died, ended = worker.sentinel in ready, None
        if has_died or worker.mailbox.fileno() in ready:
            ended = self._read_mail(worker, listener)
        if has_died and self.worker is worker:
            ended = ended or self._break_off(None)
        if time.monotonic() >= self.deadline:
            ended = ended or self._notice_deadline()
        return ended

    def end_worker(self) -> Exit:
        """Ends the worker with its group, at once, and says how it ended."""
        assert self.worker is not None
        worker, self.worker = self.worker, None
        self.deadline = math.inf
        return worker.end()

    def _read_mail(self, worker: W, listener: Listener) -> Ended | None:
        worker.mailbox.flush()
        try:
            for form in worker.mailbox.messages():
                if ended := self._heed(message_from_json(form), listener):
                    return ended
        except BrokenWire as error:
            return self._break_off(f"broke the connection to its worker ({error})")
        if worker.mailbox.is_closed:
            self.deadline = min(self.deadline, time.monotonic() + SECONDS_TO_DIE)
        return None

    def _notice_deadline(self) -> Ended | None:
        assert self.worker is not None
        if self._assignment is not None and time.monotonic() >= self._ends_at:
            return self._cut_short(self._assignment)
        limit = self._assignment.job.time_limit if self._assignment else None
        if limit is None or self.worker.mailbox.is_closed:
            return self._break_off("closed the connection to its worker")
        return self._break_off(f"ran past its time limit of {limit:g} s")

    def _break_off(self, reason: str | None) -> Ended | None:
        """Does without the worker from now on, for that reason or for the one that its exit tells."""
        if self._assignment is None:
            self.end_worker()
        elif self._assignment.has_begun or (self.worker is not None and self.worker.lost_node):
            return self._abort(self._assignment, reason)
        else:
            self._start_again()
        return None

    def _start(self) -> None:
        self.worker = self._start_worker()
        self.deadline = min(self._ends_at, time.monotonic() + SECONDS_TO_START)

    def _start_again(self) -> None:
        assert self.worker is not None
        self._failed_starts += 1
        output = self.worker.last_output()
        self.end_worker()
        if self._failed_starts >= STARTS:
            raise _did_not_start(output)
        self._start()

    def _begin(self) -> None:
        assert self.worker is not None
        assert self._assignment is not None
        self._assignment.has_begun = True
        self._assignment.paid_until = self._clock.elapsed()
        limit = self._assignment.job.time_limit
        self.deadline = self._ends_at if limit is None else min(self._ends_at, time.monotonic() + limit)
        self.worker.mailbox.post(to_bytes(job_to_json(self._assignment.job)))

    def _heed(self, message: WorkerMessage, listener: Listener) -> Ended | None:
        assignment = self._assignment
        if assignment is None:
            raise BrokenWire("A worker must send news of its job only, got some while it had none. Report in time.")
        if assignment.has_begun == isinstance(message, (Ready, Unready)):
            raise BrokenWire("A worker must become ready once, before its job begins, got news out of turn. Report it.")
        check_fits(message, assignment.job, self._problem.space)
        match message:
            case Ready():
                self._failed_starts = 0
                self._begin()
            case Unready(failure):
                raise _did_not_unpack(failure)
            case Finished(None) if not assignment.is_superseded:
                raise BrokenWire("A job must end with an outcome, got none. Return a number, or raise.")
            case Finished(outcome):
                return self._finish(assignment, outcome)
            case news:
                self._pass_on(assignment, news, listener)
        return None

    def _pass_on(self, assignment: _Assignment, news: News, listener: Listener) -> None:
        assert self.worker is not None
        answer = STOP if assignment.is_superseded else _answer(news, assignment.job.attempt, listener)
        if not assignment.is_superseded:
            assignment.is_superseded = answer == STOP
            assignment.heed(news)
            assignment.paid_until = self._clock.elapsed()
        self.worker.mailbox.post(to_bytes(answer))

    def _finish(self, assignment: _Assignment, outcome: Outcome | None) -> Ended:
        self._assignment = None
        self.deadline = math.inf
        known = None if assignment.is_superseded else outcome
        return Ended(assignment.job.attempt, known, began_its_worker=assignment.begins_worker)

    def _abort(self, assignment: _Assignment, reason: str | None) -> Ended:
        """Ends the worker in the middle of its job."""
        attempt = assignment.job.attempt
        how = self.end_worker()
        self._checkpoints.keep_log(attempt)  # where it lies on this machine; its worker cannot do so any more
        log = last_lines(self._checkpoints.log_path(attempt.number, attempt.attempt))
        refusal = refusal_in(log) if how.was_killed else None
        failure = Failure(refusal or f"The work {reason or how.words}", log)
        ended = self._finish(assignment, self._failed(assignment, failure))
        was_killed = reason is None and refusal is None and how.was_killed
        return replace(ended, was_killed=was_killed, lost_node=reason is None and how.lost_node)

    def _cut_short(self, assignment: _Assignment) -> Ended:
        """Ends the worker in the middle of its job, because a hard budget is over; what it has reported is kept."""
        self.end_worker()
        value = assignment.job.reported if assignment.value is None else assignment.value
        closing = self._closing(assignment, kind="training")
        outcome = Outcome(State.PRUNED, value=value, measurements=(closing,), checkpoint=assignment.checkpoint)
        return self._finish(assignment, outcome)

    def _failed(self, assignment: _Assignment, failure: Failure) -> Outcome:
        closing = self._closing(assignment, kind="failed")
        return Outcome(State.FAILED, measurements=(closing,), failure=failure, checkpoint=assignment.checkpoint)

    def _closing(self, assignment: _Assignment, *, kind: Kind) -> Measurement:
        """The cost since the last news of a job whose worker was ended."""
        unpaid = self._clock.elapsed() - assignment.paid_until if assignment.has_begun else 0.0
        return Measurement(
            cost={kind: unpaid} if self._problem.measures_cost else {},
            attempt=assignment.job.attempt.attempt,
            sequence=assignment.measurements,
        )


def _answer(news: News, attempt: Attempt, listener: Listener) -> str:
    """Hands news to the listener, and says what the worker is to do."""
    try:
        listener.on_news(attempt, news)
    except (StaleAttempt, TrialFinished):
        return STOP
    except Pruned:
        return CUT_SHORT
    return GO_ON


def _did_not_start(output: str) -> WorkError:
    last = output.strip().rpartition("\n")[2] or "they said nothing"
    error = WorkError(f"A worker must become ready, but {STARTS} in a row did not: {last}. Try executor='inline'.")
    error.add_note(output)
    return error


def _did_not_unpack(failure: Failure) -> WorkError:
    error = WorkError(
        f"Work must be importable in a worker process, got {failure.reason}. "
        f"Put its module where this process finds it too, or define the work in the script itself."
    )
    error.add_note(failure.traceback)
    return error
