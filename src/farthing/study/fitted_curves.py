"""The model of learning curves that a history of short runs has, where too few trials are full ones."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from farthing.errors import NoResult
from farthing.models.diagnostics import LeaveOneOut, leave_groups_out
from farthing.models.gp import GP, VALUE
from farthing.models.linalg import Array, BoolArray, IntArray
from farthing.strategies.multifidelity.active_runs import active_runs
from farthing.strategies.multifidelity.curve_model import CurveModel, fit_curves
from farthing.strategies.multifidelity.levels import Fidelities
from farthing.strategies.multifidelity.runs import Run, runs_of
from farthing.study.fitted_history import FEWEST, FittedModel, fit_history, has_enough
from farthing.trials import History, Trial

RETAINED = 4
"""Points of each curve that enter the model, as many as `TraceKG` takes."""


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
        """What the model expects of each run at full fidelity; measured losses of short runs cannot be compared."""
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


def fit_model(history: History) -> FittedModel:
    """The model of full trainings; if there are too few of them, that of learning curves.

    Raises `NoResult` where there are too few values to judge one by.
    """
    if has_enough(history) or not history.problem.space.fidelities:
        return fit_history(history)
    return fit_curve_history(history)


def fit_curve_history(history: History) -> FittedCurves:
    runs = tuple(run for run in runs_of(history) if run.last is not None)
    if len(runs) < FEWEST:
        raise NoResult(
            f"A model needs at least {FEWEST} configurations with a value, got {len(runs)} among {len(history)} "
            "trials. Run some more first."
        )
    active = active_runs(history, runs_of(history), retain=RETAINED)
    model = fit_curves(history, active, retain=RETAINED, fidelity_kernel="curves", may_refit=True)
    assert model is not None, "there are values"
    return FittedCurves(history, tuple(run for run in active if run.last is not None), model)
