"""Chooses the runs, and the points of their curves, that a model is conditioned on if all would take too long.

The most promising runs keep their curves, because they are continued or recommended. Of the others some keep their ends
alone, which say where not to search. The number kept does not depend on the number of runs, so the time of a suggestion
stays bounded.
"""

from collections.abc import Sequence

import numpy as np

from farthing.models.linalg import Array
from farthing.strategies.multifidelity.runs import Run
from farthing.trials import History

MOST_POINTS = 400
"""Points of curves that a process is conditioned on, at least half of them of whole curves. A limit on time, not tuned:
a hundred runs with the default of `TraceKG`, so that shorter studies are as they would be without it."""
NEIGHBOURS = 64
"""Results at the next lower and the next higher fidelities that a run is compared with. A guess, not tuned."""


def active_runs(history: History, runs: Sequence[Run], *, retain: int, most: int = MOST_POINTS) -> list[Run]:
    """The runs to model, in their order: all if they have at most `most` points. Those in flight are among them."""
    each = retain if any(fidelity.trace for fidelity in history.problem.space.fidelities.values()) else 1
    if each * len(runs) <= most:
        return list(runs)
    order = np.argsort(shares_better(runs), kind="stable")
    whole = max(most // 2 // each, (most - len(runs)) // max(each - 1, 1))
    rest = order[whole:]
    spread = rest[np.linspace(0, rest.size - 1, min(rest.size, most - each * whole)).astype(int)]
    best, ends = set(order[:whole].tolist()), set(spread.tolist())
    return [
        run if i in best else run.at_its_end for i, run in enumerate(runs) if i in best or i in ends or run.is_running
    ]


def shares_better(runs: Sequence[Run]) -> Array:
    """The share of the results at similar fidelities that are better than the last one of each run; 1 without any.

    Losses at different fidelities are not comparable, so a short run competes with short runs, and with the results
    that longer ones had on their way.
    """
    done = [(i, result) for i, run in enumerate(runs) for result in run.results]
    level = np.array([result.reach for _, result in done])
    loss = np.array([result.loss for _, result in done])
    order = np.argsort(level, kind="stable")
    first = np.clip(np.arange(order.size) - NEIGHBOURS, 0, max(0, order.size - 2 * NEIGHBOURS - 1))
    window = first[:, None] + np.arange(min(order.size, 2 * NEIGHBOURS + 1))
    shares = np.ones(order.size)
    shares[order] = np.mean(loss[order][window] < loss[order][:, None], axis=1)
    found = np.ones(len(runs))
    for (i, _), share in zip(done, shares.tolist(), strict=True):
        found[i] = share  # the last one of a run stays
    return found
