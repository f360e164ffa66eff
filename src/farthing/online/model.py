"""The time-varying model of a strategy: its kernel, what of it is given, and how the rest is learnt."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import log

import numpy as np
from scipy.special import expit

from farthing.models.drifting_posterior import NO_LEVEL, Level
from farthing.models.fidelity_kernels import FORGETTING, TimeDecay
from farthing.models.fitting import fit, hyperparameter_posterior
from farthing.models.kernels import (
    SE,
    CategoryOverlap,
    Constant,
    Covariance,
    Jet,
    Kernel,
    Matern32,
    Matern52,
    Parameter,
    Radial,
    default_lengthscale,
    zero_jet,
)
from farthing.models.linalg import Array
from farthing.trials import Json

# ------------------------------------------------------------
# A covariance between finitely many things that are told apart by their number alone.


@dataclass(frozen=True, eq=False)
class Lookup(Kernel):
    """k(i, j) = M_ij, where i and j stand in a column as numbers. It has no θ."""

    M: Array
    column: int = 0

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return ()

    @property
    def rough_columns(self) -> frozenset[int]:
        return frozenset({self.column})

    def evaluate(self, theta: Array, X: Array, Z: Array | None = None) -> Covariance:
        return LookupCovariance(self, theta, X, X if Z is None else Z)


class LookupCovariance(Covariance):
    has_slope = False

    def __init__(self, kernel: Lookup, theta: Array, X: Array, Z: Array) -> None:
        self._theta, self._X = theta, X
        i, j = (rows[..., kernel.column].astype(np.int64) for rows in (X, Z))
        self.K = np.asarray(kernel.M[i[..., :, None], j[..., None, :]])

    def theta_gradient(self, W: Array) -> Array:
        return np.zeros((*W.shape[:-2], 0))

    def input_gradient(self, W: Array) -> Array:
        return np.zeros_like(self._X)

    def jet(self) -> Jet:
        return zero_jet(self.K.shape, self._X.shape[-1])


RADIAL: dict[str, Callable[..., Radial]] = {"matern52": Matern52, "matern32": Matern32, "se": SE}
NOISE = Parameter("noise", median=5e-2, spread=2.0, lower=1e-5, upper=1e2)
"""Wide: the scale is that of few observations, and noise may be all there is to see in them."""
AMPLITUDE = Parameter("scale", median=1.0, spread=0.7, lower=1e-2, upper=1e2)
LEVEL = Parameter("level", median=0.5, spread=1.0, lower=1e-3, upper=1e2)
KNOWN_NOISE_SPREAD = 1.0
"""Of the noise about what the size of the validation set says: within a factor of seven, with 95 %."""
INDEPENDENT = 1e-2
"""The lengthscale of categories at which two of them have nothing in common: e^{−100}."""

LEAST_FORGETTING = 1e-9
"""Stands for zero in a fit, where the logit of zero is infinite."""

ZERO_MEAN = 1e-6
"""The spread of the constant mean in a fit: the values have an offset already."""


@dataclass(frozen=True, eq=False)
class ModelForm:
    """k = amplitude · k_space · (1 − ε)^{|t − t'|/2} + level · (1 − ε_ℓ)^{|t − t'|/2}; what is None is learnt.

    The level is common to all rows. Its rate is learnt with it, and is that of the rest where both are given.

    `kernel` is the name of a radial kernel, "independent", or a covariance between candidates. Rows are those of the
    space, or the index of the candidate where the kernel knows candidates only.
    """

    kernel: str | Array
    dimension: int
    categories: tuple[int, ...]
    lengthscale: tuple[float, ...] | None
    noise: float | None
    forgetting: float | None
    amplitude: float | None
    level: float | None
    noise_prior: Parameter = NOISE

    @property
    def uses_index(self) -> bool:
        return not isinstance(self.kernel, str) or self.kernel == "independent"

    @property
    def width(self) -> int:
        return 1 if self.uses_index else self.dimension

    @property
    def learns(self) -> bool:
        return None in (self.noise, self.forgetting, self.amplitude, self.level) or self._learns_lengthscale

    @property
    def has_level(self) -> bool:
        return self.level != 0.0

    @property
    def _learns_lengthscale(self) -> bool:
        return self.lengthscale is None and not self.uses_index

    def space_kernel(self) -> Kernel:
        """amplitude · k_space; what is given is held."""
        return Constant(_held(AMPLITUDE, self.amplitude)) * self._shape()

    def _decays(self) -> tuple[TimeDecay, TimeDecay]:
        """Of the function, and of the level."""
        own = None if self.forgetting is None else max(self.forgetting, LEAST_FORGETTING)
        both_given = self.forgetting is not None and self.level is not None
        prior = FORGETTING.named("level forgetting")
        return (
            TimeDecay(self.width, _held(FORGETTING, own)),
            TimeDecay(self.width, _held(prior, own if both_given else None)),
        )

    def _whole_kernel(self) -> Kernel:
        """The parameters that observations are drawn with: θ of k_space, ε, and with a level its variance and rate."""
        decay, level_decay = self._decays()
        kernel: Kernel = self.space_kernel() * decay
        return kernel + Constant(_held(LEVEL, self.level)) * level_decay if self.has_level else kernel

    def _shape(self) -> Kernel:
        if not isinstance(self.kernel, str):
            return Lookup(self.kernel)
        if self.kernel == "independent":
            return CategoryOverlap((0,), lengthscale=_held(Parameter("overlap", 1.0, 1.0, 1e-3, 1e2), INDEPENDENT))
        numbers = tuple(j for j in range(self.dimension) if j not in self.categories)
        parts: list[Kernel] = []
        if numbers:
            parts.append(self._radial(numbers))
        if self.categories:
            parts.append(CategoryOverlap(self.categories))
        return parts[0] if len(parts) == 1 else parts[0] * parts[1]

    def _radial(self, numbers: tuple[int, ...]) -> Kernel:
        """One lengthscale for all by default: the data of a window are few."""
        assert isinstance(self.kernel, str)
        prior = default_lengthscale(len(numbers))
        given = self.lengthscale
        if given is None or len(set(given)) == 1:
            return RADIAL[self.kernel](numbers, ard=False, lengthscale=_held(prior, given[0] if given else None))
        parts = [
            RADIAL[self.kernel]((j,), lengthscale=_held(prior, own)) for j, own in zip(numbers, given, strict=True)
        ]
        product: Kernel = parts[0]
        for part in parts[1:]:
            product = product * part
        return product

    def deviation(self, hyperparameters: "Hyperparameters") -> float:
        """√amplitude: how far values lie apart, before anything is seen."""
        return float(np.exp(0.5 * hyperparameters.theta[0]))

    def first(self) -> "Hyperparameters":
        """The given values, and the modes of the priors for the rest."""
        theta = np.array([parameter.to_theta(parameter.median) for parameter in self._whole_kernel().parameters])
        return self._hyperparameters(theta, noise=self.noise_prior.median if self.noise is None else self.noise)

    def knowing(self, noise: float) -> "ModelForm":
        """The same with a prior about that noise, where it is to be learnt."""
        median = _inside(noise, NOISE)
        return replace(self, noise_prior=replace(NOISE, median=median, spread=KNOWN_NOISE_SPREAD))

    def learnt(self, X: Array, rounds: Sequence[int], z: Array, *, start: "Hyperparameters") -> "Hyperparameters":
        """The highest posterior given rewards z at rows X, seen in these rounds; the search starts from `start`."""
        kernel = self._whole_kernel()
        rows = np.column_stack([X, np.asarray(rounds, dtype=float)])
        posterior = hyperparameter_posterior(
            kernel, rows, z, noise=self.noise, noise_prior=self.noise_prior, mean_spread=ZERO_MEAN
        )
        warm = self._theta_of(start, kernel) + ([] if self.noise is not None else [log(start.noise)])
        theta = fit(posterior, warm_start=np.array(warm))
        count = len(kernel.parameters)
        return self._hyperparameters(theta, noise=float(np.exp(theta[count])) if self.noise is None else self.noise)

    def _theta_of(self, known: "Hyperparameters", kernel: Kernel) -> list[float]:
        values = [known.forgetting, *([known.level.variance, known.level.forgetting] if self.has_level else [])]
        own = kernel.parameters[len(known.theta) :]
        places = [parameter.to_theta(_inside(value, parameter)) for value, parameter in zip(values, own, strict=True)]
        return [*known.theta, *places]

    def _hyperparameters(self, theta: Array, *, noise: float) -> "Hyperparameters":
        count = len(self.space_kernel().parameters)
        forgetting = float(expit(theta[count])) if self.forgetting is None else self.forgetting
        level = NO_LEVEL
        if self.has_level:
            level = Level(float(np.exp(theta[count + 1])), float(expit(theta[count + 2])))
        return Hyperparameters(tuple(theta[:count].tolist()), forgetting, noise, level)


@dataclass(frozen=True)
class Hyperparameters:
    """θ of amplitude · k_space, ε, σ² and the level's variance and rate."""

    theta: tuple[float, ...]
    forgetting: float
    noise: float
    level: Level = NO_LEVEL

    def to_json(self) -> Json:
        return {
            "theta": list(self.theta),
            "forgetting": self.forgetting,
            "noise": self.noise,
            "level": [self.level.variance, self.level.forgetting],
        }

    @classmethod
    def from_json(cls, form: Json) -> "Hyperparameters":
        return cls(tuple(form["theta"]), form["forgetting"], form["noise"], Level(*form["level"]))


def _held(prior: Parameter, value: float | None) -> Parameter:
    """The parameter held at that value, or the prior itself where there is none."""
    if value is None:
        return prior
    return Parameter(prior.name, value, prior.spread, value, value, prior.scale)


def _inside(value: float, parameter: Parameter) -> float:
    return min(max(value, parameter.lower), parameter.upper)
