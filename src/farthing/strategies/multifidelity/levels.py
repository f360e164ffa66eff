"""Levels: the amounts of each fidelity that are worth considering."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import log
from typing import TYPE_CHECKING

import numpy as np

from farthing.space import Space

if TYPE_CHECKING:
    from farthing.models.linalg import Array, BoolArray  # brings SciPy, which the first suggestions do without

RATIO = 1.65
"""Between one level and the next, about e^½; a guess, no other ratio is on record."""
MOST = {1: 10, 2: 5}
"""Levels of each fidelity, by the number of fidelities; three of each beyond two. A limit on time, not tuned."""
LEAST_STEP = 0.1
"""A run is continued by at least this share of the fidelity that it still lacks. A guess, not tuned."""


@dataclass(frozen=True)
class Fidelities:
    """The fidelities of a space as columns s = amount/high, 1 the full amount."""

    space: Space

    @cached_property
    def is_trace(self) -> BoolArray:
        return np.array([fidelity.trace for fidelity in self.space.fidelities.values()], dtype=bool)

    @property
    def count(self) -> int:
        return len(self.space.fidelities)

    @cached_property
    def low(self) -> Array:
        return np.array([fidelity.low / fidelity.high for fidelity in self.space.fidelities.values()])

    @property
    def full(self) -> tuple[float, ...]:
        """The columns s of a full training."""
        return (1.0,) * self.count

    def at_full(self, X: Array) -> Array:
        """Rows (x, 1)."""
        from farthing.acquisition.acquisition import with_columns

        return with_columns(X, *self.full)

    def rounded(self, S: Array) -> Array:
        """Amounts that can be asked for."""
        encoder = self.space.encoder
        return encoder.encode_fidelity(encoder.decode_fidelity(S))

    def grid(self, floor: float = 0.0) -> Array:
        """All combinations of levels (G, m), none of them below `floor`."""
        most = MOST.get(self.count, 3)
        axes = [_levels(low, most, floor) for low in self._first()]
        return np.unique(self.rounded(np.array(list(product(*axes)))), axis=0)

    def _first(self) -> Array:
        """The least amounts considered: a single step of training misleads."""
        steps = [
            max(fidelity.low, min(2, fidelity.high)) / fidelity.high if fidelity.integer and fidelity.trace else low
            for fidelity, low in zip(self.space.fidelities.values(), self.low, strict=True)
        ]
        return np.array(steps)

    def is_complete(self, begun: Array) -> bool:
        """Whether a run that has come so far (m,) has no way to go."""
        return bool(np.all(begun[self.is_trace] >= 1.0))

    def further(self, grid: Array, begun: Array) -> Array:
        """The levels to which a run that has come to `begun` (m,) can be continued: only traces can be."""
        trace = self.is_trace
        if self.is_complete(begun):
            return np.zeros((0, self.count))
        targets = grid.copy()
        targets[:, ~trace] = begun[~trace]
        least = begun + LEAST_STEP * (1.0 - begun)
        goes_back = np.any(targets[:, trace] < begun[trace], axis=1)
        is_step = np.any(targets[:, trace] >= least[trace] - 1e-12, axis=1) & ~goes_back
        return np.unique(targets[is_step], axis=0)


def _levels(first: float, most: int, floor: float) -> Array:
    """From `first` to 1, geometric, evenly spaced."""
    first = max(first, floor, RATIO ** -(most - 1) if most == MOST[1] else 0.0)
    steps = min(most - 1, max(0, round(log(1.0 / first) / log(RATIO))))
    return np.geomspace(first, 1.0, steps + 1) if steps else np.ones(1)
