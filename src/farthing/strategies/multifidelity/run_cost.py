"""The predicted cost of training a configuration up to a fidelity, from the start or from a paused run."""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from farthing.costs.learned import LearnedCost, learn_cost
from farthing.models.kernels import Kernel, Matern52
from farthing.models.linalg import Array, BoolArray
from farthing.strategies.multifidelity.levels import Fidelities
from farthing.strategies.multifidelity.runs import Run
from farthing.strategies.shared.modelling import kernel_over
from farthing.strategies.shared.surrogate import last_fit
from farthing.trials import History, Json, Prediction, Problem, State

LEAST_INCREMENT = 0.01
"""Of a full training: the least price, so that no ratio to the cost grows without bound. A guess, not tuned."""
GROWTH_BEFORE_REFIT = 1.12
"""As that of the model of curves."""
MOST_LOW = 0.5
"""The largest lower end of a fidelity on the logarithmic scale of the cost model, which must not shrink to a point."""
STEP = 1e-4
"""Of differences that stand for derivatives of a declared cost."""
LEAST_DECLARED = np.finfo(float).tiny
TINY = 1e-12


class RunCost(Protocol):
    """The cost of training rows X (N, d) to S (N, m), `begun` (N, m) being where each stands already, or zero."""

    def __call__(self, X: Array, S: Array, begun: Array) -> Array:
        """The price (N,): what is expected to be paid, and at least `LEAST_INCREMENT` of a full training."""
        ...

    def log_cost_and_gradient(self, X: Array, S: Array, begun: Array) -> tuple[Array, Array, Array]:
        """log cost (N,) and its gradients in X (N, d) and S (N, m)."""
        ...

    @property
    def is_in_units(self) -> bool:
        """Whether costs are in the unit of the budget."""
        ...

    def predicted(self, X: Array, S: Array, begun: Array) -> Prediction | None:
        """The expected cost of the run of one row."""
        ...

    def note(self) -> dict[str, Json]: ...


def run_cost(history: History, runs: list[Run], *, may_refit: bool = True) -> RunCost:
    """The declared cost, else a learnt one, else the amount of work itself."""
    if history.problem.declared_cost is not None:
        return DeclaredRunCost(history.problem)
    X, S, cost = costs_paid(history, runs)
    if cost.size == 0:
        return WorkAsCost()
    fidelities = Fidelities(history.problem.space)
    kernel = cost_kernel(history, fidelities)
    warm_start, fitted_on = last_fit(history, "cost_theta", size=len(kernel.parameters) + 1)
    count = history.finished
    learnt = learn_cost(
        _with_others(X, S, fidelities),
        cost / np.prod(S[:, ~fidelities.is_trace], axis=1),
        kernel,
        done=np.prod(S[:, fidelities.is_trace], axis=1),
        warm_start=warm_start,
        keeps_theta=not may_refit or count <= GROWTH_BEFORE_REFIT * fitted_on,
    )
    at_first = LearntRunCost(learnt, fidelities)
    return replace(at_first, again=paid_again(history, runs, at_first))


def paid_again(history: History, runs: list[Run], cost: "LearntRunCost") -> float:
    """The share of the fixed part that continuations have paid, from 0 to 1; all of it until one was seen."""
    paid = [
        (trial, history[trial.resume_from])
        for run in runs
        for trial in run.trials
        if trial.resume_from is not None and trial.state is State.DONE and trial.cost > 0
    ]
    if not paid:
        return 1.0
    encoder = history.problem.space.encoder
    shares = cost.fixed_paid(
        encoder.encode([trial.params for trial, _ in paid]),
        encoder.encode_fidelity([trial.fidelity for trial, _ in paid]),
        encoder.encode_fidelity([source.fidelity for _, source in paid]),
        np.array([trial.cost for trial, _ in paid]),
    )
    return float(np.median(np.clip(shares, 0.0, 1.0)))


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
    S = encoder.encode_fidelity([history.fidelity_known(trial) for trial, _ in paid])
    return X, S, np.array([total for _, total in paid])


