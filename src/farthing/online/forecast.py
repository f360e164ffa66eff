"""The forecast for staying with the present setting: the last value, and a part of how it changed before."""

from dataclasses import dataclass, field
from math import sqrt

import numpy as np

# ------------------------------------------------------------
# How far a share of few examples, such as an accuracy, lies from the share of all by chance.


LEFT = 1.0 / 3.0
"""The part of the binomial deviation that shows from one validation to the next.

All of it where each validation draws its own examples, as on the stream. On the same examples most of it cancels: on
digits 0.28 of it is left between two rounds (median of seeds 100 to 105).
"""


def binomial_deviation(share: float, size: int) -> float:
    """√(p(1 − p)/n), with one success and one failure added: no share of n examples is certain."""
    p = (size * min(max(share, 0.0), 1.0) + 1.0) / (size + 2.0)
    return sqrt(p * (1.0 - p) / size)


def least_deviation(share: float, size: int) -> float:
    """Below this a difference between two validations is chance: of their examples, and at least of one of them."""
    return max(LEFT * binomial_deviation(share, size), 1.0 / size)


DAMPED = 0.7
"""The part of the last change that is expected again: learning curves flatten, and drifts turn."""

REMEMBERED = 7
"""The deviation is the median of this many errors."""

TO_DEVIATION = 1.4826
"""From the median of absolute errors to the standard deviation of normal ones."""

LEAST_SHARE = 1e-3
"""The least deviation, as a share of the highest value: equal values would make the smallest difference certain."""


@dataclass
class Forecast:
    """Built on the values of staying alone: the last, its decision, and how it changed since the one before."""

    decision: int | None = None
    value: float = 0.0
    slope: float | None = None
    errors: list[float] = field(default_factory=list)
    peak: float | None = None
    """The highest value so far."""
    has_moved: bool = False
    """Whether the last change came with another setting, so that it says little about the next one."""
    size: int | None = None
    """Of how many examples a value is the share, where that is known."""

    def is_ready(self, decision: int) -> bool:
        """Whether the value of staying was measured in that decision, and how it changes is known."""
        return self.decision == decision and self.slope is not None

    def at(self, decision: int) -> float:
        """Each further decision changes the value by 0.7 of what the one before did: learning curves saturate."""
        assert self.decision is not None
        ahead = max(decision - self.decision, 0)
        return self.value + (self.slope or 0.0) * DAMPED * (1.0 - DAMPED**ahead) / (1.0 - DAMPED)

    def between(self, decision: int, later: int, value: float) -> float:
        """The gain of staying in that decision, from the last value and one of a later decision."""
        assert self.decision is not None
        return self.value + (value - self.value) * (decision - self.decision) / (later - self.decision)

    def difference(self, decision: int, value: float) -> float:
        return value - self.at(decision)

    @property
    def deviation(self) -> float:
        """Of one forecast: from the median of its errors so far, which one broken decision does not move.

        It is at least what chance does to a share of that many examples, where their number is known.
        """
        least = LEAST_SHARE * abs(self.peak or 0.0) or LEAST_SHARE
        if self.size is not None:
            least = max(least, least_deviation(abs(self.value), self.size))
        return max(TO_DEVIATION * float(np.median(self.errors)) if self.errors else 0.0, least)

    def has_fallen(self, deviations: float) -> bool:
        """Whether the value is below its peak by that much, and falls."""
        below = 0.0 if self.peak is None else self.peak - self.value
        return below > deviations * self.deviation and (self.slope or 0.0) < 0.0

    def stayed(self, decision: int, value: float) -> None:
        """Takes in the value of staying. Errors over several decisions are scaled down to one.

        Before the change is known, half of it counts as an error.
        """
        if self.decision is not None:
            error = 0.5 * (value - self.value) if self.slope is None else self.difference(decision, value)
            self.errors = [*self.errors, abs(error) / max(decision - self.decision, 1)][-REMEMBERED:]
        self.moved(decision, value)
        self.has_moved = False

    def moved(self, decision: int, value: float) -> None:
        """Goes on from this value, which says nothing about how good the forecasts are."""
        if self.decision is not None:
            self.slope = (value - self.value) / max(decision - self.decision, 1)
        self.decision, self.value, self.has_moved = decision, value, True
        self.peak = value if self.peak is None else max(self.peak, value)

    def taken_back(self, decision: int) -> None:
        """The model is again what it was when the last value was measured, if there is one."""
        if self.decision is not None:
            self.decision = decision


# ------------------------------------------------------------
# Whether one-step predictions are better than the last value.


SKILL_REMEMBERED = 12
"""Predictions that count: a model that was good early may be of no use later."""

FEWEST = 3
"""With fewer predictions nothing can be said."""


@dataclass
class Skill:
    """Absolute errors of predictions, and of taking the last value in their place."""

    errors: list[float] = field(default_factory=list)
    errors_of_last: list[float] = field(default_factory=list)
    last: float | None = None

    def learn(self, value: float, *, predicted: float | None) -> None:
        if predicted is not None and self.last is not None:
            self.errors = [*self.errors, abs(value - predicted)][-SKILL_REMEMBERED:]
            self.errors_of_last = [*self.errors_of_last, abs(value - self.last)][-SKILL_REMEMBERED:]
        self.last = value

    @property
    def score(self) -> float | None:
        """1 − the sum of errors over that of the last value: 1 is perfect, below 0 is worse than the last value."""
        if len(self.errors) < FEWEST:
            return None
        worst = sum(self.errors_of_last)
        return 1.0 - sum(self.errors) / worst if worst > 0.0 else 0.0
