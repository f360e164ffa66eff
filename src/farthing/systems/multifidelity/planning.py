"""From a history to the next evaluation: model, candidates, value of information per cost."""

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from farthing.acquisition.expected_improvement import expected_improvement
from farthing.acquisition.knowledge_gradient import KnowledgeGradient, antithetic_normals
from farthing.costs import Remaining
from farthing.models.gp import GP
from farthing.models.linalg import Array
from farthing.systems.multifidelity.basket import continuing_saves, paused, reached, starts_at
from farthing.systems.multifidelity.candidates import NEW, Candidates, at_levels, crossed, simulated
from farthing.systems.multifidelity.curve_model import CurveModel, fit_curves
from farthing.systems.multifidelity.form import measured_form
from farthing.systems.multifidelity.levels import Fidelities
from farthing.systems.multifidelity.run_cost import RunCost, WorkAsCost, run_cost
from farthing.systems.multifidelity.runs import Run, runs_of
from farthing.systems.randomness import Randomness
from farthing.systems.strategy import Recommendation
from farthing.trials import History, Prediction, Suggestion

if TYPE_CHECKING:
    from farthing.systems.multifidelity.takg import TraceKG

DRAWN = 400
SCREENED = 50
PAIRS = 16


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything that a choice depends on."""

    strategy: "TraceKG"
    history: History
    runs: list[Run]
    fidelities: Fidelities
    model: CurveModel
    cost: RunCost
    rng: Randomness
    pending: Candidates
    form: str

    def choose(self, count: int, budget: Remaining) -> list[Suggestion]:
        chosen: list[Suggestion] = []
        pending, gp = self.pending, self.model.gp
        new_left = budget.trials
        limit = min(budget.cost, budget.seconds if self.history.problem.cost_unit == "seconds" else math.inf)
        for _ in range(count):
            found = self._best(gp, pending, limit, may_be_new=new_left >= 1)
            if found is None:
                break
            candidate, cost, per_cost = found
            chosen.append(self._suggestion(candidate, cost, per_cost))
            pending = pending.and_also(candidate)
            new_left -= candidate.source[0] == NEW
            limit -= cost if not isinstance(self.cost, WorkAsCost) else 0.0
        return chosen

    def _best(
        self, gp: GP, pending: Candidates, limit: float, *, may_be_new: bool
    ) -> tuple[Candidates, float, float] | None:
        gp = self._imagined(gp, pending)
        candidates = self._candidates(gp, pending, may_be_new=may_be_new)
        if len(candidates) == 0:
            return None
        cost = self.cost(candidates.X, candidates.S, candidates.begun)
        affordable = cost <= limit if not isinstance(self.cost, WorkAsCost) else np.ones(cost.size, dtype=bool)
        if not affordable.any():
            return None
        candidates, cost = candidates.picked(affordable), cost[affordable]
        per_cost = self._voi(gp, candidates) / cost
        best = int(np.argmax(per_cost))
        return candidates.picked(np.array([best])), float(cost[best]), float(per_cost[best])

    def _voi(self, gp: GP, candidates: Candidates) -> Array:
        seen = simulated(candidates, self.fidelities, retain=self.strategy.retain, zero_avoiding=self.form == "taKG0")
        bought = seen.rows.shape[1] - seen.free
        normals = antithetic_normals(PAIRS, seen.free, bought, rng=self.rng.at("normals", len(self.history)))
        voi = KnowledgeGradient((gp,), self.at_full(self.seen_params), normals, seen.free)
        return voi(seen.rows, seen.own, noise=seen.noise)

    def _imagined(self, gp: GP, pending: Candidates) -> GP:
        if len(pending) == 0:
            return gp
        rows = simulated(pending, self.fidelities, retain=1, zero_avoiding=False).rows[:, 0]
        return gp.believing(rows)

    def _candidates(self, gp: GP, pending: Candidates, *, may_be_new: bool) -> Candidates:
        grid = self.fidelities.grid(self.strategy.floor or 0.0)
        saves = continuing_saves(self.history)
        taken = set(pending.source.tolist())
        waiting = [i for i in paused(self.runs, self.fidelities) if i not in taken]
        parts = []
        for i in waiting:
            run = self.runs[i]
            x = self.encoder.encode([run.params])[0]
            levels = self.fidelities.further(grid, reached(run, self.fidelities))
            parts.append(at_levels(x, levels, begun=starts_at(run, self.fidelities, is_saving=saves), source=i))
        if may_be_new:
            drawn = self.encoder.from_unit(
                self.rng.at("candidates", len(self.history), len(pending)).random((DRAWN, self.encoder.dimension))
            )
            best = self._screened(gp, drawn, max(SCREENED // 2, SCREENED - len(waiting)))
            parts.append(crossed(best, grid))
        found = parts[0] if parts else crossed(np.zeros((0, self.encoder.dimension)), grid)
        for part in parts[1:]:
            found = found.and_also(part)
        return found

    def _screened(self, gp: GP, X: Array, count: int) -> Array:
        full = self.at_full(X)
        mean, variance = gp.predict(full)
        best = float(np.min(gp.mean(self.at_full(self.seen_params))))
        cost = self.cost(X, np.ones((X.shape[0], self.fidelities.count)), np.zeros((X.shape[0], self.fidelities.count)))
        score = expected_improvement(mean, variance, best) / cost
        return X[np.argsort(-score, kind="stable")[:count]]

    @property
    def encoder(self):
        return self.history.problem.space.encoder

    @property
    def seen_params(self) -> Array:
        return self.encoder.encode([run.params for run in self.runs if run.last is not None])

    def at_full(self, X: Array) -> Array:
        return np.hstack([X, np.ones((X.shape[0], self.fidelities.count))])

    def _suggestion(self, candidate: Candidates, cost: float, per_cost: float) -> Suggestion:
        i = int(candidate.source[0])
        source = None if i == NEW else self.runs[i].last
        params = self.encoder.decode(candidate.X)[0] if source is None else source.params
        fidelity = self.encoder.decode_fidelity(candidate.S)[0]
        row = np.hstack([candidate.X, candidate.S])[0]
        return Suggestion(
            params,
            fidelity,
            resume_from=None if source is None else source.number,
            predicted_cost=None if isinstance(self.cost, WorkAsCost) else Prediction(cost),
            predicted_value=self.model.predicted(row, sign=self.history.problem.sign),
            note={
                **self.model.note(),
                **self.cost.note(),
                "why": "new" if source is None else "continued",
                "form": self.form,
                "voi_per_cost": per_cost,
            },
        )


def plan(strategy: "TraceKG", history: History, starts: list[Suggestion], rng: Randomness) -> Plan | None:
    runs = runs_of(history)
    model = fit_curves(history, runs, retain=strategy.retain, fidelity_kernel=strategy.fidelity_kernel)
    if model is None:
        return None
    fidelities = Fidelities(history.problem.space)
    cost = run_cost(history, runs)
    found = Plan(
        strategy, history, runs, fidelities, model, cost, rng, in_flight(history, runs, starts, fidelities), ""
    )
    return replace(found, form=_form(strategy, found))


def _form(strategy: "TraceKG", plan: Plan) -> str:
    if strategy.zero_avoiding != "auto":
        return "taKG0" if strategy.zero_avoiding else "taKG"
    X = plan.seen_params
    ones = np.ones((X.shape[0], plan.fidelities.count))
    least = plan.cost(X, plan.fidelities.low * ones, 0 * ones) / plan.cost(X, ones, 0 * ones)
    return measured_form(plan.model.gp, plan.fidelities, float(np.median(least)), X)


def in_flight(history: History, runs: list[Run], starts: list[Suggestion], fidelities: Fidelities) -> Candidates:
    encoder = history.problem.space.encoder
    found = [
        (run.params, trial.fidelity, i) for i, run in enumerate(runs) for trial in run.trials if not trial.is_finished
    ] + [(start.params, start.fidelity, NEW) for start in starts]
    S = encoder.encode_fidelity([fidelity for _, fidelity, _ in found])
    return Candidates(
        encoder.encode([params for params, _, _ in found]), S, np.zeros_like(S), np.array([i for _, _, i in found], int)
    )


def recommended(strategy: "TraceKG", history: History) -> Recommendation | None:
    runs = runs_of(history)
    model = fit_curves(history, runs, retain=strategy.retain, fidelity_kernel=strategy.fidelity_kernel, may_refit=False)
    seen = [run for run in runs if run.last is not None]
    if model is None or not seen:
        return None
    X = history.problem.space.encoder.encode([run.params for run in seen])
    rows = np.hstack([X, np.ones((X.shape[0], len(history.problem.space.fidelities)))])
    best = int(np.argmin(model.gp.mean(rows)))
    trial = seen[best].last
    assert trial is not None
    return Recommendation(trial.params, trial, model.predicted(rows[best], sign=history.problem.sign))
