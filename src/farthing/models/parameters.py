"""Hyperparameters: their names, weak priors, bounds, and the scale on which they are fitted."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.special import expit, logit

from farthing.errors import InvalidArgument
from farthing.models.linalg import Array


@dataclass(frozen=True)
class Parameter:
    """One hyperparameter, fitted as θ = log(value) or θ = logit(value).

    The prior is normal in θ: θ ~ N(transform(median), spread²), that is log-normal in the value. A density in the
    value itself, as GPyTorch's `LogNormalPrior(μ, σ)`, has its mode in θ at μ − σ²: give `median=exp(μ − σ²)` for it.
    """

    name: str
    median: float
    spread: float
    lower: float
    upper: float
    scale: Literal["log", "logit"] = "log"

    def __post_init__(self) -> None:
        if not self.lower <= self.median <= self.upper or self.spread <= 0:
            raise InvalidArgument(
                f"A prior needs lower <= median <= upper and a positive spread, got {self.lower}, {self.median}, "
                f"{self.upper} and {self.spread} for {self.name}. Widen the bounds or move the median."
            )

    def to_theta(self, value: float) -> float:
        return float(np.log(value) if self.scale == "log" else logit(value))

    def to_value(self, theta: float) -> float:
        return float(np.exp(theta) if self.scale == "log" else expit(theta))

    def named(self, name: str) -> "Parameter":
        return replace(self, name=name)


@dataclass(frozen=True)
class Priors:
    """The priors and bounds of a vector θ, as arrays."""

    mean: Array
    spread: Array
    lower: Array
    upper: Array

    @classmethod
    def of(cls, parameters: Sequence[Parameter]) -> "Priors":
        return cls(
            mean=np.array([p.to_theta(p.median) for p in parameters]),
            spread=np.array([p.spread for p in parameters]),
            lower=np.array([p.to_theta(p.lower) for p in parameters]),
            upper=np.array([p.to_theta(p.upper) for p in parameters]),
        )

    def log_density(self, theta: Array) -> tuple[Array, Array]:
        """Σ log N(θ; mean, spread²) without its constant, and the gradient; θ has shape (…, p)."""
        z = (theta - self.mean) / self.spread
        return -0.5 * np.sum(z * z, axis=-1), -z / self.spread