def cost_kernel(history: History, fidelities: Fidelities) -> Kernel:
    encoder = history.problem.space.encoder
    kernel = kernel_over(encoder)
    others = int(np.sum(~fidelities.is_trace))
    return kernel * Matern52(tuple(range(encoder.dimension, encoder.dimension + others))) if others else kernel


def _with_others(X: Array, S: Array, fidelities: Fidelities) -> Array:
    """Rows as the cost model sees them: fidelities that are no traces are columns, on a logarithmic scale."""
    low = np.minimum(fidelities.low, MOST_LOW)
    return np.hstack([X, (1.0 - np.log(np.maximum(S, low)) / np.log(low))[:, ~fidelities.is_trace]])


@dataclass(frozen=True, eq=False)
class LearntRunCost:
    """t(x, s) = s₂ · (A + exp(g(x, s₂)) · s₁), with s₁ the product of traces, s₂ of other fidelities."""

    model: LearnedCost
    fidelities: Fidelities
    again: float = 1.0
    """The least share of the fixed part, A, that a continued run pays."""

    def __call__(self, X: Array, S: Array, begun: Array) -> Array:
        rate = self._rate(X, S)
        return self._others(S) * np.maximum(self._paid(rate, S, begun), self._least(rate))

    def _rate(self, X: Array, S: Array) -> Array:
        return self.model.rate(_with_others(X, S, self.fidelities))

    def _others(self, S: Array) -> Array:
        """s₂."""
        return np.asarray(np.prod(S[:, ~self.fidelities.is_trace], axis=1))

    def _paid(self, rate: Array, S: Array, begun: Array) -> Array:
        """t/s₂: A and the work for new runs; for continued ones the new work, and at least their share of A."""
        work = rate * self._new_work(S, begun)
        return np.where(_is_new(begun), self.model.fixed + work, np.maximum(work, self.again * self.model.fixed))

    def _least(self, rate: Array) -> Array:
        """The least price over s₂: a part of that of all traces."""
        return LEAST_INCREMENT * (self.model.fixed + rate)

    def _new_work(self, S: Array, begun: Array) -> Array:
        """s₁ − b₁, with b₁ = 0 for new runs."""
        trace = self.fidelities.is_trace
        before = np.where(_is_new(begun), 0.0, np.prod(begun[:, trace], axis=1))
        return np.asarray(np.prod(S[:, trace], axis=1) - before)

    def fixed_paid(self, X: Array, S: Array, begun: Array, cost: Array) -> Array:
        """The share of the fixed part that continued runs of this `cost` (N,) paid; 0 if there is no fixed part."""
        beyond_work = cost / self._others(S) - self._rate(X, S) * self._new_work(S, begun)
        return np.asarray(beyond_work / self.model.fixed if self.model.fixed > 0.0 else np.zeros_like(cost))

    def log_cost_and_gradient(self, X: Array, S: Array, begun: Array) -> tuple[Array, Array, Array]:
        """log t = log s₂ + log(t/s₂), of which only the part that is work, or the least price, depends on x."""
        trace = self.fidelities.is_trace
        log_rate, slope = self.model.log_rate_and_gradient(_with_others(X, S, self.fidelities))
        rate, least = np.exp(log_rate), self._least(np.exp(log_rate))
        work, paid = rate * self._new_work(S, begun), self._paid(rate, S, begun)
        cost = np.maximum(paid, least)
        is_work = (_is_new(begun) | (work > self.again * self.model.fixed)) & (paid > least)
        by_rate = np.where(is_work, work, np.where(paid > least, 0.0, LEAST_INCREMENT * rate)) / cost
        by_done = np.where(is_work, rate * np.prod(S[:, trace], axis=1), 0.0) / cost
        S_bar = np.zeros_like(S)
        S_bar[:, trace] = by_done[:, None] / np.maximum(S[:, trace], TINY)
        log_low = np.log(np.minimum(self.fidelities.low, MOST_LOW))[~trace]
        S_bar[:, ~trace] = (1.0 - by_rate[:, None] * slope[:, X.shape[1] :] / log_low) / S[:, ~trace]
        return np.log(self._others(S) * cost), by_rate[:, None] * slope[:, : X.shape[1]], S_bar

    def note(self) -> dict[str, Json]:
        return {"cost_theta": [float(value) for value in self.model.theta]}

    @property
    def is_in_units(self) -> bool:
        return True

    def predicted(self, X: Array, S: Array, begun: Array) -> Prediction:
        cost = float((self._others(S) * self._paid(self._rate(X, S), S, begun))[0])
        _, variance = self.model.gp.predict(_with_others(X, S, self.fidelities))
        return Prediction(cost, cost * float(np.sqrt(self.model.scale.undo_variance(variance)[0])))


