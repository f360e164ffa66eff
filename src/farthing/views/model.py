"""What a model of the study says: which parameters matter, slices with their bands, and two parameters at once."""

import numpy as np

from farthing.errors import InvalidArgument
from farthing.models.linalg import Array
from farthing.models.threads import one_thread
from farthing.study.diagnosing import diagnosis_of
from farthing.study.fitted_curves import fit_model
from farthing.study.fitted_history import FittedModel
from farthing.study.slicing import complete_best, coordinates_along
from farthing.trials import History, Json
from farthing.validation import listed, shown
from farthing.views.sampling import chosen_places

RESOLUTION = 31
"""Places along each side of a contour."""


def fitted(history: History) -> FittedModel:
    with one_thread():
        return fit_model(history)


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
    if coordinates.size <= RESOLUTION:
        return coordinates
    return np.asarray(coordinates[np.linspace(0, coordinates.size - 1, RESOLUTION).astype(int)])


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
