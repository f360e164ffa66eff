"""What may be spent, and what of it is left."""

import math
from dataclasses import dataclass, fields

from farthing.errors import InvalidArgument
from farthing.trials import History, Prediction


@dataclass(frozen=True)
class Remaining:
    """What is left of a budget. A limit that was not set is infinite."""

    cost: float = math.inf
    seconds: float = math.inf
    trials: float = math.inf

    @property
    def is_spent(self) -> bool:
        return self.cost <= 0 or self.seconds <= 0 or self.trials <= 0

    def covers(self, predicted: Prediction | None, *, is_new: bool, in_seconds: bool) -> bool:
        """Whether a trial of that predicted cost may start; `in_seconds` says that cost is time."""
        if is_new and self.trials < 1:
            return False
        if predicted is None:
            return not (self.cost <= 0 or self.seconds <= 0)
        return predicted.mean <= self.cost and not (in_seconds and predicted.mean > self.seconds)

    def less(self, predicted: Prediction | None, *, is_new: bool) -> "Remaining":
        """What is left once a trial of that predicted cost has started."""
        cost = predicted.mean if predicted else 0.0
        return Remaining(self.cost - cost, self.seconds, self.trials - is_new)


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What a study may spend in all, over every run and resume: the limit that is reached first ends it.

    `cost` is the sum over trials in the study's cost unit, `seconds` is wall clock, `trials` counts new
    configurations, not continuations.
    """

    cost: float | None = None
    seconds: float | None = None
    trials: int | None = None

    def __post_init__(self) -> None:
        limits = {field.name: getattr(self, field.name) for field in fields(self)}
        if all(limit is None for limit in limits.values()):
            raise InvalidArgument("A budget needs a limit, got none. Give cost=, seconds= or trials=.")
        for name, limit in limits.items():
            if limit is not None and not _is_positive(limit, whole=name == "trials"):
                kind = "a whole number above 0" if name == "trials" else "a number above 0"
                raise InvalidArgument(f"A budget's {name} must be {kind}, got {limit!r}. Leave it out for no limit.")

    def remaining(self, history: History, *, seconds: float) -> Remaining:
        """What is left after this history and so many seconds of wall clock, trials in flight at their prediction."""
        return Remaining(
            cost=math.inf if self.cost is None else self.cost - history.cost - _committed(history),
            seconds=math.inf if self.seconds is None else self.seconds - seconds,
            trials=math.inf if self.trials is None else self.trials - history.configurations,
        )

    def to_json(self) -> dict[str, float]:
        return {field.name: limit for field in fields(self) if (limit := getattr(self, field.name)) is not None}


def _is_positive(limit: object, *, whole: bool) -> bool:
    if isinstance(limit, bool) or not isinstance(limit, (int, float)):
        return False
    return limit > 0 and math.isfinite(limit) and (not whole or float(limit).is_integer())


def _committed(history: History) -> float:
    """What trials in flight are predicted to cost still."""
    return math.fsum(
        max(0.0, trial.suggestion.predicted_cost.mean - trial.cost)
        for trial in history.in_flight
        if trial.suggestion.predicted_cost
    )
