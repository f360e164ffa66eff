"""log(VOI/cost) of decisions: what taKG maximises (Eqs. 2.2 and 2.3), with its gradient."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from farthing.acquisition.knowledge_gradient import KnowledgeGradient
from farthing.models.gp import VALUE
from farthing.models.linalg import Array, IntArray
from farthing.strategies.multifidelity.candidates import kinds_of_rows
from farthing.strategies.multifidelity.decisions import Decisions
from farthing.strategies.shared.cost_model import CostModel

LEAST_VALUE = 1e-30
"""Counts as no value at all: its logarithm is finite, and flat."""

STEP = 1e-5
"""Of differences that stand for derivatives of the cost."""

BatchCost = Literal["max", "sum"]


@dataclass(frozen=True, eq=False)
class InformationPerCost:
    """E[Δ]/cost on a logarithmic scale. `parts` has one VOI for each sample of the hyperparameters.

    A batch costs the largest of its members' costs, because they run side by side, or the sum.
    """

    parts: Sequence[KnowledgeGradient]
    decisions: Decisions
    cost: CostModel
    batch_cost: BatchCost = "max"
    observed: IntArray = field(default_factory=lambda: np.array([VALUE]))
    """The observations of each point of S: its value, and slopes if the work reports them."""

    def __call__(self, V: Array) -> Array:
        return np.asarray(np.log(np.maximum(self.voi(V), LEAST_VALUE)) - self._log_cost(V)[0])

    def value_and_gradient(self, V: Array) -> tuple[Array, Array]:
        voi, voi_gradient = self.information(V)
        log_cost, cost_gradient = self._log_cost(V)
        is_worth = voi > LEAST_VALUE
        slope = np.where(is_worth[:, None], voi_gradient / np.maximum(voi, LEAST_VALUE)[:, None], 0.0)
        return np.log(np.maximum(voi, LEAST_VALUE)) - log_cost, slope - cost_gradient

    def ratio_and_gradient(self, V: Array) -> tuple[Array, Array]:
        """VOI/cost itself, whose stochastic gradient is unbiased (section 2.5); that of its logarithm is not."""
        voi, voi_gradient = self.information(V)
        log_cost, cost_gradient = self._log_cost(V)
        ratio = voi * np.exp(-log_cost)
        return ratio, voi_gradient * np.exp(-log_cost)[:, None] - ratio[:, None] * cost_gradient

    def information(self, V: Array) -> tuple[Array, Array]:
        """VOI (N,) and its gradient in V; with slopes by differences, as third derivatives of kernels are not here."""
        if self.observed.size > 1:
            return self.voi(V), self._differences(V)
        rows, own = self.decisions.rows(V)
        values, rows_bar, own_bar = zip(*(part.value_and_gradient(rows, own) for part in self.parts), strict=True)
        mean = [np.mean(found, axis=0) for found in (values, rows_bar, own_bar)]
        return mean[0], self.decisions.pulled(V, mean[1], mean[2])

    def voi(self, V: Array) -> Array:
        """VOI (N,)."""
        rows, own = self.decisions.rows(V)
        along, seen = kinds_of_rows(self.observed, free=self.decisions.free, points=self.decisions.bought)
        return np.asarray(np.mean([part(rows[:, seen], own, along=along) for part in self.parts], axis=0))

    def _differences(self, V: Array) -> Array:
        """All differences in one call; along NaN there are none."""
        steps = STEP * np.eye(V.shape[1])
        moved = np.concatenate([V[:, None, :] + steps, V[:, None, :] - steps], axis=1)
        found = self.voi(moved.reshape(-1, V.shape[1])).reshape(V.shape[0], 2, V.shape[1])
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
