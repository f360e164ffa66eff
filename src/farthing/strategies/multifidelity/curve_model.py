"""The model of learning curves: a Gaussian process over params and fidelities together."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import log
from operator import mul

import numpy as np

from farthing.models.fidelity_kernels import DataSize, LearningCurve
from farthing.models.fitting import (
    HyperparameterPosterior,
    Standardise,
    fit,
    hyperparameter_posterior,
    sample_hyperparameters,
)
from farthing.models.gp import GP, VALUE
from farthing.models.kernels import SE, Constant, Kernel, Matern52, Parameter
from farthing.models.linalg import Array, BoolArray, IntArray
from farthing.space import Float, Space
from farthing.strategies.multifidelity.levels import Fidelities
from farthing.strategies.multifidelity.loss_scale import LossScale, RawLoss, loss_scale
from farthing.strategies.multifidelity.runs import Point, Run, active_runs, runs_of
from farthing.strategies.shared.modelling import kernel_over
from farthing.strategies.shared.surrogate import last_fit
from farthing.trials import History, Json, Params, Prediction, noted

RETAINED = 4
"""Points of each curve that enter the model, as many as `TraceKG` takes."""
GROWTH_BEFORE_REFIT = 1.12
"""Hyperparameters are kept until the observations have grown by this factor; chosen for speed, not tuned."""
WANDERING = Parameter("wandering", median=0.1, spread=1.0, lower=1e-3, upper=1e2)
"""Prior of the Matérn part of each fidelity's kernel; a guess, no other is on record."""


@dataclass(frozen=True, eq=False)
class CurveModel:
    """A process over rows (x, s), the scales of the losses it sees, and what to remember of its fit."""

    gp: GP
    posterior: HyperparameterPosterior
    scale: LossScale
    standard: Standardise
    theta: Array
    fitted_on: int
    draws: Array
    """Samples of θ (samples, p) that information and means are averaged over; none where θ stands for all."""

    @cached_property
    def processes(self) -> list[GP]:
        """The process of each sample of θ, or the one of θ."""
        return [self.posterior.process(theta) for theta in self.draws] or [self.gp]

    def predicted(self, row: Array, *, sign: float) -> Prediction:
        """The value at one row (x, s), in the user's units."""
        return self.all_predicted(row[None, :], sign=sign)[0]

    def all_predicted(self, rows: Array, *, sign: float) -> list[Prediction]:
        """The values at rows (x, s), in the user's units."""
        mean, variance = self.gp.predict(rows)
        z, deviation = self.standard.undo(mean), np.sqrt(self.standard.undo_variance(variance))
        values, deviations = sign * self.scale.undo(z), deviation * self.scale.slope(z)
        return [Prediction(*pair) for pair in zip(values.tolist(), deviations.tolist(), strict=True)]

    @property
    def sloped_columns(self) -> tuple[int, ...]:
        """The params along which derivatives were observed."""
        return tuple(sorted(set(self.gp.along.tolist()) - {VALUE}))

    def note(self) -> dict[str, Json]:
        samples = {"samples": self.draws.tolist()} if self.draws.size else {}
        return {"theta": [float(value) for value in self.theta], "fitted_on": self.fitted_on, **samples}


def curve_kernel(space: Space, *, fidelity_kernel: str) -> Kernel:
    """The kernel over x times one for each fidelity.

    "auto" is "decays" along a single trace, where real trainings were judged, and "curves" elsewhere. "published" is
    "decays" times a squared exponential over x, with a lengthscale for each param (section 5.3).
    """
    d, is_trace = space.encoder.dimension, Fidelities(space).is_trace.tolist()
    if fidelity_kernel == "auto":
        fidelity_kernel = "decays" if is_trace == [True] else "curves"
    parts = [one_fidelity(d + j, is_trace=trace, fidelity_kernel=fidelity_kernel) for j, trace in enumerate(is_trace)]
    radial = SE if fidelity_kernel == "published" else Matern52
    return reduce(mul, parts, kernel_over(space.encoder, radial=radial))


def one_fidelity(column: int, *, is_trace: bool, fidelity_kernel: str) -> Kernel:
    """A learning curve for traces and a data size for others, or Matérn.

    Real curves cross and turn; a kernel of decays alone is twice as sure of their ends as it should be. "curves"
    therefore adds what wanders along the way, smoothly and a little; "decays" is the kernel of the paper.
    """
    if fidelity_kernel == "matern":
        return Matern52((column,))
    shape: Kernel = LearningCurve(column) if is_trace else DataSize(column)
    return shape if fidelity_kernel in ("decays", "published") else shape + Constant(WANDERING) * Matern52((column,))


def model_of_curves(
    history: History, *, fidelity_kernel: str, may_refit: bool = True
) -> tuple[CurveModel, list[Run]] | None:
    """The model of a history of any strategy, and the runs that it knows; None where no value is known."""
    runs = active_runs(history, runs_of(history), retain=RETAINED)
    model = fit_curves(history, runs, retain=RETAINED, fidelity_kernel=fidelity_kernel, may_refit=may_refit)
    return None if model is None else (model, runs)


