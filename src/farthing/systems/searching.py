"""Maximises an acquisition function over a space."""

import numpy as np

from farthing.acquisition.acquisition import Acquisition
from farthing.acquisition.maximize import Domain, Effort, maximize
from farthing.acquisition.unvisited import Unvisited
from farthing.models.linalg import Array
from farthing.systems.modelling import Observations

FRUGAL = Effort(screened=256, restarts=4, rounds=4, most_calls=30)
OFFERED = 8
"""How many of the best rows seen are offered as starting points."""


def search(
    acquisition: Acquisition, domain: Domain, seen: Observations, *, rng: np.random.Generator, is_frugal: bool = False
) -> Array:
    """The best row found. Where all columns are discrete, rows that were tried or are pending are left out."""
    if all(grid is not None for grid in domain.grids):
        acquisition = Unvisited(acquisition, np.concatenate([seen.X, seen.pending]))
    best = seen.X[np.argsort(seen.loss, kind="stable")[:OFFERED]]
    return maximize(acquisition, domain, rng=rng, offered=best, effort=FRUGAL if is_frugal else None).x
