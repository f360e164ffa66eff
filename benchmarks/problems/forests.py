"""Recorded tables without snapping: a random forest predicts the curve of any configuration; recorded noise is added.

The noise of a configuration is half of the out-of-bag residual of one recorded run, the whole curve of it, so that it
is correlated along a training. Which run is decided by the params alone, among those whose predicted end is closest:
training the same again gives the same. It is part of what a configuration is judged by, as it is on rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import blake2b
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from benchmarks.problems.data import missing_file, missing_package
from benchmarks.problems.problem import Direction, Evaluation, Judged, Params, Point, random_params, span_of
from benchmarks.problems.recorded import TABLE_FILES, TABLE_POINTS, key_of, read_runs, table_space
from farthing.space import Space

Array: TypeAlias = npt.NDArray[np.float64]

TREES = 100
NOISE = 0.5
"""Of the residual. A residual holds what the forest misses too, not only noise; half of it is a guess."""
NEIGHBOURS = 50
"""Recorded runs among which the residual is drawn: those that failed have far more of it than those that learnt."""
CONFIGURATIONS_FOR_MEAN_COST = 1000


class Forest(NamedTuple):
    """`ends` are the predicted last points of the recorded runs, ascending; `residuals` their curves' in that order."""

    regressor: Any
    ends: Array
    residuals: Array

    def curves(self, X: Array) -> tuple[Array, Array]:
        """The values of each configuration with its noise, shape (n, points), and the seconds of a full training."""
        predicted = self.regressor.predict(X)
        values = predicted[:, :-1] + NOISE * self.residuals[self._rows(X, predicted[:, -2])]
        return values, np.exp(predicted[:, -1])

    def _rows(self, X: Array, ends: Array) -> npt.NDArray[np.int64]:
        """The row of the residual of each configuration, among the neighbours of its predicted end."""
        count = min(NEIGHBOURS, len(self.ends))
        first = np.clip(np.searchsorted(self.ends, ends) - count // 2, 0, len(self.ends) - count)
        draws = [int.from_bytes(blake2b(key_of(x), digest_size=8).digest(), "little") % count for x in X]
        return np.asarray(first + np.array(draws, dtype=np.int64))


@cache
def forest_of(file: str) -> Forest:
    from sklearn.ensemble import RandomForestRegressor

    runs = read_runs(file)
    X = table_space(file).encoder.encode(runs.params)
    targets = np.column_stack([runs.values, np.log(runs.costs[:, -1])])
    regressor = RandomForestRegressor(TREES, oob_score=True, random_state=0, n_jobs=1).fit(X, targets)
    out_of_bag = np.asarray(regressor.oob_prediction_)[:, :-1]
    order = np.argsort(out_of_bag[:, -1])
    return Forest(regressor, out_of_bag[order, -1], (runs.values - out_of_bag)[order])


@dataclass(frozen=True)
class ForestCurves:
    """One table. A point costs a twentieth of the predicted seconds."""

    name: str
    file: str
    declared: Space
    direction: Direction = "minimize"

    def missing(self) -> str | None:
        return missing_package("sklearn") or missing_file(self.file)

    def space(self) -> Space:
        return self.declared

    def evaluate(self, params: Params, fidelity: Mapping[str, float], *, seed: int) -> Evaluation:
        trace = _curve(self.file, tuple(params.items()))[: round(fidelity["point"])]
        return Evaluation(trace[-1].value, trace[-1].cost, trace)

    def full_value(self, params: Params) -> float:
        return _curve(self.file, tuple(params.items()))[-1].value

    def full_values(self, many: Sequence[Params]) -> Array:
        return self._curves(many)[0][:, -1]

    @cached_property
    def best_value(self) -> float:
        """The best of random configurations, a close bound but not a strict one."""
        return span_of(self).best

    @cached_property
    def full_cost(self) -> float:
        return float(np.median(self._seconds))

    @cached_property
    def mean_cost(self) -> float:
        return float(np.mean(self._seconds))

    @cached_property
    def _seconds(self) -> Array:
        return self._curves(random_params(self, CONFIGURATIONS_FOR_MEAN_COST))[1]

    def _curves(self, many: Sequence[Params]) -> tuple[Array, Array]:
        return forest_of(self.file).curves(self.declared.encoder.encode(many))


@cache
def _curve(file: str, params: tuple[tuple[str, Any], ...]) -> tuple[Point, ...]:
    values, seconds = forest_of(file).curves(table_space(file).encoder.encode([dict(params)]))
    return tuple(
        Point({"point": point}, float(values[0, point - 1]), float(seconds[0]) * point / TABLE_POINTS)
        for point in range(1, TABLE_POINTS + 1)
    )


FORESTS: tuple[Judged, ...] = tuple(
    ForestCurves(f"forest/{name}", file, table_space(file)) for name, file in TABLE_FILES.items()
)
