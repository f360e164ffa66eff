"""The default choice: a new configuration and all paused runs at geometric levels, compared by VOI per cost.

Expected improvement at full fidelity chooses the params of a new run. The value of information per cost decides which
run to continue and how far, or whether to start the new one instead.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf

import numpy as np

from farthing.acquisition.acquisition import FixedFeatures
from farthing.acquisition.expected_improvement import LogExpectedImprovement
from farthing.acquisition.knowledge_gradient import KnowledgeGradient
from farthing.models.linalg import Array, BoolArray, IntArray
from farthing.strategies.multifidelity.candidates import (
    NEW,
    Candidates,
    ChosenEvaluation,
    at_levels,
    crossed,
    distinct,
    joined,
    kinds_of_rows,
    retained_points,
    variance_of_unseen,
    with_params,
    zeroed,
)
from farthing.strategies.multifidelity.context import CurveContext
from farthing.strategies.multifidelity.levels import LEAST_STEP
from farthing.strategies.multifidelity.runs import loss_up_to
from farthing.strategies.shared.guessing import believed
from farthing.strategies.shared.modelling import domain_of
from farthing.strategies.shared.searching import EFFORTS, OFFERED, search_new, unvisited

AGAIN = 10
"""Number of the best configurations that may start again with more of a fidelity that is no trace. Not tuned."""
LONGEST_LOOK, STRIDE = 0.2, 3.0
"""A new run is trained to at most this share of the full fidelity, a paused one to at most so many times what it has,
and only if it is among the best of those that came as far, one in so many. Chosen with the rules of `finishing`."""
PAIRS = 16
"""Antithetic pairs of normals: 32 simulated outcomes of a candidate. A limit on time, not tuned."""


def choose_one_by_one(context: CurveContext, count: int, *, limit: float, new_left: float) -> list[ChosenEvaluation]:
    """Up to `count` evaluations, each as if those before it were pending: fantasies of what they return average out."""
    chosen: list[ChosenEvaluation] = []
    while len(chosen) < count:
        choice = choose_screened(context, chosen, limit=limit, may_be_new=new_left >= 1)
        if choice is None:
            break
        chosen.append(choice)
        context = context.with_also(choice.candidate)
        limit, new_left = limit - choice.cost, new_left - choice.is_new
    return chosen


def choose_screened(
    context: CurveContext, chosen: Sequence[ChosenEvaluation], *, limit: float, may_be_new: bool
) -> ChosenEvaluation | None:
    """The candidate of highest VOI per cost, of the batch with what was chosen before; None where all cost too much.

    As what was chosen is pending, VOI adds up. Costs do too, or the largest of them counts.
    """
    candidates = without_leaps(context, context.unbought(offered(context, may_be_new=may_be_new)))
    cost = context.cost(candidates.X, candidates.S, candidates.begun)
    candidates, cost = candidates.picked(cost <= limit), cost[cost <= limit]
    if cost.size == 0:
        return None
    look = Lookahead.at(context, candidates)
    voi, before = look.information(), sum(one.information for one in chosen)
    together = _batch_cost(context, chosen, cost)
    best = int(np.argmax((before + voi) / together if voi.any() else look.log_duel() - np.log(cost)))
    return ChosenEvaluation(candidates.picked(np.array([best])), float(cost[best]), float(voi[best]))


def without_leaps(context: CurveContext, candidates: Candidates) -> Candidates:
    """Candidates that train little more than is known: short looks at new configurations, and good runs some way on.

    A model that is wrong of long trainings, or of their costs, spends a third of a budget on one before it can know.
    Runs are compared at equal fidelity only along a single trace; all candidates are there where none is left.
    """
    reach, had = np.prod(candidates.S, axis=1), _had(context, candidates)
    least = _lowest_offered(candidates, reach)
    is_step = reach <= np.maximum(np.where(had == 0.0, LONGEST_LOOK, STRIDE * had), least) + 1e-9
    kept = is_step & (_is_promising(context, candidates) if context.only_trace is not None else True)
    return candidates.picked(kept) if kept.any() else candidates


def _had(context: CurveContext, candidates: Candidates) -> Array:
    """How far the run of each candidate came (N,), or the longest of a configuration that begins again; 0 if new."""
    had = np.prod(candidates.begun, axis=1)
    again = np.flatnonzero((candidates.source == NEW) & context.bought.knows(candidates.X))
    had[again] = [np.prod(context.bought.most(x)) for x in candidates.X[again]]
    return np.asarray(had)


def _lowest_offered(candidates: Candidates, reach: Array) -> Array:
    """The shortest training (N,) that is offered of the run, or the configuration, of each candidate."""
    keys = [(place, x.tobytes()) for place, x in zip(candidates.source.tolist(), candidates.X, strict=True)]
    lowest = dict.fromkeys(keys, inf)
    for key, far in zip(keys, reach.tolist(), strict=True):
        lowest[key] = min(lowest[key], far)
    return np.array([lowest[key] for key in keys])


def _is_promising(context: CurveContext, candidates: Candidates) -> BoolArray:
    """Whether each candidate (N,) is new or continues a run that is; all are where none of the runs is."""
    is_new = candidates.source == NEW
    found = _promising(context, set(candidates.source[~is_new].tolist()))
    return np.asarray(is_new | (np.isin(candidates.source, list(found)) if found else True))


def _promising(context: CurveContext, places: set[int]) -> set[int]:
    """Of these runs the ones that are among the best third of all that came as far, by their losses there."""
    runs = [run for run in context.runs if run.last is not None]
    reached = np.array([float(run.reached[0]) for run in runs])
    found = set()
    for place in places:
        run = context.runs[place]
        level = float(run.reached[0])
        others = [loss_up_to(other, level) for other, far in zip(runs, reached, strict=True) if far >= level - 1e-9]
        better = sum(loss < run.results[-1].loss for loss in others)
        if better < max(1, ceil(len(others) / STRIDE)):
            found.add(place)
    return found


def _batch_cost(context: CurveContext, chosen: Sequence[ChosenEvaluation], cost: Array) -> Array:
    """The cost of each candidate together with the ones chosen before it."""
    paid = [one.cost for one in chosen]
    return cost + sum(paid) if context.settings.batch_cost == "sum" else np.maximum(cost, max(paid, default=0.0))


def offered(context: CurveContext, *, may_be_new: bool) -> Candidates:
    """A new configuration and the paused ones, each at every level that it can reach."""
    runs = offered_runs(context)
    if not may_be_new:
        return runs
    return joined([runs, crossed(best_new(context), context.grid), *offered_again(context)])


def offered_again(context: CurveContext) -> list[Candidates]:
    """The best configurations seen, from nothing, with more of what is no trace: that cannot be continued.

    More than any run of the configuration had: equal params are one configuration.
    """
    others = ~context.fidelities.is_trace
    if not others.any():
        return []
    seen = context.seen[np.argsort(context.mean(context.seen), kind="stable")]
    nothing = np.zeros(context.fidelities.count)
    return [
        at_levels(x, context.grid[more], begun=nothing, source=NEW)
        for x in seen[distinct(seen)[:AGAIN]]
        for more in [np.any(context.grid[:, others] > context.bought.most(x)[others] + LEAST_STEP, axis=1)]
    ]


def offered_runs(context: CurveContext) -> Candidates:
    """The paused runs of the basket, each at every level that it can reach."""
    basket = context.basket
    parts = [crossed(np.zeros((0, context.encoder.dimension)), context.grid)]
    levels: dict[bytes, Array] = {}
    for place, x in zip(basket.places, context.params_of([basket.runs[place] for place in basket.places]), strict=True):
        reached = basket.runs[place].reached
        if (key := reached.tobytes()) not in levels:
            levels[key] = context.fidelities.further(context.grid, reached)
        parts.append(at_levels(x, levels[key], begun=basket.begun(place), source=place))
    return joined(parts)


def best_new(context: CurveContext) -> Array:
    """The configuration (1, d) of highest expected improvement at full fidelity, for a new run.

    VOI per cost would choose another. Short trainings at unknown places hardly ever change the recommendation, while
    those next to the best one seen do, so it would stay there. It decides well how far to train and what to continue.
    """
    encoder, domain = context.encoder, domain_of(context.encoder)
    order = np.argsort(context.mean(context.seen), kind="stable")
    gp = context.kriging_believer
    best = float(gp.mean(context.at_full(context.seen[order[:1]]))[0])
    improvement = believed(
        FixedFeatures(LogExpectedImprovement(gp, best), context.fidelities.full),
        context.history,
        results=len(context.history.done),
    )
    begun = context.encoder.encode([trial.params for trial in context.history if trial.resume_from is None])
    visited = np.concatenate([begun, context.pending.X])
    x = search_new(
        unvisited(improvement, domain, visited),
        domain,
        context.seen[order[:OFFERED]],
        visited=visited,
        rng=context.rng.at("candidates", len(context.history), len(context.pending)),
        effort=EFFORTS[context.effort],
    )
    return encoder.snap(x[None, :])


@dataclass(frozen=True, eq=False)
class Lookahead:
    """The observations of candidates, if one of the configurations seen, or the candidate itself, is recommended."""

    parts: Sequence[KnowledgeGradient]
    rows: Array
    own: Array
    along: IntArray
    noise: Array

    @classmethod
    def at(cls, context: CurveContext, candidates: Candidates) -> "Lookahead":
        S = retained_points(candidates, context.fidelities, retain=context.settings.retain)
        C = zeroed(S, context.fidelities) if context.form == "taKG0" else S[:, :0]
        along, seen = kinds_of_rows(context.observed, free=C.shape[1], points=S.shape[1])
        noise = np.concatenate([np.zeros(C.shape[:2]), variance_of_unseen(S, context.fidelities)], axis=1)
        return cls(
            parts=context.information(
                context.recommendable, free=C.shape[1], bought=seen.size - C.shape[1], pairs=PAIRS
            ),
            rows=with_params(candidates.X, np.concatenate([C, S], axis=1)[:, seen]),
            own=context.at_full(candidates.X)[:, None, :],
            along=along,
            noise=noise[:, seen],
        )

    def information(self) -> Array:
        """VOI or VOI⁰ (N,)."""
        found = [part(self.rows, self.own, along=self.along, noise=self.noise) for part in self.parts]
        return np.asarray(np.mean(found, axis=0))

    def log_duel(self) -> Array:
        """Ranks candidates whose value of information is zero."""
        found = [part.log_duel(self.rows, self.own, along=self.along, noise=self.noise) for part in self.parts]
        return np.asarray(np.mean(found, axis=0))
