"""The loop: while the budget lasts, read, suggest, open, submit, wait, record."""

import logging
import math
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from farthing.costs import Budget, Clock, Remaining
from farthing.costs.expected import expected_cost
from farthing.errors import StaleAttempt, StorageError, TrialFinished, WorkError
from farthing.execution import Checkpoints, Ended, Executor, Job
from farthing.execution.executor import News
from farthing.execution.failures import is_for_want_of_room
from farthing.running.stopping import IDLE, FirstFailures, Limits, Stopped, Stopping, StopReason, end_beyond
from farthing.running.suggestions import (
    GivesTimeToThink,
    Suggester,
    SuggesterForAll,
    SuggesterHere,
    SuggesterInThread,
)
from farthing.running.verification import Reserve
from farthing.session.questions import Question
from farthing.session.records import Records, Taken
from farthing.session.turns import Answer
from farthing.session.upkeep import CheckpointCollector, collect_leftovers
from farthing.strategies import Strategy
from farthing.trials import Attempt, History, Json, Measurement, State, Trial
from farthing.trials.prefixes import Eviction

if TYPE_CHECKING:
    from farthing.analysis.outlook import Outlook

log = logging.getLogger("farthing")

SPENT = Stopped(StopReason.BUDGET_SPENT, "the budget is spent")

PATIENCE_BETWEEN_COORDINATORS = 1.0
"""Seconds after which a loop with nothing to do looks at what others did and asked for."""


SECONDS_TO_HOLD = 10.0
"""How long idle workers hold what they have while others run that may bring work: about what beginning again takes."""


class Observer(Protocol):
    """Is shown the study as it goes: displays, callbacks and trackers."""

    def watching(self, loop: "Loop") -> AbstractContextManager[None]:
        """Entered before the loop runs, left when it has ended, however it did."""
        ...

    def on_start(self, trial: Trial) -> None: ...

    def on_report(self, trial: Trial, measurement: Measurement) -> None: ...

    def on_end(self, trial: Trial) -> None: ...


@runtime_checkable
class GivesBack(Protocol):
    """An executor whose idle workers hold what others could use."""

    def give_back(self, *, after: float) -> int:
        """Gives back what workers hold that have been idle for that long; returns how many idle ones still hold it."""
        ...


