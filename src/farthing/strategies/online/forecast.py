"""What staying with the present setting will give: the last value, and a part of how it changed before."""

from dataclasses import dataclass, field

import numpy as np

from farthing.strategies.online.validation_noise import least_deviation

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
        """What staying gave in that decision, from the last value and one of a later decision."""
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
