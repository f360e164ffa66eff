"""The paper's choice: stochastic ascent on VOI per cost in params, fidelities and retained points (section 2.5).

The entries of the basket and new configurations climb side by side, and what has no gradient (categories, coarse grids)
hops to its neighbours. Several evaluations are chosen jointly: their decisions stand in one longer row.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, cast

import numpy as np

from farthing.acquisition.knowledge_gradient import KnowledgeGradient
from farthing.acquisition.maximize import Domain, perturbed, sobol
from farthing.models.gp import VALUE
from farthing.models.linalg import Array, BoolArray, IntArray
from farthing.strategies.multifidelity.candidates import (
    NEW,
    Candidates,
    ChosenEvaluation,
    crossed,
    joined,
    kinds_of_rows,
)
from farthing.strategies.multifidelity.context import CurveContext
from farthing.strategies.multifidelity.decisions import Decisions
from farthing.strategies.multifidelity.levels import LEAST_STEP
from farthing.strategies.multifidelity.screening import offered_runs
from farthing.strategies.shared.cost_model import CostModel
from farthing.strategies.shared.modelling import domain_of

# ------------------------------------------------------------
# VOI/cost of decisions: what taKG maximises (Eqs. 2.2 and 2.3), with its gradient.


LEAST_VALUE = 1e-30
"""Counts as no value at all: its logarithm is finite, and flat."""

STEP = 1e-5
"""Of differences that stand for derivatives of the cost."""

BatchCost = Literal["max", "sum"]


@dataclass(frozen=True, eq=False)
class InformationPerCost:
    """E[Δ]/cost, when called on a logarithmic scale. `parts` has one VOI for each sample of the hyperparameters.

    A batch costs the largest of its members' costs, because they run side by side, or the sum.
    """

    parts: Sequence[KnowledgeGradient]
    decisions: Decisions
    cost: CostModel
    batch_cost: BatchCost = "max"
    observed: IntArray = field(default_factory=lambda: np.array([VALUE]))
    """The observations of each point of S: its value, and slopes if the work reports them."""

    inner: IntArray | None = None
    """The columns along which x* of each draw is searched for; None where one of the choices is near enough."""

    def __call__(self, V: Array) -> Array:
        return np.asarray(np.log(np.maximum(self.voi(V), LEAST_VALUE)) - self._log_cost(V)[0])

    def ratio_and_gradient(self, V: Array) -> tuple[Array, Array]:
        """VOI/cost, whose stochastic gradient is unbiased (section 2.5); that of its logarithm would not be."""
        voi, voi_gradient = self.information(V)
        log_cost, cost_gradient = self._log_cost(V)
        ratio = voi * np.exp(-log_cost)
        return ratio, voi_gradient * np.exp(-log_cost)[:, None] - ratio[:, None] * cost_gradient

    def information(self, V: Array) -> tuple[Array, Array]:
        """VOI (N,) and its gradient in V, each x* held fixed by the envelope theorem (Theorem 1).

        With slopes by differences, as third derivatives of kernels are not here.
        """
        rows, own = self.decisions.rows(V)
        lowest = [self._lowest(part, rows, own) for part in self.parts]
        if self.observed.size > 1:
            return self._voi(V, lowest), self._differences(V, lowest)
        found = [part.value_and_gradient(rows, at) for part, at in zip(self.parts, lowest, strict=True)]
        values, rows_bar = (np.mean([one[i] for one in found], axis=0) for i in (0, 1))
        own_bar = np.zeros_like(own) if self.inner is not None else np.mean([one[2] for one in found], axis=0)
        return values, self.decisions.pulled(V, rows_bar, own_bar)

    def _lowest(self, part: KnowledgeGradient, rows: Array, own: Array) -> Array:
        """The points that may be recommended besides the choices: x* of every draw, or the candidate itself."""
        along, seen = self._observations
        return own if self.inner is None else part.minimisers(rows[:, seen], self.inner, along=along)

    @property
    def _observations(self) -> tuple[IntArray, IntArray]:
        """The kind of observation of each row, value or slope, and the rows, once for each of them."""
        return kinds_of_rows(self.observed, free=self.decisions.free, points=self.decisions.bought)

    def voi(self, V: Array) -> Array:
        """VOI (N,)."""
        rows, own = self.decisions.rows(V)
        return self._voi(V, [self._lowest(part, rows, own) for part in self.parts])

    def _voi(self, V: Array, lowest: Sequence[Array]) -> Array:
        rows, (along, seen) = self.decisions.rows(V)[0], self._observations
        found = [part(rows[:, seen], at, along=along) for part, at in zip(self.parts, lowest, strict=True)]
        return np.asarray(np.mean(found, axis=0))

    def _differences(self, V: Array, lowest: Sequence[Array]) -> Array:
        """All differences in one call, at the same x*, which they hold; along NaN there are none."""
        steps = STEP * np.eye(V.shape[1])
        moved = np.concatenate([V[:, None, :] + steps, V[:, None, :] - steps], axis=1).reshape(-1, V.shape[1])
        at = [np.repeat(one, 2 * V.shape[1], axis=0) for one in lowest]
        found = (self.voi(moved) if self.inner is None else self._voi(moved, at)).reshape(V.shape[0], 2, V.shape[1])
        return np.asarray((found[:, 0] - found[:, 1]) / (2.0 * STEP))

    def costs(self, V: Array) -> Array:
        """The cost of each member, (N, members)."""
        members = self.decisions.split(V).reshape(-1, self.decisions.width)
        x, s, _, begun = self.decisions.parts(members)
        return self.cost(x, s, begun).reshape(V.shape[0], -1)

    def _log_cost(self, V: Array) -> tuple[Array, Array]:
        members = self.decisions.split(V)
        x, s, rho, begun = self.decisions.parts(members.reshape(-1, self.decisions.width))
        log_cost, x_bar, s_bar = self.cost.log_cost_and_gradient(x, s, begun)
        each = np.hstack([x_bar, s_bar, np.zeros((x.shape[0], rho[0].size + begun.shape[1]))]).reshape(members.shape)
        logs = log_cost.reshape(members.shape[:2])
        whole = np.logaddexp.reduce(logs, axis=1) if self.batch_cost == "sum" else logs.max(axis=1)
        weights = np.exp(logs - whole[:, None]) if self.batch_cost == "sum" else logs >= whole[:, None]
        return whole, (each * weights[:, :, None]).reshape(V.shape)


SCREENED = 128
RESTARTS = 4
SCREENING_PAIRS, STEP_PAIRS = 8, 2
STEPS = 20
"""Effort of the search, of which the paper says nothing. Limits on time, not tuned."""
BEST_SEEN, SPREAD = 40, 64
"""Rows from which x* is searched: the best configurations seen, and points all over the space. A guess."""
STEP_SIZE, STEP_POWER = 0.1, 0.7
"""εₜ = 0.1/(1 + t)^0.7: Σ εₜ = ∞ and Σ εₜ² < ∞, as Theorem 2 asks. The two numbers are guesses."""


def choose_together(context: CurveContext, count: int, *, limit: float, new_left: float) -> list[ChosenEvaluation]:
    """`count` evaluations of highest joint VOI per cost, all of them affordable; fewer where there are fewer."""
    chosen: list[ChosenEvaluation] = []
    after = context
    while len(chosen) < count:
        found = Climb(after, 1).best(limit=limit, may_be_new=new_left >= 1)
        if found is None:
            break
        chosen.append(found)
        after = after.with_also(found.candidate)
        limit, new_left = limit - found.cost, new_left - found.is_new
    return Climb(context, len(chosen)).improved(chosen) if len(chosen) > 1 else chosen


@dataclass(frozen=True, eq=False)
class Climb:
    """A search for `members` evaluations at once."""

    context: CurveContext
    members: int

    @cached_property
    def decisions(self) -> Decisions:
        context = self.context
        return Decisions(context.fidelities, context.settings.retain, context.form == "taKG0", members=self.members)

    def objective(self, pairs: int, *, draw: int = 0, is_inner: bool = True) -> InformationPerCost:
        free, observed = self.decisions.free, self.context.observed
        bought = self.decisions.bought * observed.size
        parts = self.context.information(self.choices, free=free, bought=bought, pairs=pairs, draw=draw)
        batch_cost = cast("BatchCost", self.context.settings.batch_cost)
        inner = np.array([j for j in range(self.domain.width) if j not in self.domain.categories], dtype=np.int64)
        columns = inner if is_inner else None
        return InformationPerCost(parts, self.decisions, self.context.cost, batch_cost, observed, columns)

    @cached_property
    def choices(self) -> Array:
        """Rows at which the posterior mean may have its minimum after the evaluation (M, d)."""
        context, domain = self.context, self.domain
        seen = context.seen[np.argsort(context.mean(context.seen), kind="stable")[:BEST_SEEN]]
        rng = context.rng.at("choices", len(context.history))
        spread = domain.from_unit(sobol(domain.width, SPREAD, rng=rng))
        near = perturbed(domain, np.nan_to_num(seen[:5], nan=0.5), SPREAD // 2, rng=rng)
        return np.concatenate([seen, context.encoder.snap(np.concatenate([spread, near]))])

    @cached_property
    def domain(self) -> Domain:
        return domain_of(self.context.encoder)

    # ------------------------------------------------------------------------------------------- one or several

    def best(self, *, limit: float, may_be_new: bool) -> ChosenEvaluation | None:
        """The best of b + 1 searches: one for each entry of the basket and one for a new run (section 2.6)."""
        candidates = self.context.unbought(self._screened(may_be_new=may_be_new))
        cost = self.context.cost(candidates.X, candidates.S, candidates.begun)
        candidates = candidates.picked(cost <= limit)
        if len(candidates) == 0:
            return None
        value = self.objective(SCREENING_PAIRS, is_inner=False)(self.decisions.of(candidates))
        starts = candidates.picked(first_of_each(candidates.source, np.argsort(-value, kind="stable")))
        rows, value = self._climbed(starts)
        found = self._chosen(rows, value, starts.source[:, None], limit=limit)
        return None if found is None else replace(found[0], drops=self._dropped(starts.source, value, found[0]))

    def improved(self, chosen: Sequence[ChosenEvaluation]) -> list[ChosenEvaluation]:
        """The evaluations after a joint ascent from where they are; as they are where that would not be affordable."""
        members = joined([choice.candidate for choice in chosen])
        rows, value = self._climbed(members)
        limit = sum(choice.cost for choice in chosen)
        found = self._chosen(rows, value, members.source.reshape(1, -1), limit=limit)
        if found is None:
            return list(chosen)
        return [replace(one, drops=before.drops) for one, before in zip(found, chosen, strict=True)]

    def _dropped(self, sources: IntArray, value: Array, chosen: ChosenEvaluation) -> tuple[int, ...]:
        """The entry whose own search found the least, if a new one makes the basket too large (section 2.6)."""
        places, most = self.context.basket.places, self.context.settings.basket
        if most is None or not chosen.is_new or len(places) < most:
            return ()
        worth = dict(zip(sources.tolist(), value.tolist(), strict=True))
        least = min(places, key=lambda place: worth.get(place, -np.inf))
        return (self.context.runs[least].trials[0].number,)

    def _screened(self, *, may_be_new: bool) -> Candidates:
        """Evaluations to start from: paused runs at the levels they can reach, and new ones anywhere."""
        context, domain = self.context, self.domain
        parts = [offered_runs(context)]
        if may_be_new:
            m = context.fidelities.count
            rng = context.rng.at("screen", len(context.history), len(context.pending))
            U = sobol(domain.width + m, SCREENED, rng=rng)
            low = np.maximum(context.fidelities.low, context.floor)
            S = context.fidelities.rounded(low + U[:, domain.width :] * (1.0 - low))
            X = context.encoder.snap(domain.from_unit(U[:, : domain.width]))
            parts.append(replace(crossed(X, np.ones((1, m))), S=S))
        return joined(parts)

    def _climbed(self, starts: Candidates) -> tuple[Array, Array]:
        """The ends of searches from `starts`: decisions, and log(VOI/cost) of each."""
        decisions = self.decisions
        one = self._latent(decisions.of(starts))
        bounds = decisions.bounds(one, self._least(starts))
        lower, upper, V = (part.reshape(len(starts) // self.members, -1) for part in (*bounds, one))
        rounded = self._rounded(self._ascended(V, lower, upper))
        objective = self.objective(SCREENING_PAIRS)
        value = objective(rounded)
        return self._hopped(objective, rounded, value) if self.members == 1 else (rounded, value)

    def _chosen(self, rows: Array, value: Array, source: IntArray, *, limit: float) -> list[ChosenEvaluation] | None:
        """The evaluations of the best decision that is affordable and new."""
        value, costs = value.copy(), self.objective(SCREENING_PAIRS).costs(rows)
        value[costs.sum(axis=1) > limit * (1.0 + 1e-9)] = -np.inf
        if not (is_bought := self._has_bought(rows)).all():
            value[is_bought] = -np.inf
        best = int(np.argmax(value))
        if not np.isfinite(value[best]):
            return None
        information = float(np.exp(value[best]) * costs[best].max())
        return self._choices_of(rows[best], source[best], costs[best], information)

    def _has_bought(self, V: Array) -> BoolArray:
        """Whether a decision (N, members · width) has a member that was bought already."""
        x, s, _, _ = self.decisions.parts(V.reshape(-1, self.decisions.width))
        return np.asarray(self.context.bought.has(x, s).reshape(-1, self.members).any(axis=1))

    def _ascended(self, V: Array, lower: Array, upper: Array) -> Array:
        """After steps along fresh stochastic gradients of VOI/cost, each projected back into the box (Theorem 2).

        The samples of the hyperparameters take turns, and draws come in antithetic pairs: both leave it unbiased. Steps
        are relative to the largest gradient so far.
        """
        largest = np.full((V.shape[0], 1), LEAST_VALUE)
        for t in range(STEPS):
            objective = self.objective(STEP_PAIRS, draw=1 + t)
            objective = replace(objective, parts=[objective.parts[t % len(objective.parts)]])
            _, gradient = objective.ratio_and_gradient(self._seen(V))
            largest = np.maximum(largest, np.abs(gradient).max(axis=1, keepdims=True))
            V = np.clip(V + STEP_SIZE / (1.0 + t) ** STEP_POWER * gradient / largest, lower, upper)
        return V

    def _hopped(self, objective: InformationPerCost, V: Array, value: Array) -> tuple[Array, Array]:
        """The best row, where it is new, to the best of its neighbours along categories and grids, while that helps."""
        V, value = V.copy(), value.copy()
        best, d = int(np.argmax(value)), self.decisions.d
        while not V[best, -self.decisions.m :].any():
            x = self.domain.neighbours(np.nan_to_num(V[best, :d], nan=0.5), *self.domain.bounds())
            if not x.size:
                break
            moved = self._rounded(np.hstack([x, np.tile(V[best, d:], (x.shape[0], 1))]))
            found = objective(moved)
            if found.max() <= value[best]:
                break
            V[best], value[best] = moved[int(np.argmax(found))], found.max()
        return V, value

    # ---------------------------------------------------------------------------------------------- rows

    def _latent(self, V: Array) -> Array:
        """Rows without gaps: inactive params stand at the centre."""
        return np.nan_to_num(V, nan=0.5)

    def _seen(self, V: Array) -> Array:
        """Rows as the model sees them: inactive params are gone."""
        rows = V.reshape(-1, self.decisions.width).copy()
        rows[:, : self.decisions.d] = self.context.encoder.without_inactive(rows[:, : self.decisions.d])
        return rows.reshape(V.shape)

    def _rounded(self, V: Array) -> Array:
        """Rows that can be asked for."""
        rows, d, m = V.reshape(-1, self.decisions.width).copy(), self.decisions.d, self.decisions.m
        rows[:, :d] = self.context.encoder.snap(self.domain.rounded(rows[:, :d]))
        rows[:, d : d + m] = self.context.fidelities.rounded(rows[:, d : d + m])
        return rows.reshape(V.shape)

    def _least(self, starts: Candidates) -> Array:
        """The least fidelity of each: a minimum step for a continued run, the floor for others."""
        low = np.maximum(self.context.fidelities.low, self.context.floor)
        return np.maximum(low, starts.begun + LEAST_STEP * (1.0 - starts.begun) * (starts.begun > 0.0))

    def _choices_of(self, row: Array, source: IntArray, costs: Array, information: float) -> list[ChosenEvaluation]:
        rows = row.reshape(self.members, -1)
        x, s, _, begun = self.decisions.parts(rows)
        chosen = [
            Candidates(x[i : i + 1], s[i : i + 1], begun[i : i + 1], source[i : i + 1]) for i in range(self.members)
        ]
        retained = self.decisions.points(rows)
        return [
            ChosenEvaluation(one, cost, information, kept)
            for one, cost, kept in zip(chosen, costs.tolist(), retained, strict=True)
        ]


def first_of_each(source: IntArray, order: IntArray) -> IntArray:
    """Of candidates in an order of worth, the first of each run in the basket and the first new ones."""
    ordered = source[order]
    runs = [int(np.flatnonzero(ordered == place)[0]) for place in np.unique(ordered[ordered != NEW])]
    return np.asarray(order[[*np.flatnonzero(ordered == NEW)[:RESTARTS].tolist(), *runs]])
