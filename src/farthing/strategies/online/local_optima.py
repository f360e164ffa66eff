"""Local optima of a function that is known at some rows of the unit cube.

The paper finds clusters by mean-shift, whose centres are no optima and may swallow the choice itself; here the optima
are taken in order and each drops the lower ones in its neighbourhood (greedy suppression).
"""

import numpy as np

from farthing.models.linalg import Array, IntArray

FAR = 1e3
"""The distance between two categories, or between an active value and an inactive one: never neighbours."""


class Neighbourhood:
    """Which rows lie next to each other, and how far apart rows are. Without a bandwidth each stands alone.

    Neighbours are the 2d nearest rows, so that on a grid in one dimension they are the next ones, and ends count.
    Where the optima are known otherwise, `peaks` are their rows.
    """

    def __init__(
        self,
        X: Array,
        *,
        categories: frozenset[int] = frozenset(),
        bandwidth: float | None,
        peaks: IntArray | None = None,
    ) -> None:
        self.bandwidth = bandwidth
        self._peaks = peaks
        self._Z = _spread_out(X, categories)
        self._neighbours: IntArray | None = None

    def optima(self, height: Array, *, first: int) -> IntArray:
        """The rows that stand out, highest first but `first` before all; it is always one of them."""
        if self.bandwidth is None:
            order = np.argsort(-height, kind="stable")
            return np.concatenate([[first], order[order != first]])
        peaks = self._peaks
        if peaks is None:
            peaks = np.flatnonzero(height >= np.max(height[self._nearest()], axis=1))
        order = peaks[np.argsort(-height[peaks], kind="stable")]
        return self._suppressed(np.concatenate([[first], order[order != first]]))

    def spaced(self, height: Array, *, first: int) -> IntArray:
        """Rows at least a bandwidth apart that are the highest around them, whether or not they are optima."""
        order = np.argsort(-height, kind="stable")
        order = np.concatenate([[first], order[order != first]])
        return order if self.bandwidth is None else self._suppressed(order)

    def _suppressed(self, order: IntArray) -> IntArray:
        kept: list[int] = []
        assert self.bandwidth is not None
        while order.size:
            best, others = int(order[0]), order[1:]
            kept.append(best)
            distance = np.sqrt(np.sum((self._Z[others] - self._Z[best]) ** 2, axis=1))
            order = others[distance >= self.bandwidth]
        return np.array(kept, dtype=np.int64)

    def _nearest(self) -> IntArray:
        if self._neighbours is None:
            from scipy.spatial import cKDTree

            m, d = self._Z.shape
            count = min(2 * d + 1, m)
            _, found = cKDTree(self._Z).query(self._Z, k=count)
            self._neighbours = np.asarray(found, dtype=np.int64).reshape(m, count)
        return self._neighbours


def _spread_out(X: Array, categories: frozenset[int]) -> Array:
    Z = np.where(np.isnan(X), -FAR, X)
    for column in categories:
        Z[:, column] *= FAR
    return Z
