"""Thins long series, so that a page of a long study is no longer than that of a short one."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
"""As the models have them, which take SciPy to import."""

Item = TypeVar("Item")


def chosen_places(count: int, most: int, *, keep: BoolArray | None = None) -> IntArray:
    """At most `most` of `count` places, in order: those to keep and the last, then an even choice of the rest."""
    if count <= most:
        return np.arange(count)
    kept = np.zeros(count, dtype=bool)
    if keep is not None:
        wanted = np.flatnonzero(keep)
        kept[wanted[-most // 2 :]] = True
    kept[-1] = True
    rest = np.flatnonzero(~kept)
    room = most - int(kept.sum())
    kept[rest[np.linspace(0, rest.size - 1, max(room, 1)).astype(int)]] = True
    return np.flatnonzero(kept)


def plain_list(numbers: Array) -> list[float | None]:
    """Numbers for JSON, which has no NaN."""
    return [number if number == number and abs(number) != np.inf else None for number in numbers.tolist()]


def thinned(items: "Sequence[Item]", most: int) -> "list[Item]":
    """At most that many of the items, evenly, the last among them."""
    return [items[int(place)] for place in chosen_places(len(items), most)]


def steady_places(count: int, most: int) -> IntArray:
    """At most `most` of `count` places, evenly, and mostly the same ones while the count grows: every 2^k-th."""
    step = 1
    while count > most * step:
        step *= 2
    return np.arange(0, count, step)
