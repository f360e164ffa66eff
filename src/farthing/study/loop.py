"""The loop: while the budget lasts, read, suggest, open, submit, wait, record."""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from farthing.costs import Budget, Clock, Remaining
from farthing.errors import FarthingError, InvalidArgument, StaleAttempt, TrialFinished, WorkError
from farthing.execution import Checkpoints, Ended, Executor, Job
from farthing.strategies import Strategy
from farthing.study.collecting import collect_checkpoints, collect_leftovers
from farthing.study.records import Records, is_waiting
from farthing.study.stopping import Stopped, StopReason
from farthing.trials import Attempt, History, Measurement, State, Suggestion, Trial
from farthing.trials.prefixes import Eviction

log = logging.getLogger("farthing")

FAILURES_BEFORE_WARNING = 3

SPENT = Stopped(StopReason.BUDGET_SPENT, "the budget is spent")

PATIENCE_BETWEEN_COORDINATORS = 1.0
"""Seconds after which a loop with nothing to do looks at what other coordinators did."""


def check_retries(retries: int, *, name: str) -> None:
    if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
        raise InvalidArgument(f"The number of {name} must be a whole number ≥ 0, got {retries!r}. Use 0 for none.")


class Observer(Protocol):
    """Is shown the study as it goes, for progress displays and callbacks."""

    def on_start(self, trial: Trial) -> None: ...

    def on_report(self, trial: Trial, measurement: Measurement) -> None: ...

    def on_end(self, trial: Trial) -> None: ...


@dataclass(frozen=True)
class Limits:
    """What bounds a run: the budget in all, and for each trial its seconds and how often it may fail and be retried.

    Without a budget the strategy alone decides when it ends.
    """

    budget: Budget | None
    time_limit: float | None = None
    retries: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.budget, (Budget, type(None))):
            raise InvalidArgument(f"A run needs a budget, got {self.budget!r}. Give budget=ft.Budget(seconds=600).")
        if self.time_limit is not None and not self.time_limit > 0:
            raise InvalidArgument(
                f"A trial's time limit must be above 0 seconds, got {self.time_limit!r}. Leave it out for none."
            )
        check_retries(self.retries, name="retries")


