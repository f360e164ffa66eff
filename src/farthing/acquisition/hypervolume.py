"""Several losses at once: fronts, their hypervolume, and the expected improvement of it.

A row *dominates* another that is nowhere less and somewhere more. The *front* is the rows that none dominates. Its
hypervolume is the volume of everything that it dominates below a reference point.

The rest of what is below the reference is a union of disjoint boxes [l_k, u_k). A new row y improves the hypervolume by

    HVI(y) = Σ_k Π_j (u_kj − max(l_kj, y_j))₊ = Σ_k Π_j [(u_kj − y_j)₊ − (l_kj − y_j)₊]

so that independent y_j ~ N(μ_j, σ_j²) give, exactly (Emmerich et al., 2006; Yang et al., 2019),

    EHVI = Σ_k Π_j d_kj,   d_kj = ψ_j(u_kj) − ψ_j(l_kj),   ψ_j(a) = E(a − y_j)₊ = σ_j h((a − μ_j)/σ_j)
"""

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from math import inf, pi, sqrt

import numpy as np
from scipy.special import erfcx, log_ndtr

from farthing.acquisition.expected_improvement import log_h_and_slope
from farthing.errors import InvalidArgument
from farthing.models.gp import GP
from farthing.models.linalg import Array, BoolArray, IntArray

MOST_OBJECTIVES = 3
"""The sweep that makes the boxes keeps a front of two losses while it moves along the third."""

# ------------------------------------------------------------
# Fronts.


def non_dominated(losses: Array) -> BoolArray:
    """Whether each row (n, m) is on the front, (n,). Equal rows all stay. Two losses take time n log n, others n²."""
    if losses.shape[1] != 2:
        return np.asarray(ranks(losses) == 0)
    rows, inverse = np.unique(losses, axis=0, return_inverse=True)
    best_before = np.minimum.accumulate(rows[:-1, 1])  # rows are in lexicographic order: their first loss is not more
    return np.asarray(np.append(True, rows[1:, 1] < best_before)[inverse.reshape(-1)])


def ranks(losses: Array) -> IntArray:
    """The rank of each row (n, m): 0 on the front, 1 on the front of the others, and so on, (n,).

    This is the number of rows before it in the longest chain in which each row dominates the next.
    """
    rows, inverse = np.unique(losses, axis=0, return_inverse=True)
    others, depth = np.ascontiguousarray(rows.T[1:]), np.ones(rows.shape[0], dtype=np.int64)
    for i in range(1, rows.shape[0]):
        dominates = np.all(others[:, :i] <= others[:, i, None], axis=0)
        depth[i] += np.max(depth[:i] * dominates)
    return np.asarray(depth[inverse.reshape(-1)] - 1)


def crowding(losses: Array) -> Array:
    """The room around each row (n, m) of one rank (Deb et al., 2002), (n,): more is less crowded.

    This is the sum over the losses of the distance between the neighbours on both sides, as a share of the range. The
    least and the greatest of each loss have ∞. Of more than two equal rows, all but two have no room.
    """
    room = np.zeros(losses.shape[0])
    for j in range(losses.shape[1]):
        order = np.lexsort((*np.delete(losses, j, axis=1).T, losses[:, j]))
        column = losses[order, j]
        extent = np.ptp(column) if column.size else 0.0
        padded = np.concatenate([[-inf], column, [inf]])
        if extent > 0.0:
            room[order] += (padded[2:] - padded[:-2]) / extent
    return room


# ------------------------------------------------------------
# Volumes.


def hypervolume(front: Array, reference: Array) -> float:
    """The volume between the rows of `front` (n, m) and `reference` (m,), exact for every m.

    Its time grows like n^(m − 1). Rows at or beyond the reference, and dominated rows, add nothing.
    """
    return _volume(front[np.all(front < reference, axis=1)], reference)


def _volume(rows: Array, reference: Array) -> float:
    """Slices along the last loss, each as thick as the step to the next row. All terms are positive: none cancels."""
    if rows.shape[0] == 0:
        return 0.0
    if rows.shape[1] == 1:
        return float(reference[0] - np.min(rows))
    if rows.shape[1] > 2:
        rows = rows[non_dominated(rows)]
    rows = rows[np.argsort(rows[:, -1], kind="stable")]
    thickness = np.diff(rows[:, -1], append=reference[-1])
    if rows.shape[1] == 2:
        return float(thickness @ (reference[0] - np.minimum.accumulate(rows[:, 0])))
    slices = np.flatnonzero(thickness)
    return float(sum(thickness[i] * _volume(rows[: i + 1, :-1], reference[:-1]) for i in slices))


