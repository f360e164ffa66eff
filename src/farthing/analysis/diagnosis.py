"""Diagnoses a study with a model: how far to trust it, which parameters matter, how the value depends on them."""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np

from farthing.analysis.model import FittedModel, model_of
from farthing.analysis.sampling import chosen_places
from farthing.errors import InvalidArgument
from farthing.models.gp import GP, calibration, variance_shares
from farthing.models.linalg import Array, one_thread
from farthing.scalars import Scalar
from farthing.space.encoding import Encoder
from farthing.trials import History, Json
from farthing.validation import listed, shown

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


# ------------------------------------------------------------
# Which parameters matter: shares of the variance of a model over the space, with their uncertainty.


POINTS, DRAWN_POINTS, DRAWS = 1024, 40, 32
"""Random configurations for the shares; fewer of them, and draws of the function, for the uncertainty. For time."""

Rows = Callable[[Array], Array]
"""From encoded configurations (N, d) to rows of the model."""


class Share(NamedTuple):
    """A parameter's share of the variance, from 0 to 1, and its standard deviation by the model's own uncertainty."""

    share: float
    deviation: float


def importance_of(history: History) -> dict[str, Share]:
    """By the model of full trainings; if there are too few, by the model of learning curves, at full fidelity."""
    with one_thread():
        fitted = model_of(history)
        return shares_of(fitted.gp, fitted.encoder, fitted.rows)


def shares_of(gp: GP, encoder: Encoder, rows: Rows = lambda X: X) -> dict[str, Share]:
    """For each parameter, the greatest share first."""
    rng = np.random.default_rng(0)
    shares = variance_shares(*_split(gp.mean(rows(_moved(encoder, POINTS, rng))), encoder.dimension))
    drawn = gp.sample(rows(_moved(encoder, DRAWN_POINTS, rng)), DRAWS, rng=rng)
    deviations = np.std(variance_shares(*_split(drawn, encoder.dimension)), axis=0)
    found = zip(encoder.names, map(Share, shares.tolist(), deviations.tolist()), strict=True)
    return dict(sorted(found, key=lambda item: -item[1].share))


def _moved(encoder: Encoder, count: int, rng: np.random.Generator) -> Array:
    """Random configurations, then the same with one parameter after the other drawn again: (D + 1) · N rows."""
    U, again = rng.random((2, count, encoder.dimension))
    parts = [U]
    for j in range(encoder.dimension):
        parts.append(U.copy())
        parts[-1][:, j] = again[:, j]
    return encoder.snap(encoder.from_unit(np.concatenate(parts)))


def _split(values: Array, dimension: int) -> tuple[Array, Array]:
    """Values (…, (D + 1) · N) as those of the base (…, N) and of each that was moved (…, D, N)."""
    parts = values.reshape(*values.shape[:-1], dimension + 1, -1)
    return parts[..., 0, :], parts[..., 1:, :]


# ------------------------------------------------------------
# Diagnoses a study with a model: how far to trust it, which parameters matter, how the value depends on them.


LEVELS = (0.5, 0.8, 0.95)


@dataclass(frozen=True)
class Diagnosis:
    """A model of the study: how far to trust it, and its findings.

    `trials` are those with a value, and `observed` their values. `predicted` is the prediction of each from all
    others, with 95 % between `low` and `high`; the hyperparameters stay, which is slightly too favourable. Half of the
    predictions are off by less than `median_error`, and all by `rms_error` in the root mean square.

    On the scale of the model, where very bad values are compressed, `residuals` are standard normal if the model is
    right. `explained` is the share of the differences between trials that it predicts, None where there are none.
    `calibration` maps a level, such as 0.8, to the share of values in the interval that should hold that many.

    `noise` is the change of a good trial's value when it is repeated, as estimated by the model. `importance`
    has a share for each parameter, the greatest first: its part in the variance of the model over the space, with the
    standard deviations in `importance_deviation`; `slices` through the `best` trial are in the same order.
    `failed` trials count in the model as the worst value. `is_by_curves` says that too few trials are full ones, so it
    is the model of learning curves: `trials` are then the ends of runs, each predicted, where it was measured, from all
    other configurations; importance and slices hold at full fidelity.
    """

    value: str
    trials: tuple[int, ...]
    observed: tuple[float, ...]
    predicted: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    residuals: tuple[float, ...]
    rms_error: float
    median_error: float
    explained: float | None
    calibration: Mapping[float, float]
    noise: float
    importance: Mapping[str, float]
    importance_deviation: Mapping[str, float]
    best: int
    slices: tuple[Slice, ...]
    failed: int
    is_by_curves: bool = False

    def to_json(self) -> dict[str, Json]:
        levels = [{"level": level, "inside": inside} for level, inside in self.calibration.items()]
        form: dict[str, Json] = _with_lists(asdict(self) | {"calibration": levels})
        return form


def diagnose(history: History) -> Diagnosis:
    """Judges the model that `LogEI` would fit to the finished trials at full fidelity, for any strategy.

    If they are too few and there are fidelities, it is the model of learning curves. Raises `NoResult` if there are too
    few configurations for that too.
    """
    with one_thread():
        return diagnosis_of(model_of(history))


