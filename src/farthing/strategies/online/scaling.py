"""Rewards on a fixed scale: set once, from the first observations or by the user, and never again."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from farthing.models.linalg import Array

LEAST_SHARE = 1e-3
"""A spread below this share of the values' size is none: equal first values would make the smallest change enormous."""


@dataclass(frozen=True)
class Scale:
    """z = (reward − offset)/scale, clipped to ±clip."""

    offset: float = 0.0
    scale: float = 1.0
    clip: float | None = None

    @classmethod
    def of(cls, rewards: Sequence[float], *, offset: float | None, scale: float | None, clip: float | None) -> "Scale":
        """What is not given is the mean and the deviation of these rewards; a given scale keeps an offset of zero."""
        if scale is not None:
            return cls(0.0 if offset is None else offset, scale, clip)
        r = np.array(rewards, dtype=float)
        centre = float(np.mean(r)) if offset is None else offset
        spread = float(np.sqrt(np.mean((r - centre) ** 2)))
        least = LEAST_SHARE * float(np.max(np.abs(r))) or 1.0
        return cls(centre, max(spread, least), clip)

    def apply(self, rewards: Sequence[float] | Array) -> Array:
        z = (np.asarray(rewards, dtype=float) - self.offset) / self.scale
        return z if self.clip is None else np.clip(z, -self.clip, self.clip)
