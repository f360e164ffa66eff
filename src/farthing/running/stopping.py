"""The limits of a run, why it ended, and whether to end it before its budget is spent."""

import logging
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from farthing.costs import Budget, Remaining
from farthing.errors import InvalidArgument, NoResult, Pruned
from farthing.execution.failures import Cause, cause_of
from farthing.fields import Number
from farthing.session.creation import check_retries
from farthing.space import Choice
from farthing.space.parameters import Parameter
from farthing.strategies import Strategy
from farthing.trials import History, Measurement, Problem, State, Trial
from farthing.validation import listed, shown

if TYPE_CHECKING:
    from farthing.analysis.outlook import Outlook

OnInterrupt: TypeAlias = Literal["raise", "return"]


class StopReason(StrEnum):
    """`STOPPED`: by `study.stop()`. `TOO_EXPENSIVE`: the next trial is predicted to cost more than is left.
    `WORK_FAILS`: the first trials failed in the same way, and none has succeeded. `NOT_WORTH_IT`: by the budget's
    `worth`, nothing that could still be bought is; `PATIENCE_OVER`: its `patience` went by without a better value.
    """

    BUDGET_SPENT = "budget spent"
    TOO_EXPENSIVE = "too expensive"
    STRATEGY_FINISHED = "strategy finished"
    WORK_FAILS = "work fails"
    NOT_WORTH_IT = "not worth it"
    PATIENCE_OVER = "patience over"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"


IDLE = (StopReason.BUDGET_SPENT, StopReason.TOO_EXPENSIVE, StopReason.STRATEGY_FINISHED)
"""Reasons that a larger budget, or an enqueued trial, removes."""

COMPLETE = (*IDLE, StopReason.NOT_WORTH_IT, StopReason.PATIENCE_OVER)
"""Reasons after which a run has done what it was to do: nobody stopped it, and the work is not broken."""


@dataclass(frozen=True)
class Stopped:
    """How a run ended: the reason to compare with, `stopped.reason is ft.StopReason.INTERRUPTED`, and a sentence.

    `str(stopped)` is the sentence.
    """

    reason: StopReason
    sentence: str

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True)
class Limits:
    """Limits of a run: for each trial its seconds and its number of retries.

    The budget is that of a verification; a run of the whole study has the study's own. `killed_retries` is how often a
    trial is tried again whose worker the system killed: that says little about the configuration. `keep_going` spends
    the budget even if the first trials all fail in the same way. After `most_trials`, or `seconds`, of one process it
    starts no more. One that `waits_for_more` does not end because the budget does, or the strategy. One that `verifies`
    sets the cost of training its recommendation to the end aside.
    """

    budget: Budget | None
    time_limit: float | None = None
    retries: int = 0
    killed_retries: int = 1
    keep_going: bool = False
    most_trials: int | None = None
    seconds: float | None = None
    waits_for_more: bool = False
    verifies: bool = False

    def __post_init__(self) -> None:
        check_budget(self.budget)
        if self.time_limit is not None:
            Number(above=0.0).checked(self.time_limit, what="A trial's time limit", advice="Leave it out for none.")
        check_retries(self.retries, name="retries")

    @classmethod
    def of(
        cls,
        budget: Budget | None,
        time_limit: float | None,
        *,
        retries: int | None,
        strategy: Strategy,
        keep_going: bool = False,
    ) -> "Limits":
        """The limits that a user set. Without `retries` only a killed worker's trial is tried again, and in a
        population any, so that a failure leaves no trace in who is copied over whom.
        """
        if retries is None:
            return cls(budget, time_limit, retries=int(strategy.needs_checkpoints), keep_going=keep_going)
        return cls(budget, time_limit, retries=retries, killed_retries=retries, keep_going=keep_going)

    def of_a_process(self, *, most_trials: int | None, seconds: float | None, waits_for_more: bool) -> "Limits":
        """The same, for a process that starts no more than that, and not for longer."""
        return replace(self, most_trials=most_trials, seconds=seconds, waits_for_more=waits_for_more)


def check_budget(budget: object) -> None:
    if not isinstance(budget, (Budget, type(None))):
        raise InvalidArgument(f"A run needs a budget, got {budget!r}. Give budget=ft.Budget(seconds=600).")


def require_set_budget(budget: object) -> None:
    if not isinstance(budget, Budget):
        raise InvalidArgument(f"A study's budget must be a Budget, got {shown(budget)}. Write ft.Budget(cost=50).")


def require_budget(budget: Budget | None, strategy: Strategy) -> None:
    if budget is None and not strategy.has_end:
        raise InvalidArgument(
            f"A run needs a budget, got none, and {type(strategy).__name__} has no end of its own. "
            "Give budget=ft.Budget(seconds=600)."
        )


def require_judged_by_one(budget: Budget | None, problem: Problem) -> None:
    """Refuses a budget that ends by the gain of one value where there are several, or limits."""
    if budget is None or problem.is_simple or (budget.worth is None and budget.patience is None):
        return
    raise InvalidArgument(
        f"Budget(worth=…) and Budget(patience=…) judge one value without limits, got {problem.aim}. "
        "Limit cost=, seconds= or trials= instead."
    )


def check_on_interrupt(given: str) -> None:
    if given not in get_args(OnInterrupt):
        raise InvalidArgument(
            f"on_interrupt must be one of {listed(get_args(OnInterrupt))}, got {shown(given)}. "
            "Leave it out to have KeyboardInterrupt raised."
        )


