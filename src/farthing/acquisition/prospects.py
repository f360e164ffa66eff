"""What further evaluations may gain: draws of the posterior say where they would be made, and what they would find.

    gain_k = f(x*) − min(f(x*), f(x_1), …, f(x_k)),    x_t = argmin of another draw

x* is the incumbent, whose own value is drawn too, so that a lucky measurement promises no more than it is worth.
"""

import numpy as np

from farthing.models.gp import GP
from farthing.models.linalg import Array

DRAWS = 256
"""Draws of the posterior, half of them to search by and half to find out. A limit on time, not tuned."""


def draw_paths(gp: GP, rows: Array, incumbent: Array, *, rng: np.random.Generator) -> Array:
    """f at the rows (M, D) and, in the last column, at the incumbent (D,): (DRAWS, M + 1)."""
    return gp.sample(np.concatenate([rows, incumbent[None, :]]), DRAWS, rng=rng)


def least_found(paths: Array, most: int, *, rng: np.random.Generator) -> Array:
    """The least f after 0, 1, …, `most` evaluations (DRAWS/2, most + 1); after none it is the incumbent's."""
    half = paths.shape[0] // 2
    wanted, outcomes = np.argmin(paths[:half], axis=1), paths[half:]
    picks = wanted[rng.integers(half, size=(outcomes.shape[0], most))]
    found = np.take_along_axis(outcomes, picks, axis=1)
    return np.minimum.accumulate(np.concatenate([outcomes[:, -1:], found], axis=1), axis=1)
