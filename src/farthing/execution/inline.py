"""Runs jobs in the calling thread: for debugging, and for work too short to be sent anywhere."""

import threading
from collections import deque
from contextlib import ExitStack

from farthing.costs.clock import Clock, SystemClock
from farthing.errors import Pruned, StaleAttempt, TrialFinished, WorkError
from farthing.execution.attempts import Superseded, run_attempt
from farthing.execution.checkpoints import Checkpoints
from farthing.execution.executor import Ended, Job, Listener, News
from farthing.execution.pipeline import PipelineWork
from farthing.execution.running_trial import CutShort, RunningTrial
from farthing.execution.work import as_work
from farthing.trials import Attempt, Outcome, Problem

_has_worked = False
"""Whether a trial ran in this process itself."""


class InlineExecutor:
    """Runs one job at a time, inside `wait`. Breakpoints work, and Ctrl-C goes to the caller.

    Work that crashes takes this process with it, and a time limit could not be kept, so it is refused.
    """

    works_in_wait = True
    workers = 1

    def __init__(self, work: object, problem: Problem, *, checkpoints: Checkpoints, clock: Clock | None = None) -> None:
        self._work = as_work(work)
        self._work.check(problem)
        self._held = ExitStack()
        if isinstance(self._work, PipelineWork):
            self._held.enter_context(self._work.running_here())
        self._problem = problem
        self._checkpoints = checkpoints
        self._clock = clock or SystemClock()
        self._jobs: deque[Job] = deque()
        self._woken = threading.Event()

    @property
    def free(self) -> int:
        return 1 - len(self._jobs)

    @property
    def running(self) -> tuple[Attempt, ...]:
        return tuple(job.attempt for job in self._jobs)

    def submit(self, job: Job) -> None:
        if job.time_limit is not None:
            raise WorkError(
                f"Inline work cannot have a time limit, got {job.time_limit:g} s. Run it in worker processes instead."
            )
        self._jobs.append(job)

    def wait(self, listener: Listener, *, timeout: float | None = None) -> list[Ended]:
        if self._jobs:
            job, is_first = self._jobs.popleft(), begins_this_process()
            return [Ended(job.attempt, self._run(job, listener), began_its_worker=is_first)]
        self._woken.wait(timeout)
        self._woken.clear()
        return []

    def wake(self) -> None:
        self._woken.set()

    def close(self) -> None:
        self._jobs.clear()
        self._held.close()

    def _run(self, job: Job, listener: Listener) -> Outcome | None:
        channel = _DirectChannel(job.attempt, listener)
        trial = RunningTrial(job, self._problem, send=channel.send, checkpoints=self._checkpoints, clock=self._clock)
        outcome = run_attempt(self._work, trial, let_through=(KeyboardInterrupt,))
        channel.raise_refusal()
        return None if channel.is_superseded else outcome


def begins_this_process() -> bool:
    """Whether no trial ran in this process itself before. Asking says so: the next trial is not the first."""
    global _has_worked
    begins, _has_worked = not _has_worked, True
    return begins


class _DirectChannel:
    """Hands news to the listener. A listener's error is not the work's: it ends the job and is raised afterwards."""

    def __init__(self, attempt: Attempt, listener: Listener) -> None:
        self._attempt = attempt
        self._listener = listener
        self._error: Exception | None = None

    @property
    def is_superseded(self) -> bool:
        return isinstance(self._error, (StaleAttempt, TrialFinished))

    def send(self, news: News) -> None:
        try:
            self._listener.on_news(self._attempt, news)
        except Pruned as error:
            raise CutShort from error
        except Exception as error:
            self._error = error
            raise Superseded from error

    def raise_refusal(self) -> None:
        if self._error is not None and not self.is_superseded:
            raise self._error
