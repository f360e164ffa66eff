"""Chooses the observations that a Gaussian process is conditioned on if all of them would take too long.

The better ones show where to search, and some of the others where not to. The number kept does not depend on the number
of observations, so the time of a suggestion stays bounded.
"""

import numpy as np

from farthing.models.linalg import Array, IntArray

MOST = 1000
"""Up to this many observations a process is conditioned on all of them. A limit on time, not tuned."""
KEPT = 500
"""Of more it is conditioned on this many: as many as hyperparameters are fitted to (`models.fitting.MANY`)."""
KEPT_IN_HASTE = 200
"""Where a suggestion may take a few milliseconds only, of more than this many it is conditioned on as many."""


def active_rows(loss: Array, *, in_haste: bool = False) -> IntArray:
    """Rows to condition on, in their order: half of them the best, the others spread evenly over the rest's losses."""
    n, most, kept = loss.size, KEPT_IN_HASTE if in_haste else MOST, KEPT_IN_HASTE if in_haste else KEPT
    if n <= most:
        return np.arange(n)
    order = np.argsort(loss, kind="stable")
    best, rest = order[: kept // 2], order[kept // 2 :]
    spread = rest[np.linspace(0, rest.size - 1, kept - best.size).astype(int)]
    return np.sort(np.concatenate([best, spread]))