def fit_curves(
    history: History,
    runs: Sequence[Run],
    *,
    retain: int,
    fidelity_kernel: str,
    may_refit: bool = True,
    samples: int = 0,
) -> CurveModel | None:
    """The model of a history's curves; None where no value is known.

    The last fit noted is kept until there are 12 % more finished trials; if not `may_refit`, as long as there is one.
    `samples` of the hyperparameters are drawn with each fit. The published kernel sees losses as they are.
    """
    seen = observe_curves(history, runs, retain=retain)
    if seen.loss.size == 0:
        return None
    scale = RawLoss() if fidelity_kernel == "published" else loss_scale(seen.loss)
    z = scale.apply(seen.loss)
    standard = Standardise.of(z)
    Z, y, along = seen.with_slopes(standard.apply(z), 1.0 / (scale.slope(z) * standard.scale))
    kernel = curve_kernel(history.problem.space, fidelity_kernel=fidelity_kernel)
    posterior = hyperparameter_posterior(kernel, Z, y, along=along)
    theta, fitted_on = last_fit(history, "theta", size=len(posterior.parameters))
    draws, count = _last_draws(history, (samples, len(posterior.parameters))), history.finished
    if theta is None or len(draws) < samples or (may_refit and count > GROWTH_BEFORE_REFIT * fitted_on):
        theta, fitted_on = fit(posterior, warm_start=theta), count
        if samples:
            draws = sample_hyperparameters(posterior, theta, samples, rng=np.random.default_rng(count))
    return CurveModel(posterior.process(theta), posterior, scale, standard, theta, fitted_on, draws)


def _last_draws(history: History, shape: tuple[int, int]) -> Array:
    """The samples of the hyperparameters that the latest suggestion noted, if they are as many as wanted."""
    if shape[0]:
        for trial in reversed(history):
            samples = noted(trial.note).get("samples")
            if samples is not None and np.shape(samples) == shape:
                return np.array(samples, dtype=float)
    return np.zeros((0, shape[1]))


# ------------------------------------------------------------------------------------------------- what is observed


@dataclass(frozen=True, eq=False)
class CurvePoints:
    """Rows (x, s), their losses, and slopes of the loss along columns of x, NaN where there are none."""

    Z: Array
    loss: Array
    slopes: Array

    def with_slopes(self, y: Array, per_loss: Array) -> tuple[Array, Array, IntArray]:
        """Values y, which change by `per_loss` as the losses do, then slopes: rows, observations, kinds."""
        i, j = np.nonzero(np.isfinite(self.slopes) & np.isfinite(per_loss)[:, None])
        along = np.concatenate([np.full(y.size, VALUE, dtype=np.int64), j.astype(np.int64)])
        return np.concatenate([self.Z, self.Z[i]]), np.concatenate([y, self.slopes[i, j] * per_loss[i]]), along


def observe_curves(history: History, runs: Sequence[Run], *, retain: int) -> CurvePoints:
    """The points of a history's curves that enter the model.

    Trials that failed stand in with the worst loss seen, at the fidelity that they were to reach.
    """
    space = history.problem.space
    kept = [(run.params, point) for run, points in zip(runs, retained(runs, retain), strict=True) for point in points]
    if kept:
        worst = max(point.loss for run in runs for point in run.curve)
        kept += [(run.params, Point(failed.fidelity, worst)) for run in runs for failed in run.failed]
    X = space.encoder.encode([params for params, _ in kept])
    S = space.encoder.encode_fidelity([point.fidelity for _, point in kept])
    slopes = [_slopes(space, params, point, history.problem.sign) for params, point in kept]
    return CurvePoints(
        np.hstack([X, S]), np.array([point.loss for _, point in kept]), np.array(slopes).reshape(X.shape)
    )


def retained(runs: Sequence[Run], count: int) -> list[list[Point]]:
    """Of each run the points of its curve that enter the model: the observed ones nearest to those wanted.

    Wanted are those that the suggestions chose, else `count` at even shares of the way to its end, which is always
    among them. Without a trace, every point is kept.
    """
    fidelities = Fidelities(runs[0].problem.space) if runs else None
    if fidelities is None or not fidelities.is_trace.any():
        return [list(run.curve) for run in runs]
    S = fidelities.space.encoder.encode_fidelity([point.fidelity for run in runs for point in run.curve])
    ends = np.cumsum([len(run.curve) for run in runs])[:-1]
    traces = np.split(S[:, fidelities.is_trace], ends)
    return [_nearest_to_wanted(run, T, count, fidelities.is_trace) for run, T in zip(runs, traces, strict=True)]


def _nearest_to_wanted(run: Run, T: Array, count: int, is_trace: BoolArray) -> list[Point]:
    """Points of a run whose curve has the traces T (points, traces)."""
    if not run.curve:
        return []
    last = int(np.argmax(np.prod(T, axis=1)))
    if run.is_end_only:
        return [run.curve[last]]
    end = T[last]
    chosen = [point for trial in run.trials for point in noted(trial.note).get("retained", ())]
    shares = np.arange(1, count + 1)[:, None] / count
    wanted = np.concatenate([np.array(chosen)[:, is_trace], end[None, :]]) if chosen else shares * end
    nearest = np.argmin(np.abs(T[None, :, :] - wanted[:, None]).sum(axis=2), axis=1)
    return [run.curve[i] for i in dict.fromkeys(nearest.tolist())]


def _slopes(space: Space, params: Params, point: Point, sign: float) -> list[float]:
    """∂loss/∂u along each column of the unit cube, NaN where it was not reported or the column is not continuous."""
    reported = point.gradient or {}
    return [
        sign * reported[name] * _stretch(parameter, params[name])
        if name in reported and isinstance(parameter, Float) and parameter.step is None
        else np.nan
        for name, parameter in space.parameters.items()
    ]


def _stretch(parameter: Float, value: float) -> float:
    """dv/du of the encoding."""
    span = log(parameter.high / parameter.low) if parameter.log else parameter.high - parameter.low
    return value * span if parameter.log else span
