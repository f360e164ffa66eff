"""Budgets, and the rest of a budget."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal

from farthing.errors import InvalidArgument
from farthing.fields import Declaration, positive, whole
from farthing.trials import History, Prediction, State, Trial

EffortLevel = Literal["ordinary", "frugal", "screen", "several"]
"""How much a suggestion may take, most first: a whole search; a shorter one that refits seldom; little more than the
best of some random points; the same, for as many trials at once as keep all workers busy."""
EFFORT_LEVELS: tuple[EffortLevel, ...] = ("ordinary", "frugal", "screen", "several")


@dataclass(frozen=True)
class Remaining:
    """The rest of a budget. A limit that was not set is infinite.

    `effort` is how much the suggestion itself may take, as a run decides it; None leaves it to the strategy.
    """

    cost: float = math.inf
    seconds: float = math.inf
    trials: float = math.inf
    effort: EffortLevel | None = None

    @property
    def is_spent(self) -> bool:
        return self.pays_nothing or self.trials <= 0

    @property
    def pays_nothing(self) -> bool:
        """Whether not even a trial that was opened before can be paid: cost or seconds are used up."""
        return self.cost <= 0 or self.seconds <= 0

    def covers(self, predicted: Prediction | None, *, is_new: bool, in_seconds: bool) -> bool:
        """Whether a trial of that predicted cost may start; `in_seconds` says that cost is time."""
        if is_new and self.trials < 1:
            return False
        if predicted is None:
            return not self.pays_nothing
        return predicted.mean <= self.cost and not (in_seconds and predicted.mean > self.seconds)

    def less(self, predicted: Prediction | None, *, is_new: bool) -> "Remaining":
        """The rest once a trial of that predicted cost has started."""
        cost = predicted.mean if predicted else 0.0
        return replace(self, cost=self.cost - cost, trials=self.trials - is_new)


@dataclass(frozen=True, kw_only=True)
class Budget(Declaration):
    """The limits of a study, over every run and resume: the one that is reached first ends it.

    `cost` is the sum over trials in the study's cost unit, `seconds` is wall clock, `trials` counts new
    configurations: neither continuations nor results that were added from elsewhere.
    """

    cost: float | None = positive(None)
    seconds: float | None = positive(None)
    trials: int | None = whole(None, least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cost is None and self.seconds is None and self.trials is None:
            raise InvalidArgument("A budget needs a limit, got none. Give cost=, seconds= or trials=.")

    @classmethod
    def in_force(cls, history: History) -> "Budget | None":
        """The budget that was set last; None if none was."""
        return None if history.limits is None else cls(**history.limits)  # type: ignore[arg-type]  # checked here

    def remaining(self, history: History, *, seconds: float) -> Remaining:
        """The rest for new trials after this history and these seconds: trials in flight count as predicted."""
        return self._remaining(history, history.in_flight, seconds=seconds)

    def remaining_for_waiting(self, history: History, *, seconds: float) -> Remaining:
        """The rest for the trials that wait for a worker: only running trials count as predicted."""
        running = [trial for trial in history.in_flight if trial.state is State.RUNNING]
        return self._remaining(history, running, seconds=seconds)

    def _remaining(self, history: History, committed: Sequence[Trial], *, seconds: float) -> Remaining:
        return Remaining(
            cost=math.inf if self.cost is None else self.cost - history.cost - _committed(committed),
            seconds=math.inf if self.seconds is None else self.seconds - seconds,
            trials=math.inf if self.trials is None else self.trials - history.configurations + history.added,
        )

    def to_json(self) -> dict[str, float]:
        return {field.name: limit for field in fields(self) if (limit := getattr(self, field.name)) is not None}


def _committed(trials: Sequence[Trial]) -> float:
    """The cost that these trials are predicted to have still."""
    return math.fsum(
        max(0.0, trial.suggestion.predicted_cost.mean - trial.cost)
        for trial in trials
        if trial.suggestion.predicted_cost
    )
