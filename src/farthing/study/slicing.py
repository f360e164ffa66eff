"""The model's prediction along one parameter while the others stay as in the best trial."""

from dataclasses import dataclass

import numpy as np

from farthing.models.linalg import Array
from farthing.scalars import Scalar
from farthing.space.encoding import Encoder
from farthing.study.fitted_history import FittedModel

RESOLUTION = 61
"""Places along a parameter that has more values than that."""


@dataclass(frozen=True)
class Slice:
    """Predictions at some values of a parameter, with 95 % between `low` and `high`, in the value's units.

    The others are as in the best trial; one that is inactive there, but active at the value in question, stands as in
    the best trial that had it. `nearness` has a number for each of `Diagnosis.trials`: 1 for a trial on the slice,
    towards 0 the less it says about it.
    """

    parameter: str
    values: tuple[Scalar, ...]
    expected: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    nearness: tuple[float, ...]


def slice_along(fitted: FittedModel, parameter: str) -> Slice:
    """The slice along a parameter that is active in the best trial."""
    column = fitted.encoder.names.index(parameter)
    rows = _rows_along(fitted, column)
    expected, low, high = fitted.intervals(*fitted.predict(rows))
    return Slice(
        parameter,
        values=tuple(params[parameter] for params in fitted.encoder.decode(rows)),
        expected=tuple(expected.tolist()),
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
        nearness=tuple(_nearness(fitted, column)[fitted.is_measured].tolist()),
    )


def _rows_along(fitted: FittedModel, column: int) -> Array:
    coordinates = coordinates_along(fitted.encoder, column)
    rows = np.tile(complete_best(fitted), (coordinates.size, 1))
    rows[:, column] = coordinates
    snapped = fitted.encoder.snap(rows)
    _, different = np.unique(snapped[:, column], return_index=True)
    return np.asarray(snapped[different])


def coordinates_along(encoder: Encoder, column: int) -> Array:
    """Places along a column of the unit cube: its values, where these are few."""
    grid = encoder.grid(column)
    return grid if grid is not None and grid.size <= RESOLUTION else np.linspace(0.0, 1.0, RESOLUTION)


def complete_best(fitted: FittedModel) -> Array:
    """The best row; an inactive coordinate is taken from the best row that has it, else the lowest one."""
    ranked = fitted.points[[fitted.best, *np.argsort(fitted.loss, kind="stable")]]
    first = np.argmax(~np.isnan(ranked), axis=0)
    return np.asarray(np.nan_to_num(ranked[first, np.arange(ranked.shape[1])], nan=0.0))


def _nearness(fitted: FittedModel, column: int) -> Array:
    """k(x, p)/k(x, x) of each row x and its projection p on the slice; 0 for rows that do not have the column."""
    X = fitted.points
    projected = np.tile(complete_best(fitted), (X.shape[0], 1))
    has_column = ~np.isnan(X[:, column])
    projected[has_column, column] = X[has_column, column]
    projected = fitted.encoder.without_inactive(projected)
    theta, evaluate = fitted.gp.theta, fitted.gp.kernel.evaluate
    rows, others = fitted.rows(X), (fitted.rows(projected), fitted.rows(X))
    shared, own = (evaluate(theta, rows[:, None, :], Z[:, None, :]).K[:, 0, 0] for Z in others)
    return np.where(has_column, shared / own, 0.0)
