"""Choosing several points at once, or one while others are pending."""

from collections.abc import Callable

import numpy as np

from farthing.acquisition.acquisition import Acquisition
from farthing.models.gp import GP
from farthing.models.linalg import Array


def select_batch(
    gp: GP,
    count: int,
    *,
    pending: Array,
    acquisition: Callable[[GP], Acquisition],
    maximizer: Callable[[Acquisition], Array],
) -> Array:
    """`count` rows (count, D), one after the other, each as if those before it and the pending ones had been observed.

    Their results are not known: their mean stands in (kriging believer). `acquisition` should measure improvement from
    the best of the process, these means included; over the best real value, a promising row is chosen again.
    """
    chosen = np.zeros((0, pending.shape[1]))
    for _ in range(count):
        waiting = np.concatenate([pending, chosen])
        best = maximizer(acquisition(gp.kriging_believer(waiting) if waiting.shape[0] else gp))
        chosen = np.concatenate([chosen, best[None, :]])
    return chosen
