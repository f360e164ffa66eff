"""The recommendation: the lowest loss that was measured along a trace, or that is predicted at full fidelity."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from farthing.acquisition.acquisition import FixedFeatures
from farthing.acquisition.maximize import Effort, maximize
from farthing.models.gp import GP
from farthing.models.linalg import Array
from farthing.strategies.multifidelity.context import Settings
from farthing.strategies.multifidelity.curve_model import CurveModel, fit_curves
from farthing.strategies.multifidelity.levels import Fidelities
from farthing.strategies.multifidelity.runs import Run, active_runs, recommendable, runs_of
from farthing.strategies.multifidelity.skill import only_trace
from farthing.strategies.shared.modelling import domain_of
from farthing.strategies.shared.strategy import Recommendation
from farthing.trials import History, Params

EFFORT = Effort(screened=256, restarts=4, rounds=4, most_calls=20)
"""A limit on time, not tuned."""


@dataclass(frozen=True, eq=False)
class LowestMean:
    """−E f(x), averaged over samples of the hyperparameters."""

    processes: Sequence[GP]

    def __call__(self, X: Array) -> Array:
        return -np.asarray(np.mean([gp.mean(X) for gp in self.processes], axis=0))

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        means, gradients = zip(*(gp.mean_with_gradient(X) for gp in self.processes), strict=True)
        return -np.mean(means, axis=0), -np.mean(gradients, axis=0)


def recommend_seen(settings: Settings, history: History) -> Recommendation | None:
    """Along a trace the configuration that measured the lowest loss last (`where_they_end`); elsewhere the lowest is
    predicted.

    A run keeps what it has reached along a trace, and one that has only begun may diverge, which no Gaussian process
    foresees. Elsewhere a measured loss may be of another problem.
    """
    found = _fitted(settings, history)
    if found is None:
        return None
    model, seen = found
    is_trace = only_trace(history) is not None
    losses = where_they_end(seen) if is_trace else expected(history, model, seen)
    return _first(history, model, seen, losses)


def where_they_end(runs: Sequence[Run]) -> Array:
    """The last loss of each run (N,), and as much more as runs that went on from there usually rose, if they did.

    Learning curves fall, and nothing is added. The mean of the first questions or folds is noise, and the best of many
    is lucky: those that were carried on for it show by how much.
    """
    ends = np.array([(run.results[-1].reach, run.results[-1].loss) for run in runs])
    rises = {reach: _rise(runs, reach) for reach in set(ends[:, 0].tolist())}
    return ends[:, 1] + [rises[reach] for reach in ends[:, 0].tolist()]


def _rise(runs: Sequence[Run], reach: float) -> float:
    """The median by which the loss of longer runs rose from there to their end; 0 where it fell, or for want of any."""
    rises = [
        run.results[-1].loss - run.path[1][place - 1]
        for run in runs
        if run.results[-1].reach > reach and (place := bisect_right(run.path[0], reach))
    ]
    return max(0.0, median(rises)) if rises else 0.0


def expected(history: History, model: CurveModel, seen: Sequence[Run]) -> Array:
    """The losses at full fidelity (N,) that the model predicts, on its scale."""
    rows = _at_full(history, [run.params for run in seen])
    return np.asarray(np.mean([gp.mean(rows) for gp in model.processes], axis=0))


def recommend_anywhere(settings: Settings, history: History) -> Recommendation | None:
    """The place in the space with the lowest predicted loss at full fidelity, as the paper recommends.

    The trial beside it is the best among those seen: a place where nothing was trained has none of its own.
    """
    found = _fitted(settings, history)
    if found is None:
        return None
    model, seen = found
    space = history.problem.space
    best = _first(history, model, seen, expected(history, model, seen))
    fidelities = Fidelities(space)
    offered = space.encoder.encode([run.params for run in seen])
    mean = FixedFeatures(LowestMean(model.processes), fidelities.full)
    x = maximize(mean, domain_of(space.encoder), rng=np.random.default_rng(0), offered=offered, effort=EFFORT).x
    row = fidelities.at_full(space.encoder.snap(x[None, :]))
    found, known = mean(np.concatenate([space.encoder.snap(x[None, :]), space.encoder.encode([best.params])]))
    if found <= known:
        return best
    [params] = space.encoder.decode(x[None, :])
    return replace(best, params=params, predicted=model.predicted(row[0], sign=history.problem.sign))


def _fitted(settings: Settings, history: History) -> tuple[CurveModel, list[Run]] | None:
    runs = active_runs(history, runs_of(history), retain=settings.retain)
    seen = recommendable(runs)
    kernel = settings.fidelity_kernel
    if not seen:
        return None
    model = fit_curves(
        history, runs, retain=settings.retain, fidelity_kernel=kernel, may_refit=False, samples=settings.samples
    )
    return None if model is None else (model, seen)


def _first(history: History, model: CurveModel, seen: list[Run], losses: Array) -> Recommendation:
    ranking = ranked(history, model, seen, losses)
    same = [run.last for run in seen if run.params == ranking[0].params and run.last is not None]
    trial = max(same, key=history.reach)
    return Recommendation(trial.params, trial, ranking[0].predicted, ranking=ranking)


def ranked(history: History, model: CurveModel, seen: Sequence[Run], losses: Array) -> tuple[Recommendation, ...]:
    """The runs by their losses (N,), each with what the model expects of it at full fidelity."""
    rows = _at_full(history, [run.params for run in seen])
    predicted = model.all_predicted(rows, sign=history.problem.sign)
    found = [
        Recommendation(run.last.params, run.last, expected)
        for run, expected in zip(seen, predicted, strict=True)
        if run.last is not None
    ]
    return tuple(found[place] for place in np.argsort(losses, kind="stable").tolist())


def _at_full(history: History, params: Sequence[Params]) -> Array:
    space = history.problem.space
    return Fidelities(space).at_full(space.encoder.encode(params))
