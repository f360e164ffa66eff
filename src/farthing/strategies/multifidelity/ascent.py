"""The paper's choice: ascent on VOI per cost in params, fidelities and retained points together (section 2.5).

Decisions are screened, the best of them climb together, and what has no gradient (categories, coarse grids) hops to
its neighbours. Several evaluations are chosen jointly: their decisions stand in one longer row.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np

from farthing.acquisition.maximize import Domain, perturbed, sobol
from farthing.models.batched_bfgs import minimize_batch
from farthing.models.linalg import Array, BoolArray, IntArray
from farthing.strategies.multifidelity.candidates import Candidates, ChosenEvaluation, crossed, joined
from farthing.strategies.multifidelity.context import CurveContext
from farthing.strategies.multifidelity.decisions import Decisions
from farthing.strategies.multifidelity.levels import LEAST_STEP
from farthing.strategies.multifidelity.per_cost import BatchCost, InformationPerCost
from farthing.strategies.multifidelity.screening import offered_runs
from farthing.strategies.shared.modelling import domain_of

SCREENED = 128
RESTARTS = 8
SCREENING_PAIRS, CLIMBING_PAIRS = 8, 32
MOST_CALLS = 25
FIRST_STEP = 0.1
"""Effort of the search: a suggestion takes about a tenth of a second (`benchmarks.speed takg`). Not tuned."""
BEST_SEEN, SPREAD = 40, 64
"""Rows that may be recommended afterwards: the best configurations seen, and points all over the space. A guess."""
LEAST_GAIN = 1e-6
STEPS = 50
"""Steps of the stochastic search; a limit on time, not tuned."""
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
        chosen += found
        after = after.with_also(found[0].candidate)
        limit, new_left = limit - found[0].cost, new_left - found[0].is_new
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

    def objective(self, pairs: int, *, draw: int = 0) -> InformationPerCost:
        free, observed = self.decisions.free, self.context.observed
        bought = self.decisions.bought * observed.size
        parts = self.context.information(self.choices, free=free, bought=bought, pairs=pairs, draw=draw)
        batch_cost = cast("BatchCost", self.context.settings.batch_cost)
        return InformationPerCost(parts, self.decisions, self.context.cost, batch_cost, observed)

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

    def best(self, *, limit: float, may_be_new: bool) -> list[ChosenEvaluation] | None:
        candidates = self.context.unbought(self._screened(may_be_new=may_be_new))
        cost = self.context.cost(candidates.X, candidates.S, candidates.begun)
        candidates = candidates.picked(cost <= limit)
        if len(candidates) == 0:
            return None
        value = self.objective(SCREENING_PAIRS)(self.decisions.of(candidates))
        order = np.argsort(-value, kind="stable")[:RESTARTS]
        return self._climbed(candidates.picked(order), limit=limit)

    def improved(self, chosen: Sequence[ChosenEvaluation]) -> list[ChosenEvaluation]:
        """The evaluations after a joint ascent from where they are; as they are where that would not be affordable."""
        members = joined([choice.candidate for choice in chosen])
        return self._climbed(members, limit=sum(choice.cost for choice in chosen)) or list(chosen)

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

    def _climbed(self, starts: Candidates, *, limit: float) -> list[ChosenEvaluation] | None:
        decisions, objective = self.decisions, self.objective(CLIMBING_PAIRS)
        source = starts.source.reshape(-1, self.members)
        one = self._latent(decisions.of(starts))
        lower, upper = (bound.reshape(source.shape[0], -1) for bound in decisions.bounds(one, self._least(starts)))
        V = one.reshape(source.shape[0], -1)
        rounded = self._rounded(np.concatenate([self._ascend(objective, V, lower, upper), V]))
        value = objective(rounded)
        if self.members == 1:
            rounded, value = self._hopped(objective, rounded, value)
        costs = objective.costs(rounded)
        value[costs.sum(axis=1) > limit * (1.0 + 1e-9)] = -np.inf
        if not (is_bought := self._has_bought(rounded)).all():
            value[is_bought] = -np.inf
        best = int(np.argmax(value))
        if not np.isfinite(value[best]):
            return None
        information = float(objective.voi(rounded[best : best + 1])[0])
        return self._choices_of(rounded[best], source[best % source.shape[0]], costs[best], information)

    def _has_bought(self, V: Array) -> BoolArray:
        """Whether a decision (N, members · width) has a member that was bought already."""
        x, s, _, _ = self.decisions.parts(V.reshape(-1, self.decisions.width))
        return np.asarray(self.context.bought.has(x, s).reshape(-1, self.members).any(axis=1))

    def _ascend(self, objective: InformationPerCost, V: Array, lower: Array, upper: Array) -> Array:
        if self.context.settings.search == "stochastic":
            return self._stochastic(V, lower, upper)

        def loss(rows: Array) -> tuple[Array, Array]:
            value, gradient = objective.value_and_gradient(self._seen(rows))
            return -value, -gradient

        return minimize_batch(loss, V, lower=lower, upper=upper, most_calls=MOST_CALLS, first_step=FIRST_STEP).x

    def _stochastic(self, V: Array, lower: Array, upper: Array) -> Array:
        """Steps along fresh stochastic gradients of VOI/cost, projected back into the box."""
        scale = None
        for t in range(STEPS):
            _, gradient = self.objective(SCREENING_PAIRS, draw=1 + t).ratio_and_gradient(self._seen(V))
            scale = np.maximum(np.abs(gradient).max(axis=1, keepdims=True), 1e-12) if scale is None else scale
            V = np.clip(V + STEP_SIZE / (1.0 + t) ** STEP_POWER * gradient / scale, lower, upper)
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
            if found.max() <= value[best] + LEAST_GAIN:
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
