"""What every acquisition function offers, the simplest one, and averages of several."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import logsumexp, softmax

from farthing.models.gp import GP
from farthing.models.linalg import Array


class Acquisition(Protocol):
    """How much it is worth to evaluate each row of X (N, D); more is better."""

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


@dataclass(frozen=True, eq=False)
class Averaged:
    """The mean of several acquisition functions: over hyperparameter samples, or over fantasies."""

    parts: Sequence[Acquisition]

    def __call__(self, X: Array) -> Array:
        return np.asarray(np.mean([part(X) for part in self.parts], axis=0))

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        values, gradients = _stacked(self.parts, X)
        return np.mean(values, axis=0), np.mean(gradients, axis=0)


@dataclass(frozen=True, eq=False)
class LogAveraged:
    """log of the mean of several acquisition functions that are given by their logarithms."""

    parts: Sequence[Acquisition]

    def __call__(self, X: Array) -> Array:
        return self._log_mean(np.stack([part(X) for part in self.parts]))

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        values, gradients = _stacked(self.parts, X)
        return self._log_mean(values), np.einsum("sn,snd->nd", softmax(values, axis=0), gradients)

    def _log_mean(self, values: Array) -> Array:
        return np.asarray(logsumexp(values, axis=0) - np.log(len(self.parts)))


def _stacked(parts: Sequence[Acquisition], X: Array) -> tuple[Array, Array]:
    values, gradients = zip(*(part.value_and_gradient(X) for part in parts), strict=True)
    return np.stack(values), np.stack(gradients)
