"""The scale on which a model sees the losses of learning curves: logarithms of errors where there are errors.

Learning curves fall by factors, so that the logarithm of an error is close to what the kernels expect. An error is a
positive loss, or what a maximised share or percentage lacks to be whole: of those it is the odds. Other losses are
compressed instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from farthing.models.linalg import Array  # brings SciPy, which the first suggestions do without

LEAST_FACTOR = 1.5
"""Positive losses that differ by less than this factor gain nothing from a logarithm. A guess, not tuned."""
LEAST_ERROR = 1e-2
"""Of the median error: smaller ones count as equal. A guess, not tuned."""


class LossScale(Protocol):
    def apply(self, loss: Array) -> Array: ...

    def undo(self, z: Array) -> Array: ...

    def slope(self, z: Array) -> Array:
        """dy/dz, by which deviations are carried back."""
        ...


@dataclass(frozen=True)
class RawLoss:
    """z = y, as in the paper."""

    def apply(self, loss: Array) -> Array:
        return loss

    def undo(self, z: Array) -> Array:
        return z

    def slope(self, z: Array) -> Array:
        return np.ones_like(z)


@dataclass(frozen=True)
class LogError:
    """z = log(y + least), for positive losses."""

    least: float

    def apply(self, loss: Array) -> Array:
        return np.asarray(np.log(np.maximum(loss, 0.0) + self.least))

    def undo(self, z: Array) -> Array:
        return np.asarray(np.maximum(np.exp(z) - self.least, 0.0))

    def slope(self, z: Array) -> Array:
        return np.asarray(np.exp(z))


@dataclass(frozen=True)
class LogOdds:
    """z = log((whole − v + least) / (v + usual)), for a share v = −y of a whole that is maximised.

    The error alone does not tell accuracies of one and ten of a thousand classes apart. `usual` is the median value:
    how much worse than usual something is matters little.
    """

    whole: float
    least: float
    usual: float

    def apply(self, loss: Array) -> Array:
        error, value = np.maximum(self.whole + loss, 0.0), np.maximum(-loss, 0.0)
        return np.asarray(np.log(error + self.least) - np.log(value + self.usual))

    def undo(self, z: Array) -> Array:
        from scipy.special import expit

        loss = self.usual * expit(z) - (self.whole + self.least) * expit(-z)
        return np.asarray(np.clip(loss, -self.whole, 0.0))

    def slope(self, z: Array) -> Array:
        from scipy.special import expit

        return np.asarray((self.usual + self.whole + self.least) * expit(z) * expit(-z))


def loss_scale(loss: Array) -> LossScale:
    """Chosen by the losses seen, all of them."""
    from farthing.strategies.shared.surrogate import Compression

    bound = lower_bound(loss)
    if bound is None:
        return Compression.of(loss)
    errors = loss - bound
    least = LEAST_ERROR * float(np.median(errors))
    is_wide = least > 0.0 and float(np.max(errors)) > LEAST_FACTOR * max(float(np.min(errors)), least)
    if not is_wide or not np.isfinite(np.log(least)):
        return Compression.of(loss)
    return LogError(least) if bound == 0.0 else LogOdds(-bound, least, least - float(np.median(loss)))


def lower_bound(loss: Array) -> float | None:
    """The lower bound of losses: 0 for positive ones; for maximised shares −1, for maximised percentages −100."""
    if loss.size == 0:
        return None
    low, high = float(np.min(loss)), float(np.max(loss))
    if low >= 0.0:
        return 0.0
    if high <= 0.0 and low >= -1.0:
        return -1.0
    if high <= 0.0 and low >= -100.0:
        return -100.0
    return None
