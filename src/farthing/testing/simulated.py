"""A simulated cluster: any number of asynchronous workers in virtual time, through the same loop as real ones."""

import heapq
import itertools
import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypedDict

from farthing.costs import Clock, FakeClock
from farthing.errors import InvalidArgument, Pruned, StaleAttempt, TrialFinished
from farthing.execution import CarriesOut, Checkpoints, Ended, Job, RunningTrial
from farthing.execution.attempts import run_attempt
from farthing.execution.executor import Listener, News, check_workers
from farthing.fields import Number
from farthing.session.questions import Question
from farthing.session.turns import Answer
from farthing.storage import MemoryStorage
from farthing.trials import Attempt, Failure, Measurement, Outcome, Problem, State

LONG = 1e9
"""Seconds of a lease that never ends: in virtual time nobody renews."""


class VirtualSettings(TypedDict):
    """Arguments of `Study` that let it live in virtual time."""

    storage: MemoryStorage
    clock: Clock
    lease: float


@dataclass(frozen=True)
class Faults:
    """The faults that may happen to an attempt, each with a probability, drawn by seed, trial and attempt.

    `failure`: the work raises at a random moment. `preemption`: its worker is taken away at a random moment, as when
    the system kills one. `straggler`: everything takes `slowdown` times as long.
    """

    failure: float = 0.0
    preemption: float = 0.0
    straggler: float = 0.0
    slowdown: float = 3.0

    def __post_init__(self) -> None:
        for name in ("failure", "preemption", "straggler"):
            rule = Number(least=0.0, most=1.0)
            rule.checked(getattr(self, name), what=f"The probability of a {name}", advice="Leave it out for none.")
        Number(above=0.0).checked(self.slowdown, what="The slowdown of a straggler", advice="3 is usual.")


