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

TIE = 1.0
"""Deviations of the best prediction within which another configuration is as good."""


def recommend_seen(settings: Settings, history: History) -> Recommendation | None:
    """The configuration with a result whose predicted loss at full fidelity is lowest."""
    found = _fitted(settings, history)
    return None if found is None else _best_seen(history, *found)


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
    return best_of(history, ranked(history, model, _at_full(history, [run.params for run in seen]), seen))


def best_of(history: History, ranking: Sequence[Recommendation]) -> Recommendation:
    """The first of a ranking; of the configurations that are as good within its deviation, one trained to the end.

    A prediction says by how much it may be wrong, so a near tie goes to what needs none.
    """
    trained = [one for one in _tied(history, ranking) if history.is_full(one.trial)]
    chosen = (trained or ranking)[0]
    trial = max((one.trial for one in ranking if one.params == chosen.params), key=history.reach)
    return replace(chosen, trial=trial, ranking=(chosen, *(one for one in ranking if one is not chosen)))


def _tied(history: History, ranking: Sequence[Recommendation]) -> list[Recommendation]:
    """Those of a ranking whose expected loss is within the deviation of the first one's."""
    best = ranking[0].predicted
    assert best is not None, "a model ranks by what it predicts"
    limit = history.loss(best.mean) + TIE * (best.deviation or 0.0)
    return [one for one in ranking if one.predicted is not None and history.loss(one.predicted.mean) <= limit]


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