def diagnosis_of(fitted: FittedModel) -> Diagnosis:
    """The judgement of a model that is fitted already."""
    left_out, best = fitted.left_out(), fitted.trials[fitted.best]
    shares = shares_of(fitted.gp, fitted.encoder, fitted.rows)
    observed = fitted.values(left_out.observed)
    predicted, low, high = fitted.intervals(left_out.mean, left_out.variance)
    errors, explained = np.abs(observed - predicted), left_out.explained
    return Diagnosis(
        value=fitted.history.problem.value,
        trials=tuple(fitted.trials[row].number for row in np.flatnonzero(fitted.is_measured)),
        observed=tuple(observed.tolist()),
        predicted=tuple(predicted.tolist()),
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
        residuals=tuple(left_out.residuals.tolist()),
        rms_error=float(np.sqrt(np.mean(errors**2))),
        median_error=float(np.median(errors)),
        explained=None if math.isnan(explained) else explained,
        calibration=dict(zip(LEVELS, calibration(left_out.residuals, np.array(LEVELS)).tolist(), strict=True)),
        noise=_noise(fitted),
        importance={name: share.share for name, share in shares.items()},
        importance_deviation={name: share.deviation for name, share in shares.items()},
        best=best.number,
        slices=tuple(slice_along(fitted, name) for name in shares if name in best.params),
        failed=fitted.failed,
        is_by_curves=fitted.is_by_curves,
    )


def _noise(fitted: FittedModel) -> float:
    """σ carried to the units of the value, at the best trial."""
    best = fitted.best_on_the_models_scale
    there, beside = fitted.values(np.array([best, best - np.sqrt(fitted.gp.noise)]))
    return abs(float(beside - there))


def _with_lists(form: Json) -> Json:
    """A value as it comes back from JSON: tuples become lists."""
    if isinstance(form, dict):
        return {key: _with_lists(part) for key, part in form.items()}
    return [_with_lists(part) for part in form] if isinstance(form, tuple | list) else form


# ------------------------------------------------------------
# What a model of the study says: which parameters matter, slices with their bands, and two parameters at once.


CONTOUR_RESOLUTION = 31
"""Places along each side of a contour."""


def model_form(model: FittedModel) -> dict[str, Json]:
    """The diagnosis: importance with its uncertainty, slices with bands, and how far to trust them."""
    with one_thread():
        return diagnosis_of(model).to_json()


def contour(model: FittedModel, x: str, y: str) -> dict[str, Json]:
    """The expected value over two parameters, the others as in the best trial, and one deviation beside it."""
    names = list(model.encoder.names)
    for name in (x, y):
        if name not in names or x == y:
            raise InvalidArgument(
                f"A contour needs two different parameters of {listed(names)}, got {shown(x)} and {shown(y)}. "
                "Choose two of them."
            )
    across, up = names.index(x), names.index(y)
    with one_thread():
        xs, ys = (_thin(coordinates_along(model.encoder, column)) for column in (across, up))
        rows = np.tile(complete_best(model), (xs.size * ys.size, 1))
        rows[:, across], rows[:, up] = np.tile(xs, ys.size), np.repeat(ys, xs.size)
        snapped = model.encoder.snap(rows)
        mean, variance = model.predict(snapped)
        expected, low, high = model.intervals(mean, variance)
    params = model.encoder.decode(snapped)
    return {
        "x": x,
        "y": y,
        "xs": [params[place].get(x) for place in range(xs.size)],
        "ys": [params[place * xs.size].get(y) for place in range(ys.size)],
        "expected": expected.reshape(ys.size, xs.size).tolist(),
        "spread": ((high - low) / 2).reshape(ys.size, xs.size).tolist(),
        "best": model.trials[model.best].number,
        "trials": [
            {"number": trial.number, "x": trial.params.get(x), "y": trial.params.get(y), "value": trial.value}
            for trial in model.trials[-500:]
            if x in trial.params and y in trial.params
        ],
    }


def _thin(coordinates: Array) -> Array:
    if coordinates.size <= CONTOUR_RESOLUTION:
        return coordinates
    return np.asarray(coordinates[np.linspace(0, coordinates.size - 1, CONTOUR_RESOLUTION).astype(int)])


def for_a_model(history: History, *, most: int) -> History:
    """A history of which a model is fitted in seconds: of many results the better half of those kept, and some others.

    Trials keep their numbers, so that it has gaps: enough to fit a model to, not to continue the study.
    """
    ended = [trial for trial in history if trial.is_finished and history.is_full(trial)]
    if len(ended) <= most:
        return history
    losses = np.array([np.inf if trial.value is None else history.loss(trial.value) for trial in ended])
    keep = np.zeros(len(ended), dtype=bool)
    keep[np.argsort(losses, kind="stable")[: most // 2]] = True
    chosen = [ended[int(place)] for place in chosen_places(len(ended), most, keep=keep)]
    return History(history.problem, chosen, events=history.events, version=history.version)
