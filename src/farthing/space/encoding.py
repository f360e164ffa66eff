"""The translator between params and points: orchestration sees dicts, numerics see arrays.

A point has one coordinate per parameter. Numbers lie in [0, 1], on a logarithmic scale where declared. Integers,
stepped floats and ordered choices lie at the centre of their bin, so that a uniform coordinate covers the values as
evenly as the scale says and reaches both bounds. An unordered choice is the index of its option; an inactive
parameter is NaN.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from farthing.errors import InvalidParams
from farthing.space.fidelity import Fidelity
from farthing.space.parameters import Choice, Float, Int, Parameter

# ------------------------------------------------------------
# How the values of one parameter become coordinates, and back; for whole columns at a time.


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


# ------------------------------------------------------------
# The encoder of a space.


class Encoder:
    """Translates whole lists of params to arrays with a row for each, and back.

    `names` gives the column order. `categories` maps the columns of unordered choices to their number of options,
    `discrete` every other column with finitely many values to that number. A retired parameter keeps its column, in
    which results differ; whatever is decoded or snapped has its one value.
    """

    def __init__(
        self,
        parameters: Mapping[str, Parameter],
        fidelities: Mapping[str, Fidelity],
        *,
        order: Sequence[str],
        retired: Mapping[str, Any] | None = None,
    ) -> None:
        declared = list(parameters.values())
        self.names = tuple(parameters)
        self.dimension = len(declared)
        self.categories = {j: p.count for j, p in enumerate(declared) if isinstance(p, Choice) and not p.ordered}
        self.discrete = {j: p.count for j, p in enumerate(declared) if p.count and j not in self.categories}
        self._parameters = dict(parameters)
        self._columns: list[Column] = [column_of(parameter) for parameter in declared]
        self.has_retired = bool(retired)
        self._retire(retired or {})
        self._conditions = [condition for name in order for condition in _conditions(name, parameters)]
        self._fidelities = dict(fidelities)

    def _retire(self, values: Mapping[str, Any]) -> None:
        for name, kept in values.items():
            j = self.names.index(name)
            self._columns[j] = Retired(self._columns[j], kept)
            if j not in self.categories:
                self.discrete[j] = 1

    def encode(self, params: Sequence[Mapping[str, Any]]) -> Array:
        """The points, shape (n, d), of params as `Space.check` returns them; InvalidParams for others."""
        X = np.full((len(params), self.dimension), np.nan)
        for j, (name, column) in enumerate(zip(self.names, self._columns, strict=True)):
            rows = [i for i, chosen in enumerate(params) if name in chosen]
            X[rows, j] = self._encoded(name, column, [params[i][name] for i in rows])
        return self._without_inactive(X)

    def _encoded(self, name: str, column: Column, values: Sequence[Any]) -> Array:
        try:
            return column.encode(values)
        except (TypeError, ValueError, OverflowError):
            for value in values:
                self._parameters[name].check(value, name=name)
            raise

    def decode(self, X: Array) -> list[dict[str, Any]]:
        """The params nearest to each point, in plain Python values, without the inactive ones."""
        return self._params(self.snap(X))

    def decode_unit(self, U: Array) -> list[dict[str, Any]]:
        """The params that uniform coordinates, shape (n, d), stand for."""
        return self._params(self.from_unit(U))

    def decode_unit_row(self, u: Sequence[float]) -> dict[str, Any]:
        """`decode_unit` for one row from 0 to 1, without arrays, which would take longer than the row itself."""
        values = list(self.unit_values(u).values())
        inactive: set[int] = set()
        for condition in self._conditions:
            if condition.parent_column in inactive or not self._is_met(condition, values[condition.parent_column]):
                inactive.add(condition.column)
        return {
            name: value for j, (name, value) in enumerate(zip(self.names, values, strict=True)) if j not in inactive
        }

    def unit_values(self, u: Sequence[float]) -> dict[str, Any]:
        """The value of every parameter, active or not, that a row from 0 to 1 stands for."""
        return {name: column.value_at(x) for name, column, x in zip(self.names, self._columns, u, strict=True)}

    def coordinates(self, name: str, values: Sequence[Any]) -> list[float]:
        """The coordinates of values of one parameter."""
        found: list[float] = self._encoded(name, self._columns[self.names.index(name)], values).tolist()
        return found

    def _is_met(self, condition: "ColumnCondition", value: Any) -> bool:
        parent = _discrete(self._columns[condition.parent_column])
        return parent.parameter.index_of(value) in condition.indices

    def _params(self, snapped: Array) -> list[dict[str, Any]]:
        params: list[dict[str, Any]] = [{} for _ in snapped]
        for name, column, x in zip(self.names, self._columns, snapped.T, strict=True):
            rows = np.flatnonzero(~np.isnan(x))
            for i, value in zip(rows.tolist(), column.decode(x[rows]), strict=True):
                params[i][name] = value
        return params

    def from_unit(self, U: Array) -> Array:
        """The points that uniform coordinates, shape (n, d), stand for; inactive coordinates are lost."""
        X = _rows(U, self.dimension).copy()
        for j, count in self.categories.items():
            X[:, j] = np.floor(X[:, j] * count)
        return self.snap(X)

    def snap(self, X: Array) -> Array:
        """The nearest points that can be decoded, with NaN for what is inactive."""
        points = _rows(X, self.dimension)
        missing = np.isnan(points)
        filled = np.where(missing, 0.0, points)
        snapped = np.column_stack([column.snap(x) for column, x in zip(self._columns, filled.T, strict=True)])
        return self._without_inactive(np.where(missing, np.nan, snapped))

    def without_inactive(self, X: Array) -> Array:
        """The points with NaN for what is inactive; coordinates between the values of a grid stay where they are."""
        points = _rows(X, self.dimension)
        return np.where(self._active(np.where(np.isnan(points), 0.0, points)), points, np.nan)

    def grid(self, column: int) -> Array | None:
        """The coordinates of a column's values in their order; None where it is continuous."""
        axis = self._columns[column]
        if isinstance(axis, Retired):
            return axis.encode([axis.kept])
        if not isinstance(axis, Discrete) or axis.parameter.count is None:
            return None
        return axis.bins.centre(np.arange(axis.parameter.count))

    def encode_fidelity(self, fidelities: Sequence[Mapping[str, float]]) -> Array:
        """s = amount / high, shape (n, f): 1 is the full amount and 0 no work at all."""
        high = np.array([fidelity.high for fidelity in self._fidelities.values()], dtype=float)
        amounts = np.array([[given[name] for name in self._fidelities] for given in fidelities], dtype=float)
        return np.asarray(amounts.reshape(len(fidelities), len(high)) / high)

    def decode_fidelity(self, S: Array) -> list[dict[str, float]]:
        """The amounts, within their bounds and whole where they count units, that s stands for."""
        s = _rows(S, len(self._fidelities))
        if np.isnan(s).any():
            raise InvalidParams("Fidelity coordinates must be numbers, got NaN. Use 1 for the full amount.")
        amounts = [_amounts(fidelity, s[:, j]) for j, fidelity in enumerate(self._fidelities.values())]
        return [
            {name: column[i] for name, column in zip(self._fidelities, amounts, strict=True)} for i in range(len(s))
        ]

    def _without_inactive(self, X: Array) -> Array:
        if not (self._conditions or np.isnan(X).any()):
            return X
        active = self._active(np.where(np.isnan(X), 0.0, X))
        missing = active & np.isnan(X)
        if missing.any():
            i, j = np.argwhere(missing)[0]
            raise InvalidParams(
                f"Every active parameter must have a coordinate, got none for {self.names[j]!r} in row {i}. "
                "Fill in the missing value, or change the parents it depends on."
            )
        return np.where(active, X, np.nan)

    def _active(self, X: Array) -> Flags:
        """Which coordinates are active; `_conditions` has every parent before its children."""
        active = np.ones(X.shape, dtype=bool)
        for condition in self._conditions:
            parent = _discrete(self._columns[condition.parent_column])
            allowed = parent.index(X[:, condition.parent_column])[:, None] == condition.indices
            active[:, condition.column] &= active[:, condition.parent_column] & allowed.any(axis=1)
        return active


