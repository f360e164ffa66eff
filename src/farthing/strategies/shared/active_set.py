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


def active_rows(loss: Array) -> IntArray:
    """Rows to condition on, in their order: half of them the best, the others spread evenly over the rest's losses."""
    n = loss.size
    if n <= MOST:
        return np.arange(n)
    order = np.argsort(loss, kind="stable")
    best, rest = order[: KEPT // 2], order[KEPT // 2 :]
    spread = rest[np.linspace(0, rest.size - 1, KEPT - best.size).astype(int)]
    return np.sort(np.concatenate([best, spread]))