class SimulatedExecutor:
    """Runs work in virtual time: `study.run(work, executor=executor)`.

        executor = SimulatedExecutor(workers=64)

        def work(trial):
            executor.spend(60.0)
            return trial.params["x"] ** 2

        study = ft.Study(space, minimize="loss", **executor.settings)

    The work is an ordinary function that says with `spend` how long it would have taken. It is carried out at once,
    when it is submitted; its reports and its end come to the study when their time has come. Thinking takes virtual
    time too: the CPU seconds that it is measured to take here or, for exact tests, `thinking` seconds a call.
    Meanwhile trials go on, as they do with worker processes. What else a coordinator does takes no virtual time.
    """

    works_in_wait = False

    def __init__(
        self, *, workers: int, thinking: float | None = None, faults: Faults | None = None, seed: int = 0
    ) -> None:
        check_workers(workers)
        if thinking is not None:
            Number(least=0.0).checked(thinking, what="Seconds of thinking", advice="None measures them.")
        self.clock = FakeClock(0.0)
        self.workers = workers
        self._thinking = thinking
        self._faults = faults or Faults()
        self._seed = seed
        self._work: CarriesOut | None = None
        self._running: dict[Attempt, float] = {}
        self._told: dict[Attempt, list[tuple[float, News]]] = {}
        self._events: list[_Event] = []
        self._order = itertools.count()
        self._job_clock: _JobClock | None = None
        self._busy_seconds = 0.0
        self._thinker: SimulatedThinking | None = None

    @property
    def settings(self) -> VirtualSettings:
        """The arguments that the study must be given: a storage, a clock and a lease of virtual time."""
        return {"storage": MemoryStorage(clock=self.clock), "clock": self.clock, "lease": LONG}

    @property
    def idle_share(self) -> float:
        """The share of the workers' time so far in which they had nothing to do."""
        busy = self._busy_seconds + sum(self.clock.elapsed() - began for began in self._running.values())
        whole = self.workers * self.clock.elapsed()
        return 1.0 - busy / whole if whole > 0 else 0.0

    def spend(self, seconds: float) -> None:
        """Lets virtual time pass for the work that calls it."""
        if self._job_clock is None:
            raise InvalidArgument("Only work that this executor runs can spend its time, got a call from elsewhere.")
        self._job_clock.advance(float(Number(least=0.0).checked(seconds, what="Seconds to spend", advice="Use 1.0.")))

    def take_up(self, work: CarriesOut, problem: Problem, *, checkpoints: Checkpoints) -> None:
        """Says what is to be run; `study.run` calls it."""
        self._work, self._problem, self._checkpoints = work, problem, checkpoints

    def thinking_of(self, suggest: Callable[[Question], Answer], on_answer: Callable[[], None]) -> "SimulatedThinking":
        """The place of the strategy's thinking, instead of a thread."""
        self._thinker = SimulatedThinking(suggest, self.clock, seconds=self._thinking)
        return self._thinker

    @property
    def free(self) -> int:
        return self.workers - len(self._running)

    @property
    def running(self) -> tuple[Attempt, ...]:
        return tuple(self._running)

    def submit(self, job: Job) -> None:
        assert self._work is not None, "take_up comes first"
        self._running[job.attempt] = self.clock.elapsed()
        for event in self._carried_out(self._work, job):
            heapq.heappush(self._events, event)

    def wait(self, listener: Listener, *, timeout: float | None = None) -> list[Ended]:
        """Goes on to the next thing that happens. Nobody else works on the study, so that `timeout` counts only if
        nothing will.
        """
        while True:
            ready_at = None if self._thinker is None else self._thinker.wakes_at
            if self._events and (ready_at is None or self._events[0].at <= ready_at):
                event = heapq.heappop(self._events)
                self._go_on_to(event.at)
                ended = self._happens(event, listener)
                if ended is not None:
                    return [ended]
            else:
                self._go_on_to(ready_at if ready_at is not None else self.clock.elapsed() + (timeout or 0.0))
                if self._thinker is not None:
                    self._thinker.wakes_at = None
                return []

    def wake(self) -> None:
        """Nothing waits in real time."""

    def close(self) -> None:
        self._running.clear()
        self._told.clear()
        self._events.clear()

    def _go_on_to(self, moment: float) -> None:
        self.clock.advance(max(0.0, moment - self.clock.elapsed()))

    def _happens(self, event: "_Event", listener: Listener) -> Ended | None:
        """Tells the news, or how an attempt ended; None if it goes on, or was dropped before."""
        attempt = event.attempt
        if attempt not in self._running:
            return None
        if event.ended is not None:
            return self._end(event.ended)
        assert event.news is not None
        try:
            listener.on_news(attempt, event.news)
        except (StaleAttempt, TrialFinished):
            return self._end(Ended(attempt, None))
        except Pruned:
            told = self._told[attempt]
            heard = told[: 1 + [news for _, news in told].index(event.news)]
            outcome = self._pruned(heard, at=self.clock.elapsed(), began=self._running[attempt])
            return self._end(Ended(attempt, outcome))
        return None

    def _end(self, ended: Ended) -> Ended:
        self._busy_seconds += self.clock.elapsed() - self._running.pop(ended.attempt)
        del self._told[ended.attempt]
        return ended

    def _pruned(self, told: list[tuple[float, News]], *, at: float, began: float) -> Outcome:
        """How an attempt ends that a hard budget ends: with the value that it has."""
        points = [news for when, news in told if when <= at and isinstance(news, Measurement)]
        value = next((point.value for point in reversed(points) if point.value is not None), None)
        return Outcome(State.PRUNED, value=value, measurements=[self._closing(told, at=at, began=began)])

    def _carried_out(self, work: CarriesOut, job: Job) -> "list[_Event]":
        """All that the attempt will tell, with its times."""
        drawn = random.Random(f"{self._seed}/{job.attempt.number}/{job.attempt.attempt}")  # noqa: S311 - no secret
        is_slow, fails, is_taken = (drawn.random() for _ in range(3))
        began = self.clock.elapsed()
        clock = _JobClock(began, pace=self._faults.slowdown if is_slow < self._faults.straggler else 1.0)
        told: list[tuple[float, News]] = []
        trial = RunningTrial(
            job,
            self._problem,
            send=lambda news: told.append((clock.elapsed(), news)),
            checkpoints=self._checkpoints,
            clock=clock,
        )
        self._told[job.attempt] = told
        self._job_clock = clock
        try:
            outcome = run_attempt(work, trial, let_through=(KeyboardInterrupt,))
        finally:
            self._job_clock = None
        ends_at, moment = clock.elapsed(), began + drawn.random() * (clock.elapsed() - began)
        if is_taken < self._faults.preemption:
            return self._cut(job, told, "Its worker was pre-empted.", at=moment, began=began, was_killed=True)
        if fails < self._faults.failure:
            return self._cut(job, told, "SimulatedFailure: it failed by chance.", at=moment, began=began)
        if job.seconds_left is not None and ends_at - began > job.seconds_left:
            over = began + job.seconds_left
            ended = Ended(job.attempt, self._pruned(told, at=over, began=began))
            return [*self._news_until(over, job, told), self._event(over, job.attempt, ended=ended)]
        if job.time_limit is not None and ends_at - began > job.time_limit:
            reason = f"The time limit of {job.time_limit:g} s was reached."
            return self._cut(job, told, reason, at=began + job.time_limit, began=began)
        news = [self._event(at, job.attempt, news=news) for at, news in told]
        return [*news, self._event(ends_at, job.attempt, ended=Ended(job.attempt, outcome))]

    def _cut(
        self,
        job: Job,
        told: list[tuple[float, News]],
        reason: str,
        *,
        at: float,
        began: float,
        was_killed: bool = False,
    ) -> "list[_Event]":
        """The same, ended early: what came later is not told, and the time since the last report is failed work."""
        closing = self._closing(told, at=at, began=began)
        outcome = Outcome(State.FAILED, measurements=[closing], failure=Failure(reason))
        ended = Ended(job.attempt, outcome, was_killed=was_killed)
        return [*self._news_until(at, job, told), self._event(at, job.attempt, ended=ended)]

    def _closing(self, told: list[tuple[float, News]], *, at: float, began: float) -> Measurement:
        points = [moment for moment, news in told if moment <= at and isinstance(news, Measurement)]
        seconds = at - max([began, *points])
        return Measurement(cost={"training": seconds} if self._problem.measures_cost else {}, sequence=len(points))

    def _news_until(self, at: float, job: Job, told: list[tuple[float, News]]) -> "list[_Event]":
        return [self._event(moment, job.attempt, news=news) for moment, news in told if moment <= at]

    def _event(self, at: float, attempt: Attempt, **what: Any) -> "_Event":
        return _Event(at, next(self._order), attempt, **what)