def _is_new(begun: Array) -> BoolArray:
    return np.asarray(~np.any(begun > 0.0, axis=1))


@dataclass(frozen=True, eq=False)
class DeclaredRunCost:
    """The user's own function, and differences of it."""

    problem: Problem

    def __call__(self, X: Array, S: Array, begun: Array) -> Array:
        return np.maximum(self._expected(X, S, begun), LEAST_INCREMENT * self._cost(X, np.ones_like(S)))

    def _expected(self, X: Array, S: Array, begun: Array) -> Array:
        goes_on = np.any(begun > 0.0, axis=1)
        before = np.zeros(X.shape[0])
        before[goes_on] = self._cost(X[goes_on], begun[goes_on])
        return np.maximum(self._cost(X, S) - before, 0.0)

    def log_cost_and_gradient(self, X: Array, S: Array, begun: Array) -> tuple[Array, Array, Array]:
        """Slopes are differences: the function may be any Python code."""
        here = np.log(self(X, S, begun))
        encoder = self.problem.space.encoder
        numbers = set(range(X.shape[1])) - encoder.categories.keys() - encoder.discrete.keys()
        X_bar, S_bar = np.zeros_like(X), np.zeros_like(S)
        for j in numbers:
            step = np.where(X[:, j] > 0.5, -STEP, STEP)
            moved = X.copy()
            moved[:, j] += np.nan_to_num(step)
            X_bar[:, j] = np.where(np.isnan(X[:, j]), 0.0, (np.log(self(moved, S, begun)) - here) / step)
        for j, fidelity in enumerate(self.problem.space.fidelities.values()):
            back = 1.0 / fidelity.high if fidelity.integer else STEP
            moved = S.copy()
            moved[:, j] -= back
            S_bar[:, j] = (here - np.log(self(X, moved, begun))) / back
        return here, X_bar, S_bar

    @property
    def is_in_units(self) -> bool:
        return True

    def predicted(self, X: Array, S: Array, begun: Array) -> Prediction:
        return Prediction(float(self._expected(X, S, begun)[0]))

    def _cost(self, X: Array, S: Array) -> Array:
        encoder = self.problem.space.encoder
        runs = zip(encoder.decode(X), encoder.decode_fidelity(S), strict=True)
        return np.asarray(np.maximum([self.problem.cost_of(*run) for run in runs], LEAST_DECLARED), dtype=float)

    def note(self) -> dict[str, Json]:
        return {}


@dataclass(frozen=True, eq=False)
class WorkAsCost:
    """For unknown costs: the share of the full work, all fidelities multiplied."""

    def __call__(self, X: Array, S: Array, begun: Array) -> Array:
        return np.asarray(np.maximum(np.prod(S, axis=1) - np.prod(begun, axis=1), LEAST_INCREMENT))

    def log_cost_and_gradient(self, X: Array, S: Array, begun: Array) -> tuple[Array, Array, Array]:
        cost, done = self(X, S, begun), np.prod(S, axis=1)
        moves = (cost > LEAST_INCREMENT)[:, None]
        return np.log(cost), np.zeros_like(X), np.where(moves, (done / cost)[:, None] / np.maximum(S, TINY), 0.0)

    @property
    def is_in_units(self) -> bool:
        return False

    def predicted(self, X: Array, S: Array, begun: Array) -> None:
        return None

    def note(self) -> dict[str, Json]:
        return {}
