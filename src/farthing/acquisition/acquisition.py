"""The interface of every acquisition function, and the simplest one."""

from dataclasses import dataclass
from typing import Protocol

from farthing.models.gp import GP
from farthing.models.linalg import Array


class Acquisition(Protocol):
    """The worth of evaluating each row of X (N, D); more is better."""

    def __call__(self, X: Array) -> Array:
        """Values (N,)."""
        ...

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        """Values (N,) and gradients in X (N, D), zero along inactive and categorical columns."""
        ...


@dataclass(frozen=True, eq=False)
class PosteriorMean:
    """sign · E f(x): −1 recommends where a loss is lowest; +1 of a log cost is what a point is expected to cost."""

    gp: GP
    sign: float = 1.0

    def __call__(self, X: Array) -> Array:
        return self.sign * self.gp.mean(X)

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        mean, gradient = self.gp.mean_with_gradient(X)
        return self.sign * mean, self.sign * gradient
