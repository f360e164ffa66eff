"""Which observations a Gaussian process is conditioned on where there are more than its cube can bear.

The better ones say where to go on, and some of all others say where not to. How many are kept does not depend on how
many there are, and nor does what a suggestion costs.
"""

import numpy as np

from farthing.models.linalg import Array, IntArray

MOST = 1000
"""Up to this many observations a process is conditioned on all of them."""
KEPT = 500
"""Of more it is conditioned on this many: as many as hyperparameters are fitted to."""


def active_rows(loss: Array) -> IntArray:
    """Rows to condition on, in their order: half of them the best, the others spread evenly over the rest's losses."""
    n = loss.size
    if n <= MOST:
        return np.arange(n)
    order = np.argsort(loss, kind="stable")
    best, rest = order[: KEPT // 2], order[KEPT // 2 :]
    spread = rest[np.linspace(0, rest.size - 1, KEPT - best.size).astype(int)]
    return np.sort(np.concatenate([best, spread]))
