"""Value per cost, and how its weight cools as the budget is spent."""

from dataclasses import dataclass

import numpy as np

from farthing.acquisition.acquisition import Acquisition
from farthing.models.linalg import Array


def cooling_exponent(budget_left: float, budget_total: float) -> float:
    """γ = budget left / budget total, within [0, 1]: cheap points first, the best ones last (CArBO, Lee et al.)."""
    if budget_total <= 0.0:
        return 0.0
    return min(1.0, max(0.0, budget_left / budget_total))


@dataclass(frozen=True, eq=False)
class LogValuePerCost:
    """log(value/cost^γ) of a positive acquisition function that is given by its logarithm."""

    log_value: Acquisition
    log_cost: Acquisition
    exponent: float = 1.0

    def __call__(self, X: Array) -> Array:
        return self.log_value(X) - self.exponent * self.log_cost(X)

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        value, gradient = self.log_value.value_and_gradient(X)
        log_cost, log_cost_gradient = self.log_cost.value_and_gradient(X)
        return value - self.exponent * log_cost, gradient - self.exponent * log_cost_gradient


@dataclass(frozen=True, eq=False)
class Affordable:
    """−∞ where the expected cost is above `limit`, the other function elsewhere."""

    other: Acquisition
    log_cost: Acquisition
    limit: float

    def __call__(self, X: Array) -> Array:
        return np.where(self.log_cost(X) > np.log(self.limit), -np.inf, self.other(X))

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        value, gradient = self.other.value_and_gradient(X)
        return np.where(self.log_cost(X) > np.log(self.limit), -np.inf, value), gradient
