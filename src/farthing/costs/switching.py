"""The price of a configuration of a pipeline whose first stages may have been computed before.

Stage j costs c_j, which may depend on the parameters of the stages up to it. A configuration whose first m stages are
kept pays for the others:

    price(x, m) = Σ_{j ≥ m} c_j(x)

This is the movement cost Γ of LaMBO (Eq. 6) and the cost of the last stage, which is always paid.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from farthing.models.linalg import Array, IntArray


class LogCost(Protocol):
    """log c of each row, and its gradient."""

    def __call__(self, X: Array) -> Array: ...

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]: ...


@dataclass(frozen=True)
class ConstantCost:
    """The same for all parameters."""

    amount: float

    def __call__(self, X: Array) -> Array:
        return np.full(X.shape[0], np.log(self.amount))

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        return self(X), np.zeros_like(X)


@dataclass(frozen=True, eq=False)
class StageCosts:
    """log c_j of every stage, in order."""

    stages: Sequence[LogCost]

    def costs(self, X: Array) -> Array:
        """c_j of each row, shape (n, N)."""
        return np.asarray(np.exp(np.stack([stage(X) for stage in self.stages], axis=1)))

    def price(self, X: Array, kept: IntArray) -> Array:
        """The cost of each row if its first `kept` stages are kept."""
        return np.asarray(np.sum(self._paid(kept) * self.costs(X), axis=1))

    def log_price_with_gradient(self, X: Array, kept: IntArray) -> tuple[Array, Array]:
        """∇ log Σ c_j = Σ c_j ∇ log c_j / Σ c_j, over the stages that are paid."""
        found = [stage.value_and_gradient(X) for stage in self.stages]
        paid = self._paid(kept) * np.exp(np.stack([log_cost for log_cost, _ in found], axis=1))
        price = np.sum(paid, axis=1)
        gradient = np.einsum("nj,jnd->nd", paid / price[:, None], np.stack([slope for _, slope in found]))
        return np.log(price), gradient

    def _paid(self, kept: IntArray) -> Array:
        return np.asarray(np.arange(len(self.stages)) >= kept[:, None], dtype=float)