class SimulatedThinking:
    """Stands in for the thread in which a strategy thinks: it thinks at once, and has its answer when it would have it.

    The CPU seconds of the call are measured, or `seconds` are declared.
    """

    def __init__(self, suggest: Callable[[Question], Answer], clock: FakeClock, *, seconds: float | None) -> None:
        self._suggest = suggest
        self._clock = clock
        self._seconds = seconds
        self._answer: Answer | None = None
        self._ready_at = math.inf
        self.wakes_at: float | None = None
        """When the loop is to be woken, as a thread does once; None if that was done."""
        self.cpu_seconds = 0.0

    @property
    def is_busy(self) -> bool:
        return self._answer is not None

    @property
    def has_answer(self) -> bool:
        return self._clock.elapsed() >= self._ready_at

    def ask(self, question: Question) -> None:
        began = time.process_time()
        answer = self._suggest(question)
        measured = time.process_time() - began
        self.cpu_seconds += measured
        seconds = measured if self._seconds is None else self._seconds
        self._answer = replace(answer, overhead=seconds)
        self._ready_at = self.wakes_at = self._clock.elapsed() + seconds

    def take(self) -> Answer | None:
        if not self.has_answer:
            return None
        answer, self._answer, self._ready_at, self.wakes_at = self._answer, None, math.inf, None
        return answer

    def close(self, *, waits: bool) -> None:
        """Nothing runs beside."""


class _JobClock(FakeClock):
    """The clock of one attempt, whose time passes `pace` times as slowly as the work says."""

    def __init__(self, start: float, *, pace: float) -> None:
        super().__init__(start)
        self._pace = pace

    def advance(self, seconds: float) -> None:
        super().advance(seconds * self._pace)


@dataclass(frozen=True, order=True)
class _Event:
    """By time, and by the order in which they were told."""

    at: float
    order: int
    attempt: Attempt
    news: News | None = None
    ended: Ended | None = None
