"""What training a configuration so far is going to cost, from nothing or from where a paused run stands."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from farthing.costs.learned import LearnedCost, learn_cost
from farthing.models.kernels import Kernel, Matern52
from farthing.models.linalg import Array
from farthing.systems.modelling import kernel_over
from farthing.systems.multifidelity.levels import Fidelities
from farthing.systems.multifidelity.runs import Run
from farthing.systems.surrogate import last_fit
from farthing.trials import History, Json, Problem, State

LEAST_INCREMENT = 0.01
"""Of a full training: nothing is priced at less, so that no ratio to the cost grows without bound."""
GROWTH_BEFORE_REFIT = 1.12


class RunCost(Protocol):
    """The cost of training rows X (N, d) to S (N, m), `begun` (N, m) being where each stands already, or zero."""

    def __call__(self, X: Array, S: Array, begun: Array) -> Array: ...

    def note(self) -> dict[str, Json]: ...


def run_cost(history: History, runs: list[Run]) -> RunCost:
    """The declared cost, else a learnt one, else the amount of work itself."""
    if history.problem.declared_cost is not None:
        return DeclaredRunCost(history.problem)
    X, S, cost = costs_paid(history, runs)
    if cost.size == 0:
        return WorkAsCost()
    fidelities = Fidelities(history.problem.space)
    kernel = cost_kernel(history, fidelities)
    warm_start, fitted_on = last_fit(history, "cost_theta", size=len(kernel.parameters) + 1)
    count = sum(trial.is_finished for trial in history)
    learnt = learn_cost(
        _with_others(X, S, fidelities),
        cost / np.prod(S[:, ~fidelities.is_trace], axis=1),
        kernel,
        done=np.prod(S[:, fidelities.is_trace], axis=1),
        warm_start=warm_start,
        keeps_theta=count <= GROWTH_BEFORE_REFIT * fitted_on,
    )
    return LearntRunCost(learnt, fidelities)


def costs_paid(history: History, runs: list[Run]) -> tuple[Array, Array, Array]:
    """Rows of params and fidelities, and what coming there from nothing cost: sums over the trials of each run."""
    encoder = history.problem.space.encoder
    paid = []
    for run in runs:
        total = 0.0
        for trial in run.trials:
            total += trial.cost
            if trial.state is State.DONE and trial.cost > 0:
                paid.append((trial, total))
    X = encoder.encode([trial.params for trial, _ in paid])
    S = encoder.encode_fidelity([trial.fidelity for trial, _ in paid])
    return X, S, np.array([total for _, total in paid])


def cost_kernel(history: History, fidelities: Fidelities) -> Kernel:
    encoder = history.problem.space.encoder
    kernel = kernel_over(encoder)
    others = int(np.sum(~fidelities.is_trace))
    return kernel * Matern52(tuple(range(encoder.dimension, encoder.dimension + others))) if others else kernel


def _with_others(X: Array, S: Array, fidelities: Fidelities) -> Array:
    """Rows as the cost model sees them: fidelities that are no traces are columns, on a logarithmic scale."""
    low = np.minimum(fidelities.low, 0.5)
    return np.hstack([X, (1.0 - np.log(np.maximum(S, low)) / np.log(low))[:, ~fidelities.is_trace]])


@dataclass(frozen=True, eq=False)
class LearntRunCost:
    """t(x, s) = exp(g(x, s₂)) · s₂ · (c₀ + s₁)/(c₀ + 1), with s₁ the product of traces, s₂ of other fidelities."""

    model: LearnedCost
    fidelities: Fidelities

    def __call__(self, X: Array, S: Array, begun: Array) -> Array:
        trace = self.fidelities.is_trace
        rows, others = _with_others(X, S, self.fidelities), np.prod(S[:, ~trace], axis=1)
        full = others * self.model.cost(rows)
        is_new = ~np.any(begun > 0.0, axis=1)
        done, before = np.prod(S[:, trace], axis=1), np.prod(begun[:, trace], axis=1)
        cold, warm = others * self.model.cost(rows, done), others * self.model.increment(rows, before, done)
        return np.maximum(np.where(is_new, cold, warm), LEAST_INCREMENT * full)

    def note(self) -> dict[str, Json]:
        return {"cost_theta": [float(value) for value in self.model.theta]}


@dataclass(frozen=True, eq=False)
class DeclaredRunCost:
    """The user's own function, and differences of it."""

    problem: Problem

    def __call__(self, X: Array, S: Array, begun: Array) -> Array:
        params = self.problem.space.encoder.decode(X)
        full = self._cost(params, np.ones_like(S))
        before = np.where(np.any(begun > 0.0, axis=1), self._cost(params, begun), 0.0)
        return np.maximum(self._cost(params, S) - before, LEAST_INCREMENT * full)

    def _cost(self, params: list[dict[str, object]], S: Array) -> Array:
        fidelities = self.problem.space.encoder.decode_fidelity(S)
        costs = [self.problem.cost_of(*pair) for pair in zip(params, fidelities, strict=True)]
        return np.maximum(np.array(costs), np.finfo(float).tiny)

    def note(self) -> dict[str, Json]:
        return {}


@dataclass(frozen=True, eq=False)
class WorkAsCost:
    """Where no cost is known: the share of the full work, all fidelities multiplied."""

    def __call__(self, X: Array, S: Array, begun: Array) -> Array:
        return np.asarray(np.maximum(np.prod(S, axis=1) - np.prod(begun, axis=1), LEAST_INCREMENT))

    def note(self) -> dict[str, Json]:
        return {}