class Loop:
    """Joins a strategy, the records and an executor. It is also the executor's listener.

    The budget is the study's own, which may change meanwhile, and so may its end be asked for.

    With `shares`, it is one of many that run a study: one of them suggests for all (`running/suggestions.py`). With
    `only_runs` it takes what others suggest.

    With `only`, the numbers of enqueued trials, it runs those instead of suggestions within the budget of its limits,
    and ends when they do, even if another process ran them.
    """

    def __init__(
        self,
        records: Records,
        strategy: Strategy,
        executor: Executor,
        *,
        limits: Limits,
        checkpoints: Checkpoints,
        clock: Clock,
        observers: Sequence[Observer] = (),
        only: Collection[int] | None = None,
        shares: bool = False,
        only_runs: bool = False,
    ) -> None:
        self._records = records
        self._strategy = strategy
        self._executor = executor
        self._holder = executor if isinstance(executor, GivesBack) else None
        self._limits = limits
        self._checkpoints = checkpoints
        self._clock = clock
        self._observers = observers
        self._only = only
        self.trackers: dict[str, Json] = {}
        """How work reaches its runs in trackers, which say so when they begin to watch."""
        self._trials: Taken = {}
        self._own: set[int] = set()  # the numbers of those that were submitted
        self._seconds_before = 0.0
        self._began = 0.0
        self._stopped: Stopped | None = None
        self._stop_requests_before = 0
        self._warned_of: set[str] = set()
        self._kills: Counter[int] = Counter()
        self._lost_nodes: Counter[int] = Counter()
        self._first_failures: FirstFailures | None = None
        self._stopping = Stopping()
        self._reserve = Reserve(records, strategy) if limits.verifies else None
        self._collector = CheckpointCollector(records, strategy, checkpoints)
        self._started = 0
        self._free_since: list[float] = []
        self._idle = 0.0
        self._only_runs = only_runs
        self._suggester = self._made_suggester(shares=shares)

    def _made_suggester(self, *, shares: bool) -> Suggester:
        """A thread of its own, unless `wait` itself does the work: then nothing could be gained by it."""
        if shares:
            return SuggesterForAll(
                self._records,
                self._strategy,
                workers=max(1, self._executor.free),
                on_answer=self._executor.wake,
                only_runs=self._only_runs,
            )
        if self._executor.works_in_wait:
            return SuggesterHere(self._records, self._strategy)
        return SuggesterInThread(
            self._records,
            self._strategy,
            workers=self._executor.workers,
            on_answer=self._executor.wake,
            thinking=self._executor.thinking_of if isinstance(self._executor, GivesTimeToThink) else None,
        )

    def run(self) -> Stopped:
        """Runs until the budget is spent, the strategy has finished or `stop` is called; says which."""
        with ExitStack() as at_the_end:  # each of these is done whatever becomes of the others, the last one first
            for observer in self._observers:
                at_the_end.enter_context(observer.watching(self))
            at_the_end.push(lambda kind, *_: self._suggester.close(waits=kind is None))
            at_the_end.callback(self._records.leases.end_run)
            at_the_end.callback(collect_leftovers, self._records, self._strategy, self._checkpoints)
            at_the_end.callback(self._records.give_back, self._trials)
            holds = self._holder is not None
            at_the_end.callback(lambda: self._records.log_idle(self._idle + math.fsum(self._waits()), holds=holds))
            at_the_end.callback(self._executor.close)
            self._seconds_before = self._records.seconds_run()
            self._began = self._clock.elapsed()
            self._records.leases.begin_run()
            self._stop_requests_before = self._records.refresh().stop_requests
            collect_leftovers(self._records, self._strategy, self._checkpoints)
            return self._run()

    def stop(self) -> None:
        """Starts no more trials; those that run are finished. May be called from any thread."""
        self._stopped = Stopped(StopReason.STOPPED, "stopped")
        self.wake()

    def wake(self) -> None:
        """Lets it look at what was asked for. May be called from any thread."""
        self._executor.wake()

    @property
    def outlook(self) -> "Outlook | None":
        """The gain last expected from going on, if the budget says what a gain is worth."""
        return self._stopping.outlook

    @property
    def history(self) -> History:
        """The history as the loop last read it."""
        return self._records.history

    def budget(self, history: History) -> Budget | None:
        return self._limits.budget if self._only is not None else Budget.in_force(history)

    def remaining(self, history: History) -> Remaining:
        budget = self.budget(history)
        return Remaining() if budget is None else budget.remaining(history, seconds=self._seconds_run())

    def _left(self, history: History) -> Remaining:
        """The rest of the budget for new trials, without what is set aside for the verification."""
        left = self.remaining(history)
        return left if self._reserve is None else self._reserve.kept_back(left, history)

    def on_news(self, attempt: Attempt, news: News) -> None:
        self._records.record(attempt, news)
        match news:
            case Measurement():
                for observer in self._observers:
                    observer.on_report(self._trials[attempt], news)
                self._end_beyond(attempt, news)
            case Eviction(why="unwritable" | "corrupt"):
                self._warn_about_the_cache(attempt, news)

    def _end_beyond(self, attempt: Attempt, heard: Measurement) -> None:
        """Raises `Pruned` if a hard budget ends the trial; others may have spent it, or changed it."""
        budget = self.budget(self._records.history)
        if budget is not None and budget.hard:
            history = self._records.refresh()
            trial, seconds = self._trials[attempt], self._seconds_run()
            end_beyond(self.budget(history), history, trial, heard=heard, seconds=seconds)

    def _run(self) -> Stopped:
        self._records.sweep()
        self._free_since = [self._clock.elapsed()] * self._executor.free
        self._give_back(None)
        while True:
            stopped = self._fill()
            if stopped and self._is_over(stopped):
                return stopped
            self._give_back(stopped)
            ended = self._executor.wait(self, timeout=self._patience())
            if stopped:  # nobody thought: this was no waiting for suggestions
                self._idle += math.fsum(self._waits())
                self._free_since = [self._clock.elapsed()] * len(self._free_since)
            for job in ended:
                self._close(job)
                self._free_since.append(self._clock.elapsed())
            if not (ended or self._suggester.is_ready):
                self._look_around()

    def _give_back(self, stopped: Stopped | None) -> None:
        """Lets go of what idle workers hold: at once if nothing more will begin, else when nothing to do has lasted."""
        if self._holder is None:
            return
        is_over = self._stopped is not None or stopped is SPENT
        held = self._holder.give_back(after=0.0 if is_over else SECONDS_TO_HOLD if stopped else math.inf)
        gone, now = max(0, len(self._free_since) - held), self._clock.elapsed()
        self._idle += math.fsum(now - since for since in self._free_since[:gone])
        self._free_since = self._free_since[gone:] + [now] * (held - len(self._free_since))

    def _is_over(self, stopped: Stopped) -> bool:
        if self._executor.running or self._others_may_bring_work():
            return False
        may_change = self._stopped is None and (stopped.reason in IDLE or self._only_runs)
        return not (self._limits.waits_for_more and may_change)

    def _look_around(self) -> None:
        """Takes back what others lost, where there may be something, and takes up what was asked for."""
        if self._depends_on_others():
            self._records.sweep()
        self._take_up_requests(self._records.refresh())

    def _take_up_requests(self, history: History) -> None:
        """A request of before that still stands is one, too: it came while this run was started."""
        is_requested = history.is_to_stop or history.stop_requests > self._stop_requests_before
        if self._stopped is None and is_requested:
            self._stopped = Stopped(StopReason.STOPPED, "stopped on request")
        if self._stopped is None:
            self._stopped = self._why_no_more()

    def _why_no_more(self) -> Stopped | None:
        """Whether this process has done what it was to do."""
        most, seconds = self._limits.most_trials, self._limits.seconds
        if most is not None and self._started >= most:
            return Stopped(StopReason.STOPPED, f"{most} trials were started here")
        if seconds is not None and self._clock.elapsed() - self._began >= seconds:
            return Stopped(StopReason.STOPPED, f"{seconds:g} seconds are over")
        return None

    @property
    def _room(self) -> int:
        """The number of trials that may be started now."""
        most = self._limits.most_trials
        return self._executor.free if most is None else min(self._executor.free, most - self._started)

    def _fill(self) -> Stopped | None:
        """Gives work to every free worker; returns why there is no more of it.

        None where all workers are busy, or the strategy thinks.
        """
        while self._executor.free and self._stopped is None:
            started, stopped = self._start_some()
            for trial in started:
                self._submit(trial)
            self._started += len(started)
            self._free_since = self._free_since[len(started) :]
            if not started:
                return stopped
        if self._stopped is None:
            self._prepare()
        return self._stopped

    def _start_some(self) -> tuple[list[Trial], Stopped | None]:
        while True:
            history = self._records.refresh_to_suggest()
            self._take_up_requests(history)
            if self._stopped is not None:
                return [], self._stopped
            if self._only is not None:
                return self._claim(self._only, history), Stopped(StopReason.STOPPED, "the trials have ended")
            payable = min(self._room, self._payable(history))
            if payable and (claimed := self._records.claim(payable, taken=self._trials, waits=self._waits())):
                return claimed, None
            left = self._left(history)
            if self._pays_for_no_more(left):
                return [], SPENT
            if stopped := self._stopping.reason(self.budget(history), history, left):
                return [], stopped
            answer = self._suggester.answer(Question(history, left, self._room))
            if answer is not None and not answer.suggestions:
                return [], self._why_nothing_started(answer)
            if answer is not None and (
                opened := self._suggester.open(answer, most=self._room, taken=self._trials, waits=self._waits())
            ):
                return opened, None
            if (in_turn := self._opened_in_turn()) is not None or answer is None:
                return in_turn or [], None

    def _opened_in_turn(self) -> list[Trial] | None:
        """Trials that are opened while others wait, if they were always quicker; None if it is not so."""
        turns = self._suggester.turns
        if not (turns.is_due and turns.is_quick):
            return None
        opening = self._records.open_in_turn(
            self._strategy, plan=lambda history: (self._left(history), self._room), taken=self._trials
        )
        turns.win()
        return None if opening is None else list(opening.trials)

    def _claim(self, numbers: Collection[int], history: History) -> list[Trial]:
        """Returns the trials that wait, or whose owner is gone, at most one for each free worker."""
        claimed: list[Trial] = []
        for trial in history.in_flight:
            if trial.number in numbers and not self._records.holds(trial) and len(claimed) < self._executor.free:
                claimed += self._records.claim(1, taken=self._trials, number=trial.number)
        return claimed

    def _prepare(self) -> None:
        """Lets the strategy think of the next trial while all workers are busy."""
        if self._only is not None or not self._suggester.may_prepare:
            return
        history = self._records.refresh_to_suggest()
        left = self._left(history)
        if not self._pays_for_no_more(left):
            self._suggester.prepare(Question(history, left, 1))

    def _pays_for_no_more(self, left: Remaining) -> bool:
        return left.pays_nothing or self._has_no_trial_left(left)

    def _waits(self) -> list[float]:
        """The seconds that each free worker has waited for a suggestion, the longest first."""
        now = self._clock.elapsed()
        return [now - since for since in self._free_since]

    def _why_nothing_started(self, answer: Answer) -> Stopped:
        remaining = answer.question.remaining
        if self._only_runs:
            return Stopped(StopReason.STOPPED, "no trial waits, and others suggest")
        if remaining.is_spent:
            return SPENT
        predicted = expected_cost(answer.question.history, answer.uncovered[0]) if answer.uncovered else None
        left = remaining.most_to_pay(in_seconds=self._records.problem.cost_unit == "seconds")
        if predicted is None:
            return self._finished(left)
        costs = f"the next trial is predicted to cost {predicted.mean:.3g}, more than the {left:.3g} that is left"
        return Stopped(StopReason.TOO_EXPENSIVE, costs)

    def _finished(self, left: float) -> Stopped:
        """A strategy that has an end has come to it; one that knows costs suggests nothing that is too expensive."""
        if self._strategy.has_end or left == math.inf:
            return Stopped(StopReason.STRATEGY_FINISHED, self._strategy.when_finished)
        nothing = f"nothing that is worth suggesting fits the {left:.3g} that is left"
        return Stopped(StopReason.TOO_EXPENSIVE, nothing)

    def _payable(self, history: History) -> int:
        """How many of the trials that wait for a worker the budget pays for."""
        budget = self.budget(history)
        if budget is None or not history.waiting:
            return history.waiting
        left = budget.remaining_for_waiting(history, seconds=self._seconds_run())
        return self._records.payable(history, self._reserve.kept_back(left, history) if self._reserve else left)

    def _seconds_run(self) -> float:
        return self._seconds_before + self._clock.elapsed() - self._began

    def _has_no_trial_left(self, left: Remaining) -> bool:
        """Whether no more trials may be started: without fidelities nothing is continued, so all would be new."""
        return left.trials < 1 and not self._records.problem.space.fidelities and not self._records.history.waiting

    def _submit(self, trial: Trial) -> None:
        self._own.add(trial.number)
        budget = self.budget(self._records.history)
        is_hard = budget is not None and budget.hard
        left = budget.seconds - self._seconds_run() if budget is not None and is_hard and budget.seconds else None
        self._executor.submit(
            Job.of(
                trial,
                self._checkpoints,
                time_limit=self._limits.time_limit,
                seconds_left=left,
                tells_charges=is_hard,
                trackers=self.trackers,
            )
        )
        for observer in self._observers:
            observer.on_start(trial)

    def _forget(self, attempt: Attempt) -> None:
        self._trials.pop(attempt)
        self._own.discard(attempt.number)

    def _close(self, job: Ended) -> None:
        if job.outcome is None:
            self._records.forget(job.attempt)
            self._forget(job.attempt)
            return
        self._require_room(job)
        retry = job.outcome.state is State.FAILED and self._may_retry(job)
        if job.began_its_worker:
            self._records.note_worker(job.attempt)
        try:
            trial = self._records.close(job.attempt, replace(job.outcome, retry=True) if retry else job.outcome)
        except (StaleAttempt, TrialFinished):
            self._forget(job.attempt)
            return
        self._forget(job.attempt)
        self._stop_when_nothing_works(trial)
        self._require_checkpoint(trial)
        self._collector.trial_ended(trial)
        for observer in self._observers:
            observer.on_end(trial)

    def _require_room(self, job: Ended) -> None:
        """Ends the run if a disk was full; its trials are given back, as they are after every error."""
        failure = job.outcome.failure if job.outcome else None
        if failure is not None and is_for_want_of_room(failure):
            raise StorageError(
                f"Work needs room to write, got {failure.reason} from trial {job.attempt.number}. Free some disk space "
                "and run again: the trial was given back."
            )

    def _may_retry(self, job: Ended) -> bool:
        """Kills are counted by trial and run: attempts that were given back or lost are no kills.

        Nodes that went away say nothing about the trial: they count as when its owner is lost.
        """
        number = job.attempt.number
        if job.lost_node:
            self._lost_nodes[number] += 1
            return self._lost_nodes[number] <= max(self._records.lost_retries, self._limits.retries)
        self._kills[number] += job.was_killed
        is_killed_seldom = job.was_killed and self._kills[number] <= self._limits.killed_retries
        return is_killed_seldom or job.attempt.attempt <= self._limits.retries

    def _stop_when_nothing_works(self, trial: Trial) -> None:
        """Ends the run early when its first trials all fail in the same way: the work itself is broken."""
        if self._first_failures is None:
            before = self._records.history
            self._first_failures = FirstFailures(before, keep_going=self._limits.keep_going)
        self._stopped = self._stopped or self._first_failures.stops_after(trial)

    def _require_checkpoint(self, trial: Trial) -> None:
        """Ends the run before a member that can only start over is mistaken for one that continues."""
        is_last = self._records.history.is_full(trial)
        if not self._strategy.needs_checkpoints or trial.state is not State.DONE or trial.checkpoint or is_last:
            return
        raise WorkError(
            f"{type(self._strategy).__name__} continues from checkpoints, got none from trial {trial.number}. Define "
            "save and load, or write to trial.checkpoint_dir and read trial.resume_dir; then start a new study."
        )

    def _warn_about_the_cache(self, attempt: Attempt, eviction: Eviction) -> None:
        """Says once for each reason that an output could not be kept or read: trials continue, and pay for it."""
        if eviction.why not in self._warned_of:
            self._warned_of.add(eviction.why)
            what = f"stage {eviction.length}'s output is {eviction.why}"
            log.warning("Trial %d continues without the cache, %s: %s", attempt.number, what, eviction.detail)

    def _others_may_bring_work(self) -> bool:
        """Whether there is something to wait for: trials that others run, or that wait and can be paid.

        Trials that this study was asked for do not count: the program that waits here may be the one to tell them.
        """
        if self._stopped is not None:
            return False
        history = self._records.history
        in_question = [trial for trial in history.in_flight if self._only is None or trial.number in self._only]
        awaited = [trial for trial in in_question if not self._records.holds(trial)]
        is_running = any(trial.state is State.RUNNING for trial in awaited)
        return is_running or (bool(awaited) and (self._only is not None or self._payable(history) > 0))

    def _patience(self) -> float | None:
        """No limit when every event that matters will come from this process."""
        is_alone = self._records.is_in_memory and not self._depends_on_others()
        return None if is_alone else PATIENCE_BETWEEN_COORDINATORS

    def _depends_on_others(self) -> bool:
        """Whether a worker is free, or trials are in flight that this loop does not run.

        Of one that it runs and that another process took over, it will hear: the next report is refused.
        """
        return self._executor.free > 0 or self._records.history.has_in_flight_besides(self._own)
