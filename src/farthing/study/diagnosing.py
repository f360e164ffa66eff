"""Diagnoses a study with a model: how far to trust it, which parameters matter, how the value depends on them."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from farthing.models.diagnostics import calibration
from farthing.models.threads import one_thread
from farthing.study.fitted_curves import fit_model
from farthing.study.fitted_history import FittedModel
from farthing.study.importance import shares_of
from farthing.study.slicing import Slice, slice_along
from farthing.trials import Json

if TYPE_CHECKING:
    from farthing.study.study import Study

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


def diagnose(study: "Study") -> Diagnosis:
    """Judges the model that `LogEI` would fit to the finished trials at full fidelity, for any strategy.

    If they are too few and there are fidelities, it is the model of learning curves. Raises `NoResult` if there are too
    few configurations for that too.
    """
    with one_thread():
        return diagnosis_of(fit_model(study.history))


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
