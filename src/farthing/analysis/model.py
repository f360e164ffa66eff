"""The model that `LogEI` would fit to a history of any strategy."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from farthing.errors import NoResult
from farthing.models.gp import GP, VALUE, LeaveOneOut, leave_groups_out, leave_one_out
from farthing.models.linalg import Array, BoolArray, IntArray, one_thread
from farthing.space.encoding import Encoder
from farthing.strategies.multifidelity.curve_model import CurveModel, model_of_curves
from farthing.strategies.multifidelity.levels import Fidelities
from farthing.strategies.multifidelity.runs import Run, runs_of
from farthing.strategies.shared.modelling import Observations, kernel_over, observe
from farthing.strategies.shared.surrogate import Compression, Surrogate, fit_surrogate
from farthing.trials import History, State, Trial

FEWEST = 5
"""Values from which a model is judged: of fewer, each is too large a part of what the others are judged by."""

REACH = 1.96
"""Standard deviations to either side of the mean that hold 95 % of a normal distribution."""


class FittedModel(ABC):
    """A model of a history, and what it is judged by: trials, their points in the space and their losses."""

    history: History

    @property
    @abstractmethod
    def trials(self) -> tuple[Trial, ...]: ...

    @property
    @abstractmethod
    def gp(self) -> GP: ...

    @property
    @abstractmethod
    def points(self) -> Array: ...

    @property
    @abstractmethod
    def loss(self) -> Array: ...

    @property
    @abstractmethod
    def is_measured(self) -> BoolArray:
        """Which rows have a value of their own; trials that failed stand in with the worst of the others."""

    @property
    @abstractmethod
    def failed(self) -> int:
        """The number of trials that count as the worst value."""

    @property
    @abstractmethod
    def best_on_the_models_scale(self) -> float: ...

    @abstractmethod
    def rows(self, X: Array) -> Array:
        """Rows of the process for configurations at full fidelity."""

    @abstractmethod
    def values(self, z: Array) -> Array:
        """The model's losses z in the units of the value."""

    @abstractmethod
    def left_out(self) -> LeaveOneOut:
        """The value of each measured row, predicted from the others, on the scale of the model."""

    @property
    def is_by_curves(self) -> bool:
        """Whether the trials are ends of runs that may be short."""
        return False

    @property
    def encoder(self) -> Encoder:
        return self.history.problem.space.encoder

    @cached_property
    def best(self) -> int:
        """The row with the best value."""
        return int(np.argmin(np.where(self.is_measured, self.loss, np.inf)))

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance at full fidelity, on the scale of the model."""
        return self.gp.predict(self.rows(X))

    def intervals(self, mean: Array, variance: Array) -> tuple[Array, Array, Array]:
        """The median of the value and the ends, low and high, of the interval that holds it with 95 %."""
        reach = REACH * np.sqrt(variance)
        ends = self.values(mean - reach), self.values(mean + reach)
        return self.values(mean), np.minimum(*ends), np.maximum(*ends)


@dataclass(frozen=True, eq=False)
class FittedHistory(FittedModel):
    """The finished trials at full fidelity, a row of observations for each, and the model that is fitted to those."""

    history: History
    ended: tuple[Trial, ...]
    seen: Observations
    surrogate: Surrogate

    @property
    def trials(self) -> tuple[Trial, ...]:
        return self.ended

    @property
    def gp(self) -> GP:
        return self.surrogate.gp

    @property
    def points(self) -> Array:
        return self.seen.X

    @property
    def loss(self) -> Array:
        return self.seen.loss

    @property
    def is_measured(self) -> BoolArray:
        return np.array([_has_value(trial) for trial in self.trials], dtype=bool)

    @property
    def failed(self) -> int:
        return int(np.sum(~self.is_measured))

    @property
    def best_on_the_models_scale(self) -> float:
        return float(self.gp.y[self.best])

    def rows(self, X: Array) -> Array:
        return X

    def values(self, z: Array) -> Array:
        loss = self.surrogate.scale.undo(z)
        compression = self.surrogate.compression
        return np.asarray(self.history.problem.sign * (loss if compression is None else compression.undo(loss)))

    def left_out(self) -> LeaveOneOut:
        every, measured = leave_one_out(self.gp), self.is_measured
        return LeaveOneOut(every.observed[measured], every.mean[measured], every.variance[measured])


def fit_history(history: History, *, fewest: int = FEWEST, takes_all: bool = True) -> FittedHistory:
    """Fits the model, to some of very many rows unless it takes all. `NoResult` if there are too few values."""
    trials = _ended_in_full(history)
    count = sum(map(_has_value, trials))
    if count < fewest:
        where = " at full fidelity" if history.problem.space.fidelities else ""
        raise NoResult(
            f"A model needs at least {fewest} trials that ended with a value{where}, got {count} among "
            f"{len(history)}. Run some more first."
        )
    seen = observe(history)
    kernel = kernel_over(history.problem.space.encoder)
    compression = Compression.of(seen.loss)
    surrogate = fit_surrogate(seen.X, seen.loss, kernel, history, compression=compression, takes_all=takes_all)
    return FittedHistory(history, trials, seen, surrogate)


def has_enough(history: History) -> bool:
    """Whether there are values enough at full fidelity."""
    return sum(map(_has_value, _ended_in_full(history))) >= FEWEST


def _ended_in_full(history: History) -> tuple[Trial, ...]:
    return tuple(trial for trial in history if trial.is_finished and history.is_full(trial))


def _has_value(trial: Trial) -> bool:
    return trial.value is not None and trial.state in (State.DONE, State.PRUNED)


# ------------------------------------------------------------
# The model of learning curves that a history of short runs has, where too few trials are full ones.


@dataclass(frozen=True, eq=False)
class FittedCurves(FittedModel):
    """Runs with a result, a row for each, and the model of their curves, which is asked for full fidelity."""

    history: History
    runs: tuple[Run, ...]
    model: CurveModel

    @property
    def is_by_curves(self) -> bool:
        return True

    @property
    def gp(self) -> GP:
        return self.model.gp

    @property
    def trials(self) -> tuple[Trial, ...]:
        """The last trial of each run."""
        return tuple(run.last for run in self.runs if run.last is not None)

    @property
    def points(self) -> Array:
        """Of each run what it began with, as the model has it: a population goes on with other params."""
        return self.encoder.encode([run.params for run in self.runs])

    @property
    def loss(self) -> Array:
        """The model's expectation of each run at full fidelity; measured losses of short runs cannot be compared."""
        return self._expected

    @cached_property
    def _expected(self) -> Array:
        return self.gp.mean(self.rows(self.points))

    @property
    def is_measured(self) -> BoolArray:
        return np.ones(len(self.trials), dtype=bool)

    @property
    def failed(self) -> int:
        return sum(len(run.failed) for run in self.runs)

    @property
    def best_on_the_models_scale(self) -> float:
        return float(self.loss[self.best])

    def rows(self, X: Array) -> Array:
        return Fidelities(self.history.problem.space).at_full(X)

    def values(self, z: Array) -> Array:
        return np.asarray(self.history.problem.sign * self.model.scale.undo(self.model.standard.undo(z)))

    def left_out(self) -> LeaveOneOut:
        """The end of each run, where it was measured, predicted from all other configurations."""
        groups = [self._rows_of(x, run.reached) for x, run in zip(self.points, self.runs, strict=True)]
        return leave_groups_out(self.gp, groups)

    def _rows_of(self, x: Array, end: Array) -> IntArray:
        """The observations of a configuration, the value nearest to that fidelity first."""
        X, S = np.split(self.gp.X, [x.size], axis=1)
        same = np.flatnonzero(np.all((x == X) | (np.isnan(X) & np.isnan(x)), axis=1))
        order = np.lexsort((np.abs(S[same] - end).sum(axis=1), self.gp.along[same] != VALUE))
        return np.asarray(same[order], dtype=np.int64)


