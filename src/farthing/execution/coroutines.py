"""Runs coroutines in one event loop: for work that waits, for a service or a model behind one, and does not compute."""

import asyncio
import logging
import math
import sys
import sysconfig
import threading
import time
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from traceback import extract_stack
from typing import NamedTuple, TypeAlias

from farthing.costs.clock import Clock, SystemClock
from farthing.errors import InvalidArgument, Pruned, StaleAttempt, TrialFinished
from farthing.execution.attempts import Attempted, Superseded, check_resume_dir
from farthing.execution.checkpoints import Checkpoints
from farthing.execution.executor import Ended, Job, Listener, News, check_workers
from farthing.execution.inline import begins_this_process
from farthing.execution.running_trial import CutShort, RunningTrial
from farthing.execution.work import as_work, coroutine_of
from farthing.trials import Attempt, Failure, Outcome, Problem

log = logging.getLogger("farthing")

SECONDS_TO_LEAVE = 2.0
"""Longest time for a coroutine to clean up once it is cancelled; then it is let go of."""
BLOCKED = 1.0
"""Seconds without a turn of the event loop after which the work is said to block it."""
OURS = tuple(str(place) for place in (Path(__file__).parents[1], sysconfig.get_path("stdlib")))

Mail: TypeAlias = "_Asked | Ended | None"


class _Asked(NamedTuple):
    """News of a trial whose coroutine waits for the answer: None to go on, else what is raised there."""

    attempt: Attempt
    news: News
    answer: "SimpleQueue[BaseException | None]"


