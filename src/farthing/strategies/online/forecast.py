"""What staying with the present setting will give: the last value, and a part of how it changed before."""

from dataclasses import dataclass, field

import numpy as np

DAMPED = 0.7
"""The part of the last change that is expected again: learning curves flatten, and drifts turn."""

REMEMBERED = 7
"""Errors of which the median is the deviation."""

TO_DEVIATION = 1.4826
"""From the median of absolute errors to the standard deviation of normal ones."""

LEAST_SHARE = 1e-3
"""The least deviation, as a share of the highest value: equal values would make the smallest difference certain."""


@dataclass
class Forecast:
    """Built on the values of staying alone: the last, its round, and how it changed a round since the one before."""

    round: int | None = None
    value: float = 0.0
    slope: float | None = None
    errors: list[float] = field(default_factory=list)
    peak: float | None = None
    """The highest value so far."""

    def is_ready(self, round: int) -> bool:
        """Whether the value of staying was measured in that round, and how it changes is known."""
        return self.round == round and self.slope is not None

    def at(self, round: int) -> float:
        assert self.round is not None
        return self.value + DAMPED * (self.slope or 0.0) * (round - self.round)

    def difference(self, round: int, value: float) -> float:
        return value - self.at(round)

    @property
    def deviation(self) -> float:
        """Of one forecast: from the median of its errors so far, which one broken round does not move."""
        least = LEAST_SHARE * abs(self.peak or 0.0) or LEAST_SHARE
        return max(TO_DEVIATION * float(np.median(self.errors)) if self.errors else 0.0, least)

    def has_fallen(self, deviations: float) -> bool:
        """Whether the value is below its peak by that much, and falls."""
        below = 0.0 if self.peak is None else self.peak - self.value
        return below > deviations * self.deviation and (self.slope or 0.0) < 0.0

    def stayed(self, round: int, value: float, *, block: int) -> None:
        """Takes in the value of staying. Errors over more rounds than a block are scaled down to one.

        Before the change is known, half of it counts as an error.
        """
        if self.round is not None:
            error = 0.5 * (value - self.value) if self.slope is None else self.difference(round, value)
            self.errors = [*self.errors, abs(error) * min(1.0, block / (round - self.round))][-REMEMBERED:]
        self.moved(round, value)

    def moved(self, round: int, value: float) -> None:
        """Goes on from this value, which says nothing about how good the forecasts are."""
        if self.round is not None:
            self.slope = (value - self.value) / (round - self.round)
        self.round, self.value = round, value
        self.peak = value if self.peak is None else max(self.peak, value)

    def taken_back(self, round: int) -> None:
        """The model is again what it was when the last value was measured."""
        self.round = round