@dataclass(frozen=True)
class ColumnCondition:
    """A column is active only where its parent is, with one of these indices."""

    column: int
    parent_column: int
    indices: Indices


def _discrete(column: Column) -> Discrete:
    """The column of a parent, which has finitely many values."""
    declared = column.column if isinstance(column, Retired) else column
    assert isinstance(declared, Discrete)
    return declared


def _conditions(name: str, parameters: Mapping[str, Parameter]) -> list[ColumnCondition]:
    columns = {known: column for column, known in enumerate(parameters)}
    return [
        ColumnCondition(columns[name], columns[parent], _indices(parameters[parent], values))
        for parent, values in parameters[name].when.items()
    ]


def _indices(parent: Parameter, values: Sequence[Any]) -> Indices:
    return np.array([parent.index_of(value) for value in values], dtype=np.int64)


def _rows(points: Array, dimension: int) -> Array:
    rows = np.asarray(points, dtype=float)
    if rows.ndim != 2 or rows.shape[1] != dimension:
        raise InvalidParams(
            f"Points must be an array of shape (n, {dimension}), got shape {rows.shape}. Pass one row per point."
        )
    return rows


def _amounts(fidelity: Fidelity, s: Array) -> list[float]:
    within = np.clip(s * fidelity.high, fidelity.low, fidelity.high)
    exact = np.where(s <= fidelity.low / fidelity.high, fidelity.low, within)
    amounts: list[float] = (np.rint(exact).astype(np.int64) if fidelity.integer else exact).tolist()
    return amounts
