"""A sample in three numbers, so that no figure is shown without its spread."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

JSON_NAMES = ("median", "low_quartile", "high_quartile", "n")


class Spread(NamedTuple):
    """The median between the quartiles of n numbers. Infinity, for a method that has nothing yet, is worse than any."""

    median: float
    low: float
    high: float
    n: int

    @classmethod
    def of(cls, numbers: Iterable[float]) -> "Spread":
        ordered = sorted(numbers)
        return cls(quantile(ordered, 0.5), quantile(ordered, 0.25), quantile(ordered, 0.75), len(ordered))

    def to_json(self) -> dict[str, Any]:
        """Infinity is null, because JSON has none."""
        return {name: part if math.isfinite(part) else None for name, part in zip(JSON_NAMES, self, strict=True)}

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> "Spread":
        """The spread that `to_json` wrote."""
        median, low, high = (math.inf if form[name] is None else form[name] for name in JSON_NAMES[:3])
        return cls(median, low, high, form["n"])

    def __str__(self) -> str:
        return f"{_short(self.median)} [{_short(self.low)}, {_short(self.high)}]"


def quantile(ordered: Sequence[float], q: float) -> float:
    """Linear between neighbours, as NumPy's default, but without ∞ − ∞."""
    place = q * (len(ordered) - 1)
    below, above = ordered[math.floor(place)], ordered[math.ceil(place)]
    return below if below == above else below + (place - math.floor(place)) * (above - below)


def _short(number: float) -> str:
    return f"{number:.3g}" if math.isfinite(number) else "none"
