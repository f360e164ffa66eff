"""The limits of a run, and why it ended."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import get_args

from farthing.costs import Budget
from farthing.errors import InvalidArgument
from farthing.fields import Number
from farthing.session.creation import check_retries
from farthing.strategies import Strategy
from farthing.study.settings import OnInterrupt
from farthing.validation import listed, shown


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


def check_on_interrupt(given: str) -> None:
    if given not in get_args(OnInterrupt):
        raise InvalidArgument(
            f"on_interrupt must be one of {listed(get_args(OnInterrupt))}, got {shown(given)}. "
            "Leave it out to have KeyboardInterrupt raised."
        )