class AsyncExecutor:
    """Runs up to `workers` coroutines at once, in the event loop of one thread of this process.

    A report waits until it is durable, and the loop with it: some milliseconds. A coroutine past its time limit is
    cancelled. One that blocks the loop cannot be: all others wait for it, which is said in the log, with the line.
    """

    works_in_wait = False

    def __init__(
        self,
        work: object,
        problem: Problem,
        *,
        workers: int,
        checkpoints: Checkpoints,
        clock: Clock | None = None,
    ) -> None:
        check_workers(workers)
        self.workers = workers
        checked = as_work(work)
        self._work = coroutine_of(checked)
        checked.check(problem)
        self._problem = problem
        self._checkpoints = checkpoints
        self._clock = clock or SystemClock()
        self._mail: SimpleQueue[Mail] = SimpleQueue()
        self._running: dict[Attempt, _Coroutine] = {}
        self._posting = threading.Lock()
        self._is_closed = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._turn, name="farthing-async", daemon=True)
        self._turned_at = time.monotonic()
        self._said: set[Attempt] = set()
        self._thread.start()

    @property
    def free(self) -> int:
        return 0 if self._is_closed else self.workers - len(self._running)

    @property
    def running(self) -> tuple[Attempt, ...]:
        return tuple(self._running)

    def submit(self, job: Job) -> None:
        if not self.free:
            raise InvalidArgument(
                f"A job needs a free worker, got {job.attempt} while all are busy. Wait for one to end."
            )
        begun = self._running[job.attempt] = _Coroutine(self, job, is_first=begins_this_process())
        self._loop.call_soon_threadsafe(begun.start)

    def wait(self, listener: Listener, *, timeout: float | None = None) -> list[Ended]:
        until = math.inf if timeout is None else time.monotonic() + timeout
        ended: list[Ended] = []
        while not ended:
            try:
                mail = self._mail.get(timeout=max(0.0, min(BLOCKED / 2, until - time.monotonic())))
            except Empty:
                self._look_for_what_blocks()
                if time.monotonic() >= until:
                    break
                continue
            ended += self._heed(mail, listener)
            with suppress(Empty):
                while ended:  # those that ended meanwhile
                    ended += self._heed(self._mail.get_nowait(), listener)
            if mail is None:
                break
        return ended

    def wake(self) -> None:
        self._mail.put(None)

    def close(self) -> None:
        """Cancels what runs, and gives it a moment to clean up."""
        with self._posting:
            if self._is_closed:
                return
            self._is_closed = True
        for begun in self._running.values():
            begun.leave()
        until = time.monotonic() + SECONDS_TO_LEAVE
        while self._running and time.monotonic() < until:
            with suppress(Empty):
                mail = self._mail.get(timeout=until - time.monotonic())
                if isinstance(mail, Ended):
                    self._running.pop(mail.attempt, None)
                elif mail is not None:
                    mail.answer.put(Superseded())
        self._running.clear()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=SECONDS_TO_LEAVE)

    def _turn(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._beat()
        self._loop.run_forever()
        with suppress(RuntimeError):  # a coroutine that would not be cancelled is at work still
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    def _beat(self) -> None:
        self._turned_at = time.monotonic()
        self._loop.call_later(BLOCKED / 4, self._beat)

    def _post(self, mail: Mail) -> None:
        """Called in the thread of the loop, or in one that the work has begun."""
        with self._posting:
            if self._is_closed and isinstance(mail, _Asked):
                raise Superseded
            self._mail.put(mail)

    def _heed(self, mail: Mail, listener: Listener) -> list[Ended]:
        if isinstance(mail, Ended):
            self._running.pop(mail.attempt, None)
            return [mail]
        if mail is not None:
            self._pass_on(mail, listener)
        return []

    def _pass_on(self, asked: _Asked, listener: Listener) -> None:
        """A listener's error is not the work's: it ends the job and is raised here."""
        answer: BaseException | None = Superseded()
        try:
            listener.on_news(asked.attempt, asked.news)
            answer = None
        except Pruned:
            answer = CutShort()
        except (StaleAttempt, TrialFinished):
            pass
        finally:
            asked.answer.put(answer)

    def _look_for_what_blocks(self) -> None:
        if not self._running or time.monotonic() - self._turned_at < BLOCKED:
            return
        task = asyncio.current_task(self._loop)
        begun = next((one for one in self._running.values() if one.task is task), None)
        frame = sys._current_frames().get(self._thread.ident or 0)
        if begun is None or begun.job.attempt in self._said:
            return
        self._said.add(begun.job.attempt)
        lines = [one for one in extract_stack(frame) if not one.filename.startswith(OURS)]
        place = f" at {Path(lines[-1].filename).name}, line {lines[-1].lineno}" if lines else ""
        log.warning(
            "The event loop has stood still for %.0f s: trial %d blocks it%s. Every other trial waits, and no time "
            "limit is kept. Await there, or write await asyncio.to_thread(…).",
            time.monotonic() - self._turned_at,
            begun.job.attempt.number,
            place,
        )


class _Coroutine:
    """One job as a task of the loop. Everything but `__init__` and `leave` is called in the loop's thread."""

    def __init__(self, executor: AsyncExecutor, job: Job, *, is_first: bool) -> None:
        self.job = job
        self.task: asyncio.Task[None] | None = None
        self._executor = executor
        self._is_first = is_first
        self._is_over = False
        self._is_superseded = False
        self._ended_by: str | None = None
        self._timers: list[asyncio.TimerHandle] = []
        self._trial = RunningTrial(
            job,
            executor._problem,
            send=self._send,
            checkpoints=executor._checkpoints,
            clock=executor._clock,
        )

    def start(self) -> None:
        loop, job = self._executor._loop, self.job
        self.task = loop.create_task(self._carry_out(), name=f"trial {job.attempt.number}")
        for seconds, why in ((job.time_limit, "limit"), (job.seconds_left, "budget")):
            if seconds is not None:
                self._timers.append(loop.call_later(max(0.0, seconds), self._cancel, why))

    def leave(self) -> None:
        """Called in the thread of the run, as it ends."""
        self._executor._loop.call_soon_threadsafe(self._cancel, "close")

    def _cancel(self, why: str) -> None:
        if self._is_over or self.task is None or self._ended_by is not None:
            return
        self._ended_by = why
        self.task.cancel()
        self._timers.append(self._executor._loop.call_later(SECONDS_TO_LEAVE, self._end, None))

    async def _carry_out(self) -> None:
        attempted = Attempted(self._trial)
        with attempted:
            check_resume_dir(self._trial)
            attempted.returned = await self._executor._work(self._trial)
        self._end(attempted)

    def _end(self, attempted: Attempted | None) -> None:
        """Says how it ended; without `attempted` it would not be cancelled, and is let go of."""
        if self._is_over:
            return
        self._is_over = True
        for timer in self._timers:
            timer.cancel()
        ended = Ended(self.job.attempt, self._outcome(attempted), began_its_worker=self._is_first)
        self._executor._post(ended)

    def _outcome(self, attempted: Attempted | None) -> Outcome | None:
        if self._is_superseded or self._ended_by == "close":
            return None
        if self._ended_by == "limit":
            return self._trial._fail(Failure(f"The work ran past its time limit of {self.job.time_limit:g} s"))
        if self._ended_by == "budget":
            return self._trial._prune()
        assert attempted is not None, "only what was cancelled is let go of"
        return attempted.outcome()

    def _send(self, news: News) -> None:
        if self._is_over or self._is_superseded:
            raise Superseded
        asked = _Asked(self.job.attempt, news, SimpleQueue())
        self._executor._post(asked)
        answer = asked.answer.get()
        self._is_superseded = isinstance(answer, Superseded)
        if answer is not None:
            raise answer
