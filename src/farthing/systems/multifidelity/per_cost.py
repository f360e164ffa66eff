"""log(VOI/cost) of decisions: what taKG maximises (Eqs. 2.2 and 2.3), with its gradient."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from farthing.acquisition.knowledge_gradient import KnowledgeGradient
from farthing.models.linalg import Array
from farthing.systems.multifidelity.decisions import Decisions
from farthing.systems.multifidelity.run_cost import RunCost

LEAST_VALUE = 1e-30
"""What counts as no value at all: its logarithm is finite, and flat."""

BatchCost = Literal["max", "sum"]


@dataclass(frozen=True, eq=False)
class InformationPerCost:
    """E[Δ]/cost on a logarithmic scale. `parts` has one VOI for each sample of the hyperparameters.

    What members of a batch cost together is the largest of their costs, as they run side by side, or the sum.
    """

    parts: Sequence[KnowledgeGradient]
    decisions: Decisions
    cost: RunCost
    batch_cost: BatchCost = "max"

    def __call__(self, V: Array) -> Array:
        rows, own = self.decisions.rows(V)
        voi = np.mean([part(rows, own) for part in self.parts], axis=0)
        return np.asarray(np.log(np.maximum(voi, LEAST_VALUE)) - self._log_cost(V)[0])

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
        """VOI (N,) and its gradient in V."""
        rows, own = self.decisions.rows(V)
        values, rows_bar, own_bar = zip(*(part.value_and_gradient(rows, own) for part in self.parts), strict=True)
        mean = [np.mean(found, axis=0) for found in (values, rows_bar, own_bar)]
        return mean[0], self.decisions.pulled(V, mean[1], mean[2])

    def costs(self, V: Array) -> Array:
        """What each member costs, (N, members)."""
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
