"""A Gaussian process of the loss, fitted to a history and remembered in its notes."""

from dataclasses import dataclass, replace

import numpy as np

from farthing.models.fitting import HyperparameterPosterior, Standardise, fit, hyperparameter_posterior
from farthing.models.gp import GP
from farthing.models.kernels import Kernel, Parameter
from farthing.models.linalg import Array, IntArray
from farthing.trials import History, Prediction, noted

# ------------------------------------------------------------
# Chooses the observations that a Gaussian process is conditioned on if all of them would take too long.
#
# The better ones show where to search, and some of the others where not to. The number kept does not depend on the
# number of observations, so the time of a suggestion stays bounded.


MOST_ROWS = 1000
"""Up to this many observations a process is conditioned on all of them. A limit on time, not tuned."""
KEPT = 500
"""Of more it is conditioned on this many: as many as hyperparameters are fitted to (`models.fitting.MANY`)."""
KEPT_IN_HASTE = 200
"""The most rows that a suggestion of a few milliseconds is conditioned on."""


def active_rows(loss: Array, *, in_haste: bool = False) -> IntArray:
    """Rows to condition on, in their order: half of them the best, the others spread evenly over the rest's losses."""
    n, most, kept = loss.size, KEPT_IN_HASTE if in_haste else MOST_ROWS, KEPT_IN_HASTE if in_haste else KEPT
    if n <= most:
        return np.arange(n)
    order = np.argsort(loss, kind="stable")
    best, rest = order[: kept // 2], order[kept // 2 :]
    spread = rest[np.linspace(0, rest.size - 1, kept - best.size).astype(int)]
    return np.sort(np.concatenate([best, spread]))


# ------------------------------------------------------------
# A scale on which losses far worse than the median are drawn together.
#
#     z = g((y − m)/s),   g(t) = t for t ≤ 0 and log(1 + t) above,   m the median and s = m − min y
#
# How bad a bad configuration is matters little, but a few very bad ones would stretch the scale until the good ones
# all look alike. Half of the losses, the better ones, keep their proportions.


MOST = 1e12
"""Of t: losses further from the median than this, in units of s, are equally bad. For arithmetic only."""


@dataclass(frozen=True)
class Compression:
    """m, ½s and the largest z seen. Half of s, because a difference of two finite losses may not be finite."""

    median: float = 0.0
    half_unit: float = 0.5
    largest: float = 0.0

    @classmethod
    def of(cls, loss: Array) -> "Compression":
        """If half of the losses are equally good, s is the distance to the worst; if all are equal it is one."""
        if loss.size == 0:
            return cls()
        half_median, half = float(np.median(loss / 2)), loss / 2
        half_unit = half_median - float(half.min()) or float(half.max()) - half_median or 0.5
        scale = cls(2.0 * half_median, half_unit)
        return replace(scale, largest=float(scale.apply(loss.max(keepdims=True))[0]))

    def apply(self, loss: Array) -> Array:
        with np.errstate(over="ignore"):
            return _compressed((loss / 2 - self.median / 2) / self.half_unit)

    def undo(self, z: Array) -> Array:
        """Losses; none is further from the median than the worst one seen."""
        within = np.minimum(z, self.largest)
        t = np.where(within > 0.0, np.expm1(np.maximum(within, 0.0)), within)
        return np.asarray(self.median + 2.0 * (t * self.half_unit))

    def slope(self, z: Array) -> Array:
        """dy/dz, by which deviations are carried back."""
        return np.asarray(2.0 * (self.half_unit * np.exp(np.clip(z, 0.0, self.largest))))


def _compressed(t: Array) -> Array:
    return np.asarray(np.where(t > 0.0, np.log1p(np.clip(t, 0.0, MOST)), t))


GROWTH_BEFORE_REFIT = 1.05
FRUGAL_GROWTH = 1.25
"""Hyperparameters are kept until the observations have grown by this factor; the second is for cheap suggestions.

Both are guesses, for speed; no others are on record.
"""

NOISE = Parameter("noise", median=1e-5, spread=3.0, lower=1e-6, upper=1.0)
"""A low median, because a model that takes a ripple for noise does not climb it; a wide spread, as little is known.

The median is a guess, no other is on record; the spread was chosen on a made-up noisy function, which is among the
tests.
"""

EXACT = replace(NOISE, median=NOISE.lower, upper=NOISE.lower)
"""The noise of a study that declares none: the least that keeps the covariance of close rows invertible."""

NOISY = 1e-2
"""Noise from which one search for hyperparameters starts: searches from little noise alone miss the mode with much
noise, and lengthscales shrink until every measurement is a peak of its own. Chosen on the same noisy function."""


@dataclass(frozen=True, eq=False)
class Surrogate:
    """The process, the scale of the loss it sees, and what to remember of its fit.

    With a `compression` the process models compressed losses, and `scale` standardises those.
    """

    gp: GP
    scale: Standardise
    theta: Array
    fitted_on: int
    compression: Compression | None = None

    def predicted(self, x: Array, *, sign: float) -> Prediction:
        """The value at one row, in the user's units: `sign` times the loss."""
        mean, variance = self.gp.predict(x[None, :])
        loss, deviation = self.scale.undo(mean), np.sqrt(self.scale.undo_variance(variance))
        if self.compression is not None:
            loss, deviation = self.compression.undo(loss), deviation * self.compression.slope(loss)
        return Prediction(sign * float(loss[0]), float(deviation[0]))

    def apply(self, loss: float) -> float:
        """The loss as the process sees it."""
        compressed = np.array([loss]) if self.compression is None else self.compression.apply(np.array([loss]))
        return float(self.scale.apply(compressed)[0])

    def note(self) -> dict[str, object]:
        return {"theta": [float(value) for value in self.theta], "fitted_on": self.fitted_on}


def fit_surrogate(
    X: Array,
    loss: Array,
    kernel: Kernel,
    history: History,
    *,
    compression: Compression | None = None,
    is_frugal: bool = False,
    in_haste: bool = False,
    takes_all: bool = False,
    refits: bool | None = None,
    key: str = "theta",
) -> Surrogate:
    """Fits to the rows, starting from the last fit noted in the history, or keeps that one while it is recent.

    Noted fits are of compressed losses: for other losses they only serve as a start. `refits` decides instead whether
    to fit again; what is noted must then be of losses like these. Of more rows than `active_set.MOST` only some are
    taken, and fewer `in_haste`, unless all are asked for. `key` is what the fit is noted under.
    """
    loss = loss if compression is None else compression.apply(loss)
    scale = Standardise.of(loss)
    rows = np.arange(loss.size) if takes_all else active_rows(loss, in_haste=in_haste)
    noise_prior = NOISE if history.is_noisy else EXACT
    posterior = hyperparameter_posterior(kernel, X[rows], scale.apply(loss)[rows], noise_prior=noise_prior)
    theta, fitted_on = last_fit(history, key, size=len(posterior.parameters))
    if refits is None:
        refits = compression is None or not is_recent(fitted_on, loss.size, is_frugal=is_frugal)
    if theta is None or refits:
        theta, fitted_on = fit(posterior, warm_start=_starts(posterior, theta)), int(loss.size)
    if not history.is_noisy:
        theta = np.clip(theta, posterior.priors.lower, posterior.priors.upper)  # a fit noted before it was declared
    return Surrogate(posterior.process(theta), scale, theta, fitted_on, compression)


def _starts(posterior: HyperparameterPosterior, noted: Array | None) -> Array:
    noisy = posterior.priors.mean.copy()
    noisy[-1] = np.log(NOISY)
    return np.stack([noisy] if noted is None else [noisy, noted])


def is_recent(fitted_on: int, count: int, *, is_frugal: bool) -> bool:
    """Whether a fit of `fitted_on` observations still serves for `count` of them."""
    return count <= fitted_on * (FRUGAL_GROWTH if is_frugal else GROWTH_BEFORE_REFIT)


def last_fit(history: History, key: str, *, size: int) -> tuple[Array | None, int]:
    """The hyperparameters that the latest suggestion noted under `key`, and the number of observations behind them."""
    for trial in reversed(history):
        note = noted(trial.note)
        if len(note.get(key) or ()) == size:
            return np.array(note[key], dtype=float), int(note.get("fitted_on", 0))
    return None, 0
