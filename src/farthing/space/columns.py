"""How the values of one parameter become coordinates, and back; for whole columns at a time."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from farthing.space.parameters import Choice, Float, Int, Parameter

Array: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]
Indices: TypeAlias = npt.NDArray[np.int64]


def column_of(parameter: Parameter) -> "Continuum | Discrete":
    """The column that suits the parameter."""
    match parameter:
        case Float(step=None):
            return Continuum(parameter)
        case Choice(ordered=False):
            return Discrete(parameter, Categories(parameter.count))
        case Int(log=True):
            return Discrete(parameter, LogBins(parameter.low, parameter.count))
    assert parameter.count is not None
    return Discrete(parameter, EqualBins(parameter.count))


@dataclass(frozen=True)
class Continuum:
    """A Float without a step."""

    parameter: Float

    def encode(self, values: Sequence[float]) -> Array:
        """x = (v - low) / (high - low), or the same of the logarithms."""
        low, high = self.parameter.low, self.parameter.high
        v = np.array(values, dtype=float)
        x = np.log(v / low) / math.log(high / low) if self.parameter.log else (v - low) / (high - low)
        return self._exact_ends(x, at_low=v <= low, at_high=v >= high, ends=(0.0, 1.0))

    def decode(self, x: Array) -> list[float]:
        """v = low + x (high - low), or low (high / low)^x; the bounds come back to the bit."""
        low, high = self.parameter.low, self.parameter.high
        v = low * np.exp(x * math.log(high / low)) if self.parameter.log else low + x * (high - low)
        exact: list[float] = self._exact_ends(v, at_low=x <= 0, at_high=x >= 1, ends=(low, high)).tolist()
        return exact

    def value_at(self, u: float) -> float:
        """The value that one uniform coordinate stands for, to the bit as `decode` has it."""
        low, high = self.parameter.low, self.parameter.high
        if u <= 0 or u >= 1:
            return low if u <= 0 else high
        v = low * float(np.exp(u * math.log(high / low))) if self.parameter.log else low + u * (high - low)
        return min(max(v, low), high)

    def snap(self, x: Array) -> Array:
        """The coordinate clipped into [0, 1]."""
        return _clipped(x, 0.0, 1.0)

    @staticmethod
    def _exact_ends(result: Array, *, at_low: Flags, at_high: Flags, ends: tuple[float, float]) -> Array:
        return np.where(at_low, ends[0], np.where(at_high, ends[1], _clipped(result, *ends)))


class Bins(Protocol):
    """Positions of the values 0, 1, … of a discrete parameter on its axis."""

    def centre(self, index: Indices) -> Array:
        """The coordinate that stands for each index."""
        ...

    def index(self, x: Array) -> Indices:
        """The index whose bin holds each coordinate, the nearest for one outside."""
        ...

    def index_at(self, u: float) -> int:
        """The index that one uniform coordinate, from 0 to 1, stands for."""
        ...


@dataclass(frozen=True)
class Discrete:
    """A parameter with finitely many values."""

    parameter: Parameter
    bins: Bins

    def encode(self, values: Sequence[Any]) -> Array:
        """The centre of each value's bin."""
        return self.bins.centre(np.array([self.parameter.index_of(value) for value in values], dtype=np.int64))

    def decode(self, x: Array) -> list[Any]:
        """The value whose bin holds each coordinate."""
        return [self.parameter.value_at(index) for index in self.index(x).tolist()]

    def value_at(self, u: float) -> Any:
        """The value that one uniform coordinate stands for."""
        return self.parameter.value_at(self.bins.index_at(u))

    def snap(self, x: Array) -> Array:
        """The centre of the bin that holds each coordinate."""
        return self.bins.centre(self.index(x))

    def index(self, x: Array) -> Indices:
        """The index of the value that each coordinate stands for."""
        return self.bins.index(np.ascontiguousarray(x))


@dataclass(frozen=True)
class Retired:
    """A parameter that is no longer tuned: results keep their coordinates, whatever is new has the one kept value."""

    column: "Column"
    kept: Any

    def encode(self, values: Sequence[Any]) -> Array:
        """As the column does."""
        return self.column.encode(values)

    def decode(self, x: Array) -> list[Any]:
        """The kept value, to the bit."""
        return [self.kept] * len(x)

    def value_at(self, u: float) -> Any:
        """The kept value."""
        return self.kept

    def snap(self, x: Array) -> Array:
        """The coordinate of the kept value."""
        return np.full(len(x), self.encode([self.kept])[0])


Column: TypeAlias = Continuum | Discrete | Retired


@dataclass(frozen=True)
class EqualBins:
    """[0, 1] in equal parts."""

    count: int

    def centre(self, index: Indices) -> Array:
        """The middle of each part."""
        return np.asarray((index + 0.5) / self.count)

    def index(self, x: Array) -> Indices:
        """The part that holds each coordinate."""
        return _whole(np.floor(_clipped(x, 0.0, 1.0) * self.count), self.count)

    def index_at(self, u: float) -> int:
        """The part that holds the coordinate."""
        return min(int(u * self.count), self.count - 1)


@dataclass(frozen=True)
class LogBins:
    """Integers from `low` on a logarithmic axis: v has the bin from log(v - ½) to log(v + ½)."""

    low: int
    count: int

    def centre(self, index: Indices) -> Array:
        """The middle of each bin, as a fraction of the axis."""
        v = index.astype(float) + self.low
        edges = np.log((v - 0.5) / self._start), np.log((v + 0.5) / self._start)
        return np.asarray((edges[0] + edges[1]) / (2 * self._width))

    def index(self, x: Array) -> Indices:
        """The bin that holds each coordinate."""
        v = self._start * np.exp(_clipped(x, 0.0, 1.0) * self._width)
        return _whole(np.floor(v + 0.5) - self.low, self.count)

    def index_at(self, u: float) -> int:
        """The bin that holds the coordinate."""
        v = self._start * float(np.exp(u * self._width))
        return min(max(math.floor(v + 0.5) - self.low, 0), self.count - 1)

    @property
    def _start(self) -> float:
        return self.low - 0.5

    @property
    def _width(self) -> float:
        return math.log((self._start + self.count) / self._start)


@dataclass(frozen=True)
class Categories:
    """Options without an order: the coordinate is the index itself."""

    count: int

    def centre(self, index: Indices) -> Array:
        """The index as a float."""
        return index.astype(float)

    def index(self, x: Array) -> Indices:
        """The nearest index."""
        return _whole(np.rint(_clipped(x, 0.0, float(self.count))), self.count)

    def index_at(self, u: float) -> int:
        """The option that the coordinate stands for where all have equal parts of it."""
        return min(int(u * self.count), self.count - 1)


def _whole(index: Array, count: int) -> Indices:
    """Whole floats as indices, those outside moved to the nearest end."""
    return _clipped(index, 0.0, count - 1.0).astype(np.int64)


def _clipped(x: Array, low: float, high: float) -> Array:
    """`np.clip` for few rows, where its checks cost more than the work."""
    return np.minimum(np.maximum(x, low), high)
