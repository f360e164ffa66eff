"""Choosing several points at once, or one while others are pending."""

from collections.abc import Callable, Sequence

import numpy as np

from farthing.acquisition.acquisition import Acquisition
from farthing.models.gp import GP
from farthing.models.linalg import Array


def select_batch(
    gp: GP,
    count: int,
    *,
    pending: Array,
    acquisition: Callable[[Sequence[GP]], Acquisition],
    maximizer: Callable[[Acquisition], Array],
    fantasies: int = 0,
    rng: np.random.Generator | None = None,
) -> Array:
    """`count` rows (count, D), one after the other, each as if those before it and the pending ones had been observed.

    What they will return is not known: with `fantasies=0` their mean is believed, otherwise that many joint draws are
    taken from `rng` and `acquisition` gets one process for each, to average over. It should measure improvement from
    the best of each process, imagined values included; over the best real value, a promising row is chosen again.
    """
    chosen = np.zeros((0, pending.shape[1]))
    for _ in range(count):
        waiting = np.concatenate([pending, chosen])
        best = maximizer(acquisition(imagined(gp, waiting, fantasies, rng)))
        chosen = np.concatenate([chosen, best[None, :]])
    return chosen


def imagined(gp: GP, pending: Array, fantasies: int, rng: np.random.Generator | None) -> Sequence[GP]:
    """The process after its pending rows, once by posterior or several times by draws."""
    if pending.shape[0] == 0:
        return (gp,)
    if fantasies == 0 or rng is None:
        return (gp.kriging_believer(pending),)
    return gp.fantasies(pending, fantasies, rng=rng)
