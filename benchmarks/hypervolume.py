"""The hypervolume of a front by its definition, apart from our own strategies, which it judges. Less is better."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]


def front_of(losses: Array) -> Array:
    """The rows that no other row dominates, each once, by their first column."""
    rows = np.unique(losses, axis=0)  # no row is dominated by one after it
    if losses.shape[1] == 2:
        least_before = np.minimum.accumulate(np.append(np.inf, rows[:-1, 1]))
        return np.asarray(rows[rows[:, 1] < least_before])
    kept = np.zeros((0, losses.shape[1]))
    for row in rows:
        if not np.any(np.all(kept <= row, axis=1)):
            kept = np.vstack([kept, row])
    return kept


def hypervolume(losses: Array, reference: Sequence[float] | Array) -> float:
    """The volume between the reference and the rows that are below it; one to three columns."""
    bound = np.asarray(reference, dtype=float)
    inside = losses[(losses < bound).all(axis=1)]
    if not len(inside):
        return 0.0
    if bound.size == 1:
        return float(bound[0] - inside.min())
    front = front_of(inside)
    return _area(front, bound) if bound.size == 2 else _volume(front, bound)


def _area(front: Array, reference: Array) -> float:
    above = np.concatenate([reference[1:], front[:-1, 1]])
    return float(np.sum((reference[0] - front[:, 0]) * (above - front[:, 1])))


def _volume(front: Array, reference: Array) -> float:
    """In slices along the last column, each as thick as the way to the next row."""
    rows = front[np.argsort(front[:, 2], kind="stable")]
    thickness = np.diff(np.append(rows[:, 2], reference[2]))
    slices = [i for i, thick in enumerate(thickness) if thick]
    return float(sum(thickness[i] * _area(front_of(rows[: i + 1, :2]), reference[:2]) for i in slices))
