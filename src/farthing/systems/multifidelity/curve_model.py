"""The model of learning curves: a Gaussian process over params and fidelities together."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import mul

import numpy as np

from farthing.models.fidelity_kernels import DataSize, LearningCurve
from farthing.models.fitting import fit, hyperparameter_posterior
from farthing.models.gp import GP, VALUE
from farthing.models.kernels import Kernel, Matern52
from farthing.models.linalg import Array, IntArray
from farthing.models.transforms import Standardise
from farthing.systems.modelling import kernel_over
from farthing.systems.multifidelity.levels import Fidelities
from farthing.systems.multifidelity.loss_scale import LossScale, loss_scale
from farthing.systems.multifidelity.runs import Point, Run
from farthing.systems.surrogate import last_fit
from farthing.trials import History, Json, Prediction

GROWTH_BEFORE_REFIT = 1.12


@dataclass(frozen=True, eq=False)
class CurveModel:
    """A process over rows (x, s), the scales of the losses it sees, and what to remember of its fit."""

    gp: GP
    scale: LossScale
    standard: Standardise
    theta: Array
    fitted_on: int

    def predicted(self, row: Array, *, sign: float) -> Prediction:
        """The value at one row (x, s), in the user's units."""
        mean, variance = self.gp.predict(row[None, :])
        z, deviation = self.standard.undo(mean), np.sqrt(self.standard.undo_variance(variance))
        return Prediction(sign * float(self.scale.undo(z)[0]), float((deviation * self.scale.slope(z))[0]))

    def note(self) -> dict[str, Json]:
        return {"theta": [float(value) for value in self.theta], "fitted_on": self.fitted_on}


def curve_kernel(history: History, *, fidelity_kernel: str) -> Kernel:
    """The kernel over x times one for each fidelity: a learning curve for traces, a data size for others, or Matérn."""
    space = history.problem.space
    d = space.encoder.dimension
    parts = [
        Matern52((d + j,)) if fidelity_kernel == "matern" else LearningCurve(d + j) if trace else DataSize(d + j)
        for j, trace in enumerate(Fidelities(space).is_trace)
    ]
    return reduce(mul, parts, kernel_over(space.encoder))


def fit_curves(
    history: History, runs: Sequence[Run], *, retain: int, fidelity_kernel: str, may_refit: bool = True
) -> CurveModel | None:
    """The model of a history's curves; None where no value is known.

    The last fit noted is kept until there are 12 % more finished trials, or as long as there is one unless `may_refit`.
    """
    Z, loss, along = rows_of(history, runs, retain=retain)
    if loss.size == 0:
        return None
    scale = loss_scale(loss)
    seen = scale.apply(loss)
    standard = Standardise.of(seen)
    kernel = curve_kernel(history, fidelity_kernel=fidelity_kernel)
    posterior = hyperparameter_posterior(kernel, Z, standard.apply(seen), along=along)
    theta, fitted_on = last_fit(history, "theta", size=len(posterior.parameters))
    count = sum(trial.is_finished for trial in history)
    if theta is None or (may_refit and count > GROWTH_BEFORE_REFIT * fitted_on):
        theta, fitted_on = fit(posterior, warm_start=theta), count
    return CurveModel(posterior.process(theta), scale, standard, theta, fitted_on)


def rows_of(history: History, runs: Sequence[Run], *, retain: int) -> tuple[Array, Array, IntArray]:
    """What enters the model: rows (x, s), their losses, and whether each is a value or a slope.

    Trials that failed stand in with the worst loss seen, at the fidelity that they were to reach.
    """
    encoder = history.problem.space.encoder
    kept = [(run, point) for run in runs for point in retained(run, retain)]
    worst = max((point.loss for run in runs for point in run.curve), default=None)
    if worst is None:
        return np.zeros((0, encoder.dimension + Fidelities(history.problem.space).count)), np.zeros(0), _values(0)
    names = history.problem.space.fidelities
    kept += [
        (run, Point({name: trial.fidelity[name] for name in names}, worst)) for run in runs for trial in run.failed
    ]
    X = encoder.encode([run.params for run, _ in kept])
    S = encoder.encode_fidelity([point.fidelity for _, point in kept])
    return np.hstack([X, S]), np.array([point.loss for _, point in kept]), _values(len(kept))


def retained(run: Run, count: int) -> list[Point]:
    """At most `count` points of a curve: its end, and those nearest to even shares of the way there."""
    if not run.curve:
        return []
    space = run.history.problem.space
    S = space.encoder.encode_fidelity([point.fidelity for point in run.curve])
    shares = np.arange(1, count + 1) / count
    trace = Fidelities(space).is_trace
    if not trace.any():
        return list(run.curve)
    progress = np.prod(S[:, trace], axis=1)
    end = int(np.argmax(progress))
    wanted = shares[:, None] * S[end, trace]
    nearest = np.argmin(np.abs(S[None, :, trace] - wanted[:, None, :]).sum(axis=2), axis=1)
    return [run.curve[i] for i in dict.fromkeys(nearest.tolist())]


def _values(n: int) -> IntArray:
    return np.full(n, VALUE, dtype=np.int64)