class Loop:
    """Joins a strategy, the records and an executor. It is also the executor's listener.

    With `only`, the number of a trial that is enqueued, it runs that one instead of what the strategy suggests, and
    ends with it, whoever ran it.
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
        only: int | None = None,
    ) -> None:
        self._records = records
        self._strategy = strategy
        self._executor = executor
        self._limits = limits
        self._checkpoints = checkpoints
        self._clock = clock
        self._observers = observers
        self._only = only
        self._trials: dict[Attempt, Trial] = {}
        self._seconds_before = 0.0
        self._began = 0.0
        self._stopped: Stopped | None = None
        self._warned_of: set[str] = set()

    def run(self) -> Stopped:
        """Runs until the budget is spent, the strategy has finished or `stop` is called; says which."""
        self._seconds_before = self._records.seconds_run()
        self._began = self._clock.elapsed()
        self._records.leases.begin_run()
        try:
            collect_leftovers(self._records, self._strategy, self._checkpoints)
            return self._run()
        finally:
            self._executor.close()
            self._give_back()
            collect_leftovers(self._records, self._strategy, self._checkpoints)
            self._records.leases.end_run()

    def stop(self) -> None:
        """Starts no more trials; those that run are finished. May be called from any thread."""
        self._stopped = Stopped(StopReason.STOPPED, "stopped")
        self._executor.wake()

    @property
    def history(self) -> History:
        """The history as the loop last read it."""
        return self._records.history

    def remaining(self, history: History) -> Remaining:
        if self._limits.budget is None:
            return Remaining()
        seconds = self._seconds_before + self._clock.elapsed() - self._began
        return self._limits.budget.remaining(history, seconds=seconds)

    def on_report(self, attempt: Attempt, measurement: Measurement) -> None:
        self._records.record(attempt, measurement)
        for observer in self._observers:
            observer.on_report(self._trials[attempt], measurement)

    def on_checkpoint(self, attempt: Attempt, checkpoint: str) -> None:
        self._records.save_checkpoint(attempt, checkpoint)

    def on_eviction(self, attempt: Attempt, eviction: Eviction) -> None:
        self._records.log_eviction(eviction)
        if eviction.why in ("unwritable", "corrupt"):
            self._warn_about_the_cache(attempt, eviction)

    def _run(self) -> Stopped:
        self._records.sweep()
        while True:
            stopped = self._fill()
            if stopped and not self._executor.running and not self._others_may_bring_work():
                return stopped
            ended = self._executor.wait(self, timeout=self._patience())
            for job in ended:
                self._close(job)
            if not ended:
                self._records.sweep()

    def _fill(self) -> Stopped | None:
        """Gives work to every free worker; returns why there is no more of it, None where all workers are busy."""
        while self._executor.free and self._stopped is None:
            started, stopped = self._start_some()
            for trial in started:
                self._submit(trial)
            if not started:
                return stopped
        return self._stopped

    def _start_some(self) -> tuple[list[Trial], Stopped | None]:
        history = self._records.refresh()
        if self._only is not None:
            return self._records.claim(1, number=self._only), Stopped(StopReason.STOPPED, "the trial has ended")
        left = self.remaining(history)
        if left.cost <= 0 or left.seconds <= 0 or self._has_no_trial_left(left):
            return [], SPENT
        if is_waiting(history) and (claimed := self._records.claim(self._executor.free)):
            return claimed, None
        opened, uncovered = self._records.open(
            self._strategy, plan=lambda history: (self.remaining(history), self._executor.free)
        )
        return opened, None if opened else _why_nothing_started(uncovered, left)

    def _has_no_trial_left(self, left: Remaining) -> bool:
        """Whether no more trials may be started: without fidelities nothing is continued, so all would be new."""
        is_waiting_for_one = is_waiting(self._records.history)
        return left.trials < 1 and not self._records.problem.space.fidelities and not is_waiting_for_one

    def _submit(self, trial: Trial) -> None:
        attempt = Attempt(trial.number, trial.attempt)
        self._trials[attempt] = trial
        self._executor.submit(Job.of(trial, self._checkpoints, time_limit=self._limits.time_limit))
        for observer in self._observers:
            observer.on_start(trial)

    def _close(self, job: Ended) -> None:
        self._trials.pop(job.attempt)
        if job.outcome is None:
            self._records.forget(job.attempt)
            return
        may_retry = job.outcome.state is State.FAILED and job.attempt.attempt <= self._limits.retries
        try:
            trial = self._records.close(job.attempt, replace(job.outcome, retry=may_retry))
        except (StaleAttempt, TrialFinished):
            return
        self._warn_when_nothing_works(trial)
        self._require_checkpoint(trial)
        collect_checkpoints(self._records, self._strategy, self._checkpoints, ended=trial)
        for observer in self._observers:
            observer.on_end(trial)

    def _warn_when_nothing_works(self, trial: Trial) -> None:
        """Says so once, early, when every trial fails: most often the work itself is broken."""
        if trial.number != FAILURES_BEFORE_WARNING - 1 or trial.failure is None:
            return
        if all(other.state is State.FAILED for other in self._records.refresh() if other.is_finished):
            log.warning("The first trials all failed, trial %d with: %s", trial.number, trial.failure.reason)

    def _require_checkpoint(self, trial: Trial) -> None:
        """Ends the run before members that can only begin anew are taken for ones that go on."""
        is_last = self._records.history.is_full(trial)
        if not self._strategy.needs_checkpoints or trial.state is not State.DONE or trial.checkpoint or is_last:
            return
        raise WorkError(
            f"{type(self._strategy).__name__} goes on from checkpoints, got none from trial {trial.number}. Define "
            "save and load, or write to trial.checkpoint_dir and read trial.resume_dir; then start the study anew."
        )

    def _warn_about_the_cache(self, attempt: Attempt, eviction: Eviction) -> None:
        """Says once for each reason that an output could not be kept or read: trials go on, and pay for it."""
        if eviction.why not in self._warned_of:
            self._warned_of.add(eviction.why)
            what = f"stage {eviction.length}'s output is {eviction.why}"
            log.warning("Trial %d goes on without the cache, %s: %s", attempt.number, what, eviction.detail)

    def _others_may_bring_work(self) -> bool:
        awaited = [trial for trial in self._records.history.in_flight if self._only in (None, trial.number)]
        return self._stopped is None and bool(awaited)

    def _patience(self) -> float | None:
        """No limit when every event that matters will come from our own workers."""
        in_flight = {Attempt(trial.number, trial.attempt) for trial in self._records.history.in_flight}
        return PATIENCE_BETWEEN_COORDINATORS if self._executor.free or in_flight - self._trials.keys() else None

    def _give_back(self) -> None:
        """Puts trials that were still running back to pending, for the next run to take up first."""
        for attempt in list(self._trials):
            self._trials.pop(attempt)
            try:
                self._records.release(attempt)
            except FarthingError:
                continue


def _for_what_is_left(left: Remaining) -> str:
    """A strategy that knows costs suggests nothing that is too dear."""
    return f" for the {left.cost:.3g} that is left" if left.cost < math.inf else ""


def _why_nothing_started(uncovered: Sequence[Suggestion], left: Remaining) -> Stopped:
    if left.trials < 1:
        return SPENT
    if not uncovered:
        nothing = f"the strategy has nothing more to suggest{_for_what_is_left(left)}"
        return Stopped(StopReason.STRATEGY_FINISHED, nothing)
    predicted = uncovered[0].predicted_cost
    assert predicted is not None, "what has no predicted cost is covered by any budget that is not spent"
    costs = f"the next trial is predicted to cost {predicted.mean:.3g}, more than the {left.cost:.3g} that is left"
    return Stopped(StopReason.TOO_EXPENSIVE, costs)
