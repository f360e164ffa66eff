"""Maximises an acquisition function over a space."""

from collections.abc import Callable
from math import prod

import numpy as np

from farthing.acquisition.acquisition import Acquisition, Model, Unvisited, select_batch
from farthing.acquisition.maximize import Domain, Effort, candidates, maximize
from farthing.costs import EffortLevel
from farthing.models.linalg import Array
from farthing.strategies.shared.modelling import Observations

ORDINARY = Effort(most_calls=20)
"""From the best of 512 rows, climbs of 20 calls end within 0.001 of the log EI that the longest ones reach."""
FRUGAL = Effort(screened=256, restarts=4, rounds=4, most_calls=12)
SCREEN = Effort(screened=128, restarts=2, rounds=1, most_calls=10)
"""A short climb from the two best rows: without one, regret with eight workers was half as much again on a smooth
function of four numbers (4 seeds), and no better on `TUNING_FUNCTIONS` in `benchmarks/problems/synthetic.py`."""
EFFORTS: dict[EffortLevel, Effort] = {"ordinary": ORDINARY, "frugal": FRUGAL, "screen": SCREEN, "several": SCREEN}
TOGETHER = Effort(screened=128, restarts=16, rounds=1, most_calls=10)
"""For several at once: one climb for all of them, from as many rows as leave the later ones a choice."""
SAME = 1e-4
"""Climbs that end this close to each other have found the same top. A guess, not tuned."""
OFFERED = 8
"""Number of the best rows seen that are offered as starting points; a guess, not tuned."""
FEW = 1024
"""Spaces with no more configurations than this are searched one by one. A limit on time, not tuned."""


def unvisited(acquisition: Acquisition, domain: Domain, *rows: Array) -> Acquisition:
    """Leaves out rows that were tried, are pending or were just chosen, where all columns are discrete."""
    return Unvisited(acquisition, np.concatenate(rows)) if _discrete(domain) else acquisition


def search_new(
    acquisition: Acquisition,
    domain: Domain,
    offered: Array,
    *,
    visited: Array,
    rng: np.random.Generator,
    effort: Effort = ORDINARY,
) -> Array:
    """The best row found that is none of those visited: a climb ends at a corner exactly, as one before may have."""
    x = search_from(acquisition, domain, offered, rng=rng, effort=effort)
    if not _discrete(domain) and Unvisited(acquisition, visited).has(x):
        x = search_from(Unvisited(acquisition, visited), domain, offered, rng=rng, effort=effort)
    return x


def search_batch(
    gp: Model,
    count: int,
    acquisition: Callable[[Model], Acquisition],
    *,
    domain: Domain,
    seen: Observations,
    rng: np.random.Generator,
    effort: EffortLevel = "ordinary",
    tried: Array | None = None,
) -> Array:
    """`count` rows that were not tried, each chosen as if those in flight and those before it had been observed.

    `tried` are rows that the model does not know, such as those of other fidelities.
    """
    other = seen.X[:0] if tried is None else tried
    chosen: list[Array] = []
    shortlist = seen.X[:0]

    def search_one(function: Acquisition) -> Array:
        visited = np.concatenate([seen.X, seen.pending, other, np.reshape(chosen, (-1, domain.width))])
        x = search_new(function, domain, _best(seen), visited=visited, rng=rng, effort=EFFORTS[effort])
        chosen.append(x)
        return x

    def choose_new(function: Acquisition) -> Array:
        """The highest of rows that were found for the first of them; a search for itself when they are used up."""
        nonlocal shortlist
        if not chosen:
            rows = candidates(function, domain, rng=rng, offered=_best(seen), effort=TOGETHER)
            new = Unvisited(function, np.concatenate([seen.X, seen.pending, other]))
            shortlist = rows[[not new.has(x) for x in rows]]
        if not len(shortlist):
            return search_one(function)
        best = np.asarray(shortlist[int(np.argmax(function(shortlist)))])
        shortlist = shortlist[_distance(shortlist, best) > SAME]
        chosen.append(best)
        return best

    return select_batch(
        gp,
        count,
        pending=seen.pending,
        acquisition=lambda believed: unvisited(acquisition(believed), domain, seen.X, believed.X, other),
        maximizer=choose_new if effort == "several" and count > 1 else search_one,
    )


def _best(seen: Observations) -> Array:
    """Rows to start searches from."""
    return seen.X[np.argsort(seen.loss, kind="stable")[:OFFERED]]


def _distance(rows: Array, x: Array) -> Array:
    """The greatest difference in any column; inactive ones are equal to each other."""
    return np.asarray(np.abs(np.nan_to_num(rows, nan=-1.0) - np.nan_to_num(x, nan=-1.0)).max(axis=1))


def search_from(
    acquisition: Acquisition, domain: Domain, offered: Array, *, rng: np.random.Generator, effort: Effort = ORDINARY
) -> Array:
    """The best row found from rows that are offered and elsewhere; the best there is where there are few."""
    grids = _discrete(domain)
    if grids and prod(grid.size for grid in grids) <= FEW:
        return best_of_all(acquisition, domain, grids)
    return maximize(acquisition, domain, rng=rng, offered=offered, effort=effort).x


def best_of_all(acquisition: Acquisition, domain: Domain, grids: list[Array]) -> Array:
    """The best of all rows that there are."""
    every = np.stack([axis.ravel() for axis in np.meshgrid(*grids, indexing="ij")], axis=1)
    rows = domain.snap(every)
    return np.asarray(rows[int(np.argmax(acquisition(rows)))])


def _discrete(domain: Domain) -> list[Array]:
    """The grids of all columns; none where one of the columns has no grid."""
    grids = [grid for grid in domain.grids if grid is not None]
    return grids if len(grids) == domain.width else []