@dataclass(frozen=True, eq=False)
class Side:
    """The edges of all boxes along one loss: distinct and finite ones (E,), and which of them each box has (K,).

    Where −∞ is the lower edge, `lower` is E, the place after the last.
    """

    edges: Array
    lower: IntArray
    upper: IntArray


@dataclass(frozen=True, eq=False)
class Boxes:
    """Disjoint boxes [lower_k, upper_k), both (K, m): what is below a reference and not dominated by a front."""

    lower: Array
    upper: Array

    @cached_property
    def sides(self) -> tuple[Side, ...]:
        return tuple(_side(lower, upper) for lower, upper in zip(self.lower.T, self.upper.T, strict=True))


def _side(lower: Array, upper: Array) -> Side:
    edges = np.unique(np.concatenate([lower[np.isfinite(lower)], upper]))
    below = np.where(np.isfinite(lower), np.searchsorted(edges, lower), edges.size)
    return Side(edges, below, np.searchsorted(edges, upper))


def boxes_of(front: Array, reference: Array) -> Boxes:
    """The boxes that `front` (n, m) leaves free below `reference` (m,); at most 2n + 1, or n + 1 of two losses.

    Rows at or beyond the reference, and dominated rows, change nothing. Fewer losses than three are lifted: all rows
    get a zero in a further column, of which the interval [0, 1) counts.
    """
    m = reference.size
    if not 1 <= m <= MOST_OBJECTIVES:
        raise InvalidArgument(
            f"Hypervolume improvement needs 1 to {MOST_OBJECTIVES} objectives, got {m}. Turn some into constraints."
        )
    inside = front[np.all(front < reference, axis=1)]
    lifted = np.zeros((inside.shape[0], MOST_OBJECTIVES))
    lifted[:, :m] = inside
    floor, top = np.repeat([-inf, 0.0], [m, 3 - m]), np.append(reference, np.ones(3 - m))
    lower, upper = _sweep(lifted[np.argsort(lifted[:, 2], kind="stable")], floor, top)
    filled = np.all(lower < upper, axis=1)
    return Boxes(lower[filled, :m], upper[filled, :m])


def _sweep(rows: Array, floor: Array, top: Array) -> tuple[Array, Array]:
    """The lower and upper corners of the boxes below `top`, some of them empty; rows (n, 3) by their third loss.

    At each height of the third loss the front of the rows so far leaves strips free: strip i is
    [starts_i, starts_{i + 1}) × [floor_1, tops_i), with falling tops, as it is since the height opened_i. A new row
    lowers all strips that reach beyond both its coordinates. Their parts right of the row are closed, and are boxes.
    """
    starts, tops, opened = [float(floor[0]), float(top[0])], [float(top[1])], [float(floor[2])]
    boxes: list[tuple[float, ...]] = []
    for a, b, height in rows.tolist():
        i = bisect_right(starts, a) - 1
        j = next((j for j in range(i, len(tops)) if tops[j] <= b), len(tops))
        if i == j:  # dominated
            continue
        boxes += [(max(starts[k], a), opened[k], starts[k + 1], tops[k], height) for k in range(i, j)]
        first = i + 1 if starts[i] < a else i
        starts[first:j], tops[first:j], opened[first:j] = [a], [b], [height]
    boxes += zip(starts[:-1], opened, starts[1:], tops, [float(top[2])] * len(tops), strict=True)
    left, low, right, high, end = np.array(boxes).T
    return np.stack([left, np.full(left.shape, floor[1]), low], axis=1), np.stack([right, high, end], axis=1)


# ------------------------------------------------------------
# The expected improvement.


@dataclass(frozen=True, eq=False)
class LogHypervolumeImprovement:
    """log EHVI of the losses that the processes model, one each and independent, into `boxes`."""

    gps: tuple[GP, ...]
    boxes: Boxes

    def __call__(self, X: Array) -> Array:
        mean, variance = (np.stack(parts) for parts in zip(*(gp.predict(X) for gp in self.gps), strict=True))
        return log_hypervolume_improvement(mean, variance, self.boxes)

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        parts = zip(*(gp.predict_with_gradient(X) for gp in self.gps), strict=True)
        mean, variance, mean_gradient, variance_gradient = (np.stack(part) for part in parts)
        value, by_mean, by_variance = log_hypervolume_improvement_and_slopes(mean, variance, self.boxes)
        gradient = by_mean[..., None] * mean_gradient + by_variance[..., None] * variance_gradient
        return value, np.sum(gradient, axis=0)


def log_hypervolume_improvement(mean: Array, variance: Array, boxes: Boxes) -> Array:
    """log EHVI of N rows, (N,), whose losses have these means and variances (m, N)."""
    lengths = [Lengths(*given) for given in zip(mean, variance, boxes.sides, strict=True)]
    return _log_sum(lengths)[0]