# ------------------------------------------------------------
# Whether to stop before the budget is spent: nothing better for too long, or nothing left that is worth its price.
#
# And whether a trial that runs has to stop, because a hard budget is.


def end_beyond(budget: Budget | None, history: History, trial: Trial, *, heard: Measurement, seconds: float) -> None:
    """Raises `Pruned` if a hard budget ends the trial, of which the history knows what was heard.

    A report of all that was to be done ends nothing: the work has only to save and return.
    """
    if budget is None or not budget.hard or not budget.is_reached(history, seconds=seconds):
        return
    if heard.fidelity and all(heard.fidelity.get(name, 0.0) >= most for name, most in trial.fidelity.items()):
        return
    spent = {"cost": history.cost, "seconds": seconds}
    amounts = [f"{name} {spent[name]:.4g} of {most:g}" for name, most in budget.amounts.items() if name in spent]
    raise Pruned(
        f"A trial ends when a hard budget is reached, got {' and '.join(amounts)}. What it reported is kept: "
        "study.tell(trial, pruned=True)."
    )


class Stopping:
    """Judges a history again when another trial has ended; a budget without worth and patience costs nothing."""

    def __init__(self) -> None:
        self._judged: tuple[Budget, int] | None = None
        self._stopped: Stopped | None = None
        self.outlook: Outlook | None = None
        """The gain last expected from ten more configurations, if the budget says what a gain is worth."""

    def reason(self, budget: Budget | None, history: History, remaining: Remaining) -> Stopped | None:
        """Why to start nothing more, by the budget in force; None to go on."""
        if budget is None or (budget.worth is None and budget.patience is None):
            return None
        judged = budget, history.finished
        if judged != self._judged:
            self._judged = judged
            self._stopped = _patience_over(budget, history) or self._not_worth_it(budget, history, remaining)
        return self._stopped

    def _not_worth_it(self, budget: Budget, history: History, remaining: Remaining) -> Stopped | None:
        if budget.worth is None:
            return None
        from farthing.analysis.outlook import Prospects, is_worthless

        try:
            self.outlook = Prospects.of(history).outlook(None)
        except NoResult:
            return None
        if not is_worthless(history, budget.worth, remaining):
            return None
        return Stopped(StopReason.NOT_WORTH_IT, f"going on is not worth its price: {self.outlook}")


def _patience_over(budget: Budget, history: History) -> Stopped | None:
    if budget.patience is None or not history.done:
        return None
    from farthing.analysis.outlook import costs_without_gain

    spent = costs_without_gain(history)
    if spent < budget.patience:
        return None
    unit, value = history.problem.cost_unit, history.problem.value
    return Stopped(StopReason.PATIENCE_OVER, f"the last {spent:.4g} {unit} brought no better {value}")


# ------------------------------------------------------------
# The first trials of a run: if they all fail in the same way, the work is broken and the budget is not spent on it.


log = logging.getLogger("farthing")

FAILURES_THAT_TELL = 3
"""One failure may be bad params and two a coincidence; chosen, not measured."""


class FirstFailures:
    """Collects failures until a trial succeeds; a study that has a result already is past that."""

    def __init__(self, history: History, *, keep_going: bool) -> None:
        self._is_watching = not any(map(_succeeded, history))
        self._keeps_going = keep_going
        self._space = history.problem.space
        self._failed: list[Trial] = []

    def stops_after(self, trial: Trial) -> Stopped | None:
        """Takes a trial that has ended. Says that the run ends when all fail in the same way, the third time or later.

        While one option of a choice explains them all, as one solver that takes no such data, it waits for another; and
        while all values that are NaN lie in one half of a range, it waits for one in the other.
        """
        self._is_watching &= not _succeeded(trial)
        if not self._is_watching or trial.failure is None or trial.state is not State.FAILED:
            return None
        self._failed.append(trial)
        cause = self._common_cause()
        if len(self._failed) < FAILURES_THAT_TELL or (cause is not None and self._may_be_the_params(cause)):
            return None
        self._is_watching = False
        if cause is None or self._keeps_going:
            log.warning("The first trials all failed, trial %d with: %s", trial.number, trial.failure.reason)
            return None
        return self._ending(cause)

    def _common_cause(self) -> Cause | None:
        causes = [cause_of(trial.failure, trial.params) for trial in self._failed if trial.failure is not None]
        return causes[0] if all(cause == causes[0] for cause in causes) else None

    def _may_be_the_params(self, cause: Cause) -> bool:
        """Whether all had the same option of a choice that has others, or, where it may matter, one half of a range."""
        encoder = self._space.encoder
        for name, column in zip(encoder.names, encoder.encode([trial.params for trial in self._failed]).T, strict=True):
            declared = self._space.parameters[name]
            if _has_options(declared):
                if len({trial.params.get(name) for trial in self._failed}) == 1:
                    return True
            elif cause.may_be_the_params and declared.count != 1 and len(set(column > 0.5)) == 1:
                return True
        return False

    def _ending(self, cause: Cause) -> Stopped:
        why = cause.text.rstrip(".")
        sentence = (
            f"the first {len(self._failed)} trials failed in the same way, and none has succeeded: {why}. "
            "Correct the work and run again; keep_going=True, or --keep-going, spends the budget all the same"
        )
        log.warning("The run ends: %s.", sentence)
        return Stopped(StopReason.WORK_FAILS, sentence)


def _has_options(declared: Parameter) -> bool:
    return isinstance(declared, Choice) and declared.count > 1


def _succeeded(trial: Trial) -> bool:
    return trial.state in (State.DONE, State.PRUNED)