def model_of(history: History) -> FittedModel:
    """The model of full trainings; if there are too few of them, that of learning curves which `TraceKG` chooses by.

    Raises `NoResult` where there are too few values to judge one by.
    """
    with one_thread():
        is_full = has_enough(history) or not history.problem.space.fidelities
        return fit_history(history) if is_full else fit_curve_history(history, fidelity_kernel="auto")


def quick_model_of(history: History, *, fewest: int = FEWEST) -> FittedModel:
    """The model of learning curves where there are fidelities, with the last fit that a trial noted if there is one.

    Its curves may wander: odds are made from it, and a kernel of decays alone is too sure of their ends.
    Without fidelities it is that of full trainings, of some rows where there are very many.
    """
    with one_thread():
        if history.problem.space.fidelities:
            return fit_curve_history(history, fidelity_kernel="curves", fewest=fewest, may_refit=False)
        return fit_history(history, fewest=fewest, takes_all=False)


def fit_curve_history(
    history: History, *, fidelity_kernel: str, fewest: int = FEWEST, may_refit: bool = True
) -> FittedCurves:
    count = sum(run.last is not None for run in runs_of(history))
    if count < fewest:
        raise NoResult(
            f"A model needs at least {fewest} configurations with a value, got {count} among {len(history)} "
            "trials. Run some more first."
        )
    found = model_of_curves(history, fidelity_kernel=fidelity_kernel, may_refit=may_refit)
    assert found is not None, "there are values"
    model, runs = found
    return FittedCurves(history, tuple(run for run in runs if run.last is not None), model)