def log_hypervolume_improvement_and_slopes(mean: Array, variance: Array, boxes: Boxes) -> tuple[Array, Array, Array]:
    """log EHVI (N,) and its derivatives by the means and by the variances, both (m, N)."""
    lengths = [Lengths(*given) for given in zip(mean, variance, boxes.sides, strict=True)]
    value, share = _log_sum(lengths)
    by_mean, by_variance = zip(*(length.mean_slopes(share) for length in lengths), strict=True)
    return value, np.stack(by_mean), np.stack(by_variance)


@dataclass(frozen=True, eq=False)
class Lengths:
    """The expected lengths d of K boxes along one loss, whose mean and variance are given for N rows:

        log d = log σ + log h(z_u) + log(1 − e^−Δ),   Δ = log h(z_u) − log h(z_l)

    The space below a box is free too, so the share of a box in EHVI is at most 1 − e^−Δ. Rounding of a small Δ, here
    at least ε, therefore weighs no more than rounding elsewhere.
    """

    mean: Array
    variance: Array
    side: Side

    @cached_property
    def log_d(self) -> Array:
        """(K, N)."""
        log_h = self._at_edges[0][self.side.upper]
        return np.asarray(0.5 * np.log(self.variance) + log_h + np.log(-np.expm1(-self._gap)))

    def mean_slopes(self, share: Array) -> tuple[Array, Array]:
        """The derivatives of log d by the mean and by the variance, averaged over the boxes with these shares; (N,).

            ∂ log d/∂μ = −(r_u − r_l e^−Δ)/(σ (1 − e^−Δ)),   ∂ log d/∂σ² = (c_u − c_l e^−Δ)/(2σ² (1 − e^−Δ))

        with r = Φ/h and c = φ/h. The second is negative for a box above the mean; the average is not, as HVI is convex.
        """
        _, r, c = self._at_edges
        upper, lower, shrunk = self.side.upper, self.side.lower, np.exp(-self._gap)
        weight = share / -np.expm1(-self._gap)
        by_z = np.sum(weight * (r[upper] - r[lower] * shrunk), axis=0)
        by_scale = np.sum(weight * (c[upper] - c[lower] * shrunk), axis=0)
        return -by_z / np.sqrt(self.variance), 0.5 * by_scale / self.variance

    @cached_property
    def _gap(self) -> Array:
        """Δ (K, N)."""
        log_h = self._at_edges[0]
        return np.maximum(log_h[self.side.upper] - log_h[self.side.lower], np.finfo(float).eps)

    @cached_property
    def _at_edges(self) -> tuple[Array, Array, Array]:
        """log h, r and c = 1 − z r at each edge and, in the last place, at −∞; (E + 1, N) each."""
        z = (self.side.edges[:, None] - self.mean) / np.sqrt(self.variance)
        log_h, r = log_h_and_slope(z)
        return _ending(log_h, -inf), _ending(r, 0.0), _ending(np.maximum(1.0 - z * r, 0.0), 0.0)


def _ending(rows: Array, value: float) -> Array:
    return np.concatenate([rows, np.full((1, rows.shape[1]), value)])


def _log_sum(lengths: list[Lengths]) -> tuple[Array, Array]:
    """log Σ_k Π_j d_kj (N,), and the share of each box in the sum (K, N)."""
    log_terms = np.sum([length.log_d for length in lengths], axis=0)
    most = np.max(log_terms, axis=0)
    terms = np.exp(log_terms - most)
    total = np.sum(terms, axis=0)
    return most + np.log(total), terms / total


# ------------------------------------------------------------
# Constraints.


@dataclass(frozen=True, eq=False)
class LogFeasible:
    """log P(f(x) ≤ bound) = log Φ(z), z = (bound − μ)/σ, of the quantity that `gp` models."""

    gp: GP
    bound: float

    def __call__(self, X: Array) -> Array:
        mean, variance = self.gp.predict(X)
        return np.asarray(log_ndtr((self.bound - mean) / np.sqrt(variance)))

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        """With λ = φ/Φ, the inverse of Mills' ratio:  ∂ log Φ/∂μ = −λ/σ,  ∂ log Φ/∂σ² = −z λ/2σ²."""
        mean, variance, mean_gradient, variance_gradient = self.gp.predict_with_gradient(X)
        sigma = np.sqrt(variance)
        z = (self.bound - mean) / sigma
        rate = sqrt(2.0 / pi) / erfcx(-z / sqrt(2.0))
        by_mean, by_variance = -rate / sigma, -0.5 * z * rate / variance
        return np.asarray(log_ndtr(z)), by_mean[:, None] * mean_gradient + by_variance[:, None] * variance_gradient
