"""The predicted cost of a configuration: declared by the user, or learnt from the costs so far.

Costs guide a search only if they differ much and their differences can be predicted. The seconds of short work
differ much because of the machine, which no model of the parameters predicts.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np

from farthing.costs.learned import LearnedCost, learn_cost
from farthing.models.diagnostics import leave_one_out
from farthing.models.gp import GP, condition
from farthing.models.linalg import Array
from farthing.strategies.shared.active_set import active_rows
from farthing.strategies.shared.modelling import Observations, kernel_over
from farthing.strategies.shared.surrogate import is_recent, last_fit
from farthing.trials import History, Json, Prediction, Problem

FEWEST_COSTS = 3
"""Number of costs before they can count. Chosen as a short design on the tuning tables of `EIPerCost`; not recorded."""
LEAST_SPREAD = 0.1
"""Deviation of log cost, about a tenth of a cost, below which preferring the cheaper gains nothing. A guess."""
LEAST_SKILL = 0.5
"""Share of the variance of log cost that a model must explain when each cost is predicted from the others.

Chosen on `fcnet/parkinsons_telemonitoring` and `hpobench-mlp/segment`, where most designs of ten pass it, and on
lognormal noise of deviation 0.3, of which one in ten passes at five to eight costs and next to none at twenty.
"""
DESIGNED = 32
"""Number of rows by which a declared cost is judged; a guess, not tuned."""
JUDGED = 256
"""Number of costs by which a model is judged if there are more. A limit on time."""
STEP = 1e-4
"""Of differences that stand for derivatives of a declared cost."""


def cost_model(history: History, seen: Observations, *, is_frugal: bool = False) -> "CostModel | None":
    """The declared cost, else a learnt one; None where costs hardly vary, or too few are known."""
    if history.problem.declared_cost is not None:
        return DeclaredCost(history.problem, seen.X)
    X, cost = _paid(seen)
    if not _vary(np.log(cost)):
        return None
    kernel = kernel_over(history.problem.space.encoder)
    warm_start, fitted_on = last_fit(history, "cost_theta", size=len(kernel.parameters) + 1)
    keeps_theta = is_recent(fitted_on, seen.count, is_frugal=is_frugal)
    return LearntCost(learn_cost(X, cost, kernel, warm_start=warm_start, keeps_theta=keeps_theta))


def _paid(seen: Observations) -> tuple[Array, Array]:
    """Rows whose cost is known, and that cost; of many, those that the loss is modelled by."""
    known = np.flatnonzero(np.isfinite(seen.cost))
    rows = known[active_rows(seen.loss[known])]
    return seen.X[rows], seen.cost[rows]


def _vary(log_cost: Array) -> bool:
    """Whether there are enough costs to see that they differ by much."""
    return log_cost.size >= FEWEST_COSTS and float(np.std(log_cost)) >= LEAST_SPREAD


def _of_few(gp: GP) -> GP:
    """The process of at most `JUDGED` of its observations: who leaves one out of each pays the cube of their number."""
    step = -(-gp.n // JUDGED)
    if step <= 1:
        return gp
    return condition(gp.kernel, gp.theta, gp.X[::step], gp.y[::step], noise=gp.noise, m=gp.m)


@dataclass(frozen=True, eq=False)
class LearntCost:
    """A learnt cost at full fidelity, as strategies use it."""

    model: LearnedCost

    @cached_property
    def steers(self) -> bool:
        """Whether the costs can be predicted, each from the others."""
        return leave_one_out(_of_few(self.model.gp)).explained >= LEAST_SKILL

    def __call__(self, X: Array) -> Array:
        return self.model(X)

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        return self.model.value_and_gradient(X)

    def predicted(self, row: Array) -> Prediction:
        _, variance = self.model.gp.predict(row[None, :])
        cost = float(self.model.cost(row[None, :])[0])
        return Prediction(cost, cost * float(np.sqrt(self.model.scale.undo_variance(variance)[0])))

    def note(self) -> dict[str, Json]:
        return {"cost_theta": [float(value) for value in self.model.theta]}


@dataclass(frozen=True, eq=False)
class DeclaredCost:
    """The user's own function, at full fidelity. Its slopes are differences: it may be any Python code.

    The user's function may be slow, so no row is asked for twice.
    """

    problem: Problem
    seen: Array
    _known: dict[bytes, float] = field(default_factory=dict, init=False, repr=False)
    """log cost of rows that were asked for."""

    @cached_property
    def steers(self) -> bool:
        """Whether it differs by much among the first rows seen, which are spread over the space."""
        return _vary(self(self.seen[:DESIGNED]))

    def __call__(self, X: Array) -> Array:
        rows = self.problem.space.encoder.snap(X)
        keys = [row.tobytes() for row in rows]
        new = {key: i for i, key in enumerate(keys) if key not in self._known}
        self._known.update(zip(new, self._log_cost(rows[list(new.values())]), strict=True))
        return np.array([self._known[key] for key in keys])

    def _log_cost(self, rows: Array) -> list[float]:
        fidelity = self.problem.space.full_fidelity
        costs = [self.problem.cost_of(params, fidelity) for params in self.problem.space.encoder.decode(rows)]
        return list(np.log(np.maximum(costs, np.finfo(float).tiny)))

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        here = self(X)
        gradient = np.zeros_like(X)
        encoder = self.problem.space.encoder
        for j in set(range(X.shape[1])) - encoder.categories.keys() - encoder.discrete.keys():
            step = np.where(X[:, j] > 0.5, -STEP, STEP)
            moved = X.copy()
            moved[:, j] += np.nan_to_num(step)
            gradient[:, j] = np.where(np.isnan(X[:, j]), 0.0, (self(moved) - here) / step)
        return here, gradient

    def predicted(self, row: Array) -> Prediction:
        return Prediction(float(np.exp(self(row[None, :])[0])))

    def note(self) -> dict[str, Json]:
        return {}


CostModel: TypeAlias = LearntCost | DeclaredCost
"""log cost as a function of encoded rows, whether it is to steer, and what to say and remember about it."""
