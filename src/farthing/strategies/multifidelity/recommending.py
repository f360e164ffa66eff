"""The recommendation: the lowest posterior mean at full fidelity."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from farthing.acquisition.acquisition import PosteriorMean
from farthing.acquisition.fixed_features import FixedFeatures
from farthing.acquisition.maximize import Effort, maximize
from farthing.models.linalg import Array
from farthing.strategies.multifidelity.active_runs import active_runs
from farthing.strategies.multifidelity.context import Settings
from farthing.strategies.multifidelity.curve_model import CurveModel, fit_curves
from farthing.strategies.multifidelity.levels import Fidelities
from farthing.strategies.multifidelity.runs import Run, recommendable, runs_of
from farthing.strategies.shared.modelling import domain_of
from farthing.strategies.shared.strategy import Recommendation
from farthing.trials import History, Params

EFFORT = Effort(screened=256, restarts=4, rounds=4, most_calls=20)
"""A limit on time, not tuned."""


def recommend_seen(settings: Settings, history: History) -> Recommendation | None:
    """The configuration with a result whose predicted loss at full fidelity is lowest."""
    found = _fitted(settings, history)
    return None if found is None else _best_seen(history, *found)


def best_measured(history: History) -> Recommendation:
    """The run whose last value is best, however far it was trained: for where a model's predictions mislead."""
    last = [run.last for run in recommendable(runs_of(history)) if run.last is not None]
    order = sorted(last, key=lambda trial: history.loss(trial.value if trial.value is not None else np.inf))
    ranking = tuple(Recommendation(trial.params, trial) for trial in order)
    return replace(ranking[0], ranking=ranking)


def recommend_anywhere(settings: Settings, history: History) -> Recommendation | None:
    """The place in the space with the lowest predicted loss at full fidelity, as the paper recommends.

    The trial beside it is the best among those seen: a place where nothing was trained has none of its own.
    """
    found = _fitted(settings, history)
    if found is None:
        return None
    model, seen = found
    best, space = _best_seen(history, model, seen), history.problem.space
    fidelities = Fidelities(space)
    offered = space.encoder.encode([run.params for run in seen])
    mean = FixedFeatures(PosteriorMean(model.gp, sign=-1.0), fidelities.full)
    x = maximize(mean, domain_of(space.encoder), rng=np.random.default_rng(0), offered=offered, effort=EFFORT).x
    row = fidelities.at_full(space.encoder.snap(x[None, :]))
    if model.gp.mean(row)[0] >= model.gp.mean(_at_full(history, [best.params]))[0]:
        return best
    [params] = space.encoder.decode(x[None, :])
    return replace(best, params=params, predicted=model.predicted(row[0], sign=history.problem.sign))


def _fitted(settings: Settings, history: History) -> tuple[CurveModel, list[Run]] | None:
    runs = active_runs(history, runs_of(history), retain=settings.retain)
    seen = recommendable(runs)
    kernel = settings.fidelity_kernel
    model = fit_curves(history, runs, retain=settings.retain, fidelity_kernel=kernel, may_refit=False) if seen else None
    return None if model is None else (model, seen)


def _best_seen(history: History, model: CurveModel, seen: list[Run]) -> Recommendation:
    rows = _at_full(history, [run.params for run in seen])
    best = int(np.argmin(model.gp.mean(rows)))
    same = [run.last for run in seen if run.params == seen[best].params and run.last is not None]
    trial = max(same, key=history.reach)
    predicted = model.predicted(rows[best], sign=history.problem.sign)
    return Recommendation(trial.params, trial, predicted, ranking=ranked(history, model, rows, seen))


def ranked(history: History, model: CurveModel, rows: Array, seen: Sequence[Run]) -> tuple[Recommendation, ...]:
    """The runs, whose configurations at full fidelity are these rows, by what the model expects of them."""
    predicted = model.all_predicted(rows, sign=history.problem.sign)
    found = [
        Recommendation(run.last.params, run.last, expected)
        for run, expected in zip(seen, predicted, strict=True)
        if run.last is not None
    ]
    order = np.argsort(model.gp.mean(rows), kind="stable")
    return tuple(found[place] for place in order.tolist())


def _at_full(history: History, params: Sequence[Params]) -> Array:
    space = history.problem.space
    return Fidelities(space).at_full(space.encoder.encode(params))
