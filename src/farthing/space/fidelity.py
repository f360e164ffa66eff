"""Fidelities: how much of the full work a trial does."""

from dataclasses import dataclass
from typing import Any

from farthing.errors import InvalidParams, InvalidSpace
from farthing.scalars import as_float, as_whole, clipped
from farthing.space import validation
from farthing.validation import shown


@dataclass(frozen=True, init=False, repr=False)
class Fidelity:
    """An amount of work from `low`, the smallest, to `high`, the full amount.

    Zero stands for no work at all, so `low` is above it. `integer` counts in whole units, such as epochs. `trace`
    says that a run reports its value at every smaller amount on the way, as training does at every epoch.

    `best_so_far`, for a trace, says that a run is worth the best point of its curve, as boosting and training with
    early stopping are. Work that stops by itself before it has done its amount is then trained to the end.
    """

    low: float
    high: float
    integer: bool
    trace: bool
    best_so_far: bool

    def __init__(
        self, low: float, high: float, *, integer: bool = False, trace: bool = False, best_so_far: bool = False
    ) -> None:
        whole = validation.read_flag(integer, what="integer=")
        read = validation.read_int if whole else validation.read_float
        validation.store(
            self,
            low=read(low, what="The low of a Fidelity"),
            high=read(high, what="The high of a Fidelity"),
            integer=whole,
            trace=validation.read_flag(trace, what="trace="),
            best_so_far=validation.read_flag(best_so_far, what="best_so_far="),
        )
        self._check_range()

    def __repr__(self) -> str:
        return validation.call_text(self, self.low, self.high, **self.settings)

    @property
    def settings(self) -> dict[str, Any]:
        """The keyword arguments that differ from their defaults."""
        return validation.differing(
            integer=(self.integer, False), trace=(self.trace, False), best_so_far=(self.best_so_far, False)
        )

    def check(self, value: object, *, name: str) -> float:
        """The canonical amount; InvalidParams when it cannot be asked for."""
        number = as_whole(value) if self.integer else as_float(value)
        if number is None:
            kind, example = ("a whole number", "an int") if self.integer else ("a finite number", "a float")
            raise InvalidParams(f"{name} must be {kind}, got {shown(value)}. Give it as {example}.")
        within = clipped(number, self.low, self.high)
        if within is None:
            raise validation.outside(self, value, name=name)
        return within

    def _check_range(self) -> None:
        validation.check_bounds(self)
        if self.low <= 0:
            raise InvalidSpace(
                f"A Fidelity must have low > 0, got {self!r}. "
                "Zero means no work at all; start at the least useful amount."
            )
        if self.best_so_far and not self.trace:
            raise InvalidSpace(
                f"best_so_far must be of a trace, whose points are measured on the way, got {self!r}. Add trace=True."
            )
