"""Budgets, and the rest of a budget."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Literal

from farthing.costs.expected import cost_to_come
from farthing.errors import InvalidArgument
from farthing.fields import Declaration, Number, Rule, positive, whole
from farthing.fields.rules import WRONG, Either, OneOf
from farthing.trials import Event, History, Json, Prediction

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

    def most_to_pay(self, *, in_seconds: bool) -> float:
        """The most that a trial may cost; `in_seconds` says that cost is time."""
        return min(self.cost, self.seconds) if in_seconds else self.cost

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
class Worth(Declaration):
    """The worth of an improvement: one of `value`, in the units of the value, is worth `per` units of cost.

    `Worth(value=0.001, per=3600)` pays an hour for an improvement by 0.001.
    """

    value: Annotated[float, Number(above=0.0)]
    per: Annotated[float, Number(above=0.0)]

    def price_of(self, gain: Any) -> Any:
        """The cost that a gain, or an array of them, is worth."""
        return gain / self.value * self.per

    def to_json(self) -> dict[str, float]:
        return {"value": self.value, "per": self.per}


@dataclass(frozen=True)
class WorthRule(Rule):
    """A worth, or its JSON."""

    @property
    def words(self) -> str:
        return "a Worth"

    @property
    def example(self) -> str:
        return "ft.Worth(value=0.001, per=3600)"

    def read(self, given: object) -> Any:
        if isinstance(given, Mapping):
            return Worth(**given)
        return given if isinstance(given, Worth) else WRONG


@dataclass(frozen=True, kw_only=True)
class Budget(Declaration):
    """The limits of a study, over every run and resume: the one that is reached first ends it.

    `cost` is the sum over trials in the study's cost unit, `seconds` is wall clock, `trials` counts new
    configurations: neither continuations nor results that were added from elsewhere. `worth` ends it once nothing that
    could still be bought is expected to be worth its price; `patience` once that much cost has brought nothing better.

    A trial starts only if its predicted cost fits what is left. With `hard`, a trial that runs is ended too: by the
    report or charge that reaches the limit of cost, and when the seconds are over. It is then pruned, with the value
    that it reported last.
    """

    cost: float | None = positive(None)
    seconds: float | None = positive(None)
    trials: int | None = whole(None, least=1)
    worth: Annotated[Worth | None, Either((WorthRule(), OneOf((None,))))] = None
    patience: float | None = positive(None)
    hard: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.to_json().keys() - {"hard"}:
            raise InvalidArgument("A budget needs a limit, got none. Give cost=, seconds= or trials=.")

    @property
    def amounts(self) -> dict[str, float]:
        """The limits of what is counted: cost, seconds and trials, those that are set."""
        found = {"cost": self.cost, "seconds": self.seconds, "trials": self.trials}
        return {name: limit for name, limit in found.items() if limit is not None}

    @classmethod
    def in_force(cls, history: History) -> "Budget | None":
        """The budget that was set last; None if none was."""
        return history.memo(_InForce)

    @staticmethod
    def spent(history: History, *, seconds: float) -> dict[str, float]:
        """The amounts that count against each limit after this history and these seconds."""
        return {"cost": history.cost, "seconds": seconds, "trials": history.configurations - history.added}

    def remaining(self, history: History, *, seconds: float) -> Remaining:
        """The rest for new trials after this history and these seconds: trials in flight count as predicted."""
        return self._remaining(history, cost_to_come, seconds=seconds)

    def remaining_for_waiting(self, history: History, *, seconds: float) -> Remaining:
        """The rest for the trials that wait for a worker: only running trials count as predicted."""
        return self._remaining(history, partial(cost_to_come, counts_waiting=False), seconds=seconds)

    def is_reached(self, history: History, *, seconds: float) -> bool:
        """Whether cost or seconds are used up by what was paid, whatever trials in flight are predicted to cost."""
        return self._remaining(history, lambda _: 0.0, seconds=seconds).pays_nothing

    def _remaining(self, history: History, to_come: Callable[[History], float], *, seconds: float) -> Remaining:
        spent = self.spent(history, seconds=seconds)
        left = {name: limit - spent[name] for name, limit in self.amounts.items()}
        return Remaining(
            cost=left["cost"] - to_come(history) if "cost" in left else math.inf,
            seconds=left.get("seconds", math.inf),
            trials=left.get("trials", math.inf),
        )

    def to_json(self) -> dict[str, Json]:
        """The limits that are set, from which `Budget(**form)` makes the same budget."""
        worth = {} if self.worth is None else {"worth": self.worth.to_json()}
        patience = {} if self.patience is None else {"patience": self.patience}
        return {**self.amounts, **worth, **patience, **({"hard": True} if self.hard else {})}


class _InForce:
    """The budget of the events that were asked about last: a memo, as a run asks several times a trial."""

    def __init__(self) -> None:
        self._events: tuple[Event, ...] | None = None
        self._budget: Budget | None = None

    def of(self, history: History) -> Budget | None:
        if history.events is not self._events:
            self._budget = None if history.limits is None else Budget(**history.limits)
            self._events = history.events
        return self._budget
