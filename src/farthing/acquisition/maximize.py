"""Maximising an acquisition function over encoded rows: screen, climb, hop, repeat.

Searches move in latent rows U, complete and within [0, 1] (codes for categories); what the acquisition sees is
snap(U), where inactive columns are NaN. A column that a hop activates therefore has a value already.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, log2

import numpy as np

from farthing.acquisition.acquisition import Acquisition
from farthing.models.batched_bfgs import minimize_batch
from farthing.models.linalg import Array, BoolArray
from farthing.models.sobol import sobol_points

RELAXED_SIZE = 16
"""Ordered grids finer than this are climbed as if continuous, then rounded. A guess, not tuned."""

PERTURBATION = 0.1
"""Deviation of the screened points around offered ones, in the unit cube. A guess, not tuned."""


def identity(U: Array) -> Array:
    return U


@dataclass(frozen=True, eq=False)
class Domain:
    """The values allowed in the columns of a row, and the map from latent rows to valid ones.

    `grids[j]` is None for a continuous column on [0, 1], else its allowed values in increasing order. Columns in
    `categories` have codes without an order. `snap` maps latent rows to valid ones, NaN where inactive; it must leave
    allowed values of active columns as they are.
    """

    grids: tuple[Array | None, ...]
    categories: frozenset[int] = frozenset()
    snap: Callable[[Array], Array] = identity

    @property
    def width(self) -> int:
        return len(self.grids)

    @property
    def has_grids(self) -> bool:
        return any(grid is not None for grid in self.grids)

    def bounds(self) -> tuple[Array, Array]:
        """The least and the greatest value of each column."""
        ends = [(0.0, 1.0) if grid is None else (grid[0], grid[-1]) for grid in self.grids]
        lower, upper = np.array(ends).T
        return lower, upper

    def from_unit(self, U: Array) -> Array:
        """Rows of the unit cube spread evenly over the allowed values."""
        rows = U.copy()
        for j, grid in self._discrete():
            rows[:, j] = grid[np.minimum((U[:, j] * grid.size).astype(int), grid.size - 1)]
        return rows

    def rounded(self, U: Array) -> Array:
        """Each gridded column at its nearest allowed value."""
        rows = np.clip(U, 0.0, 1.0)
        for j, grid in self._discrete():
            rows[:, j] = grid[np.argmin(np.abs(U[:, j, None] - grid), axis=1)]
        return rows

    def climbable(self) -> BoolArray:
        """Columns along which a gradient leads somewhere: continuous ones and fine ordered grids."""
        coarse = [
            grid is not None and (j in self.categories or grid.size <= RELAXED_SIZE)
            for j, grid in enumerate(self.grids)
        ]
        return ~np.array(coarse)

    def neighbours(self, u: Array, lower: Array, upper: Array) -> Array:
        """Rows within bounds that differ from u in one gridded column: any category, or 1, 2, 4, … steps on a scale."""
        rows = [np.zeros((0, self.width))]
        for j, grid in self._discrete():
            values = self._neighbouring_values(j, grid, u[j])
            values = values[(values >= lower[j]) & (values <= upper[j])]
            changed = np.repeat(u[None, :], values.size, axis=0)
            changed[:, j] = values
            rows.append(changed)
        return np.concatenate(rows)

    def _discrete(self) -> list[tuple[int, Array]]:
        return [(j, grid) for j, grid in enumerate(self.grids) if grid is not None]

    def _neighbouring_values(self, j: int, grid: Array, value: float) -> Array:
        here = int(np.argmin(np.abs(grid - value)))
        if j in self.categories:
            return np.delete(grid, here)
        strides = 2 ** np.arange(ceil(log2(grid.size)) if grid.size > 1 else 0)
        places = np.concatenate([here - strides, here + strides])
        return np.asarray(grid[places[(places >= 0) & (places < grid.size)]])


@dataclass(frozen=True)
class Effort:
    """The effort of a search: points screened, searches that climb, and rounds of climbing and hopping.

    A climb begins with a step of `first_step` at most, and ends after `most_calls`, or once a step gains less than
    `value_tolerance`, relative to the value from 1 on.
    """

    screened: int = 512
    restarts: int = 8
    rounds: int = 8
    most_calls: int = 60
    first_step: float = 0.1
    value_tolerance: float = 1e-9


@dataclass(frozen=True, eq=False)
class Maximum:
    """The best row found, as the acquisition sees it (D,), and its value."""

    x: Array
    value: float


def maximize(
    acquisition: Acquisition,
    domain: Domain,
    *,
    rng: np.random.Generator,
    offered: Array | None = None,
    effort: Effort | None = None,
) -> Maximum:
    """The highest row that a screened, multi-start, alternating search finds; the same for the same generator state.

    `offered` are rows worth starting from, such as the best ones seen; they are screened with perturbations of
    themselves beside a Sobol sequence, and what is inactive in them (NaN) is drawn.
    """
    effort = effort or Effort()
    U, value = _screen(acquisition, domain, offered, effort, rng)
    U, value = _improve_anywhere(acquisition, domain, U, value, effort)
    best = int(np.argmax(value))
    return Maximum(domain.snap(U[best : best + 1])[0], float(value[best]))


def candidates(
    acquisition: Acquisition, domain: Domain, *, rng: np.random.Generator, offered: Array, effort: Effort
) -> Array:
    """Rows to choose several from: `restarts` of the highest that were screened, and the tops of climbs from them."""
    U, value = _screen(acquisition, domain, offered, effort, rng)
    tops, _ = _improve_anywhere(acquisition, domain, U, value, effort)
    return domain.snap(np.concatenate([tops, U]))


def _improve_anywhere(
    acquisition: Acquisition, domain: Domain, U: Array, value: Array, effort: Effort
) -> tuple[Array, Array]:
    lower, upper = (np.broadcast_to(bound, U.shape) for bound in domain.bounds())
    return improve(acquisition, domain, U, value, lower=lower, upper=upper, effort=effort)


def improve(
    acquisition: Acquisition, domain: Domain, U: Array, value: Array, *, lower: Array, upper: Array, effort: Effort
) -> tuple[Array, Array]:
    """Latent rows (R, D) of known value, climbing and hopping together, each until it hops no more; their new values.

    Each row stays within bounds of its own (R, D), which on a grid are values of it; lower = upper holds a column.
    """
    U, value, going = U.copy(), value.copy(), np.arange(U.shape[0])
    for _ in range(effort.rounds):
        low, high = lower[going], upper[going]
        rows, found = climb(acquisition, domain, U[going], value[going], lower=low, upper=high, effort=effort)
        hopped, rows, found = _hop(acquisition, domain, rows, found, lower=low, upper=high)
        U[going], value[going] = rows, found
        going = going[hopped]
        if not going.size:
            break
    return U, value


# ------------------------------------------------------------------------------------------------------ screen


def _screen(
    acquisition: Acquisition, domain: Domain, offered: Array | None, effort: Effort, rng: np.random.Generator
) -> tuple[Array, Array]:
    """The rows to start from: the best of the Sobol points and the best around the offered ones, half each."""
    spread = domain.from_unit(sobol(domain.width, effort.screened, rng=rng))
    if offered is None or offered.shape[0] == 0:
        return best_rows(acquisition, domain, spread, effort.restarts)
    complete = np.where(np.isnan(offered), domain.from_unit(rng.random(offered.shape)), offered)
    near = np.concatenate([complete, perturbed(domain, complete, effort.screened // 4, rng=rng)])
    half = max(1, effort.restarts // 2)
    groups = [best_rows(acquisition, domain, rows, half) for rows in (near, spread)]
    U, value = (np.concatenate(parts) for parts in zip(*groups, strict=True))
    return U, value


def sobol(D: int, count: int, *, rng: np.random.Generator) -> Array:
    """`count` scrambled Sobol points in the unit cube, rounded up to a power of two."""
    return sobol_points(D, ceil(log2(max(count, 2))), rng=rng)


def perturbed(domain: Domain, rows: Array, count: int, *, rng: np.random.Generator) -> Array:
    """`count` rows near the given ones: half of the columns, on average, moved a little or (categories) redrawn."""
    origin = rows[np.arange(count) % rows.shape[0]]
    moved = np.clip(origin + PERTURBATION * rng.standard_normal(origin.shape), 0.0, 1.0)
    redrawn = domain.from_unit(rng.random(origin.shape))
    is_category = np.isin(np.arange(domain.width), list(domain.categories))
    changed = np.where(is_category, redrawn, moved)
    return domain.rounded(np.where(rng.random(origin.shape) < 0.5, changed, origin))


def best_rows(acquisition: Acquisition, domain: Domain, U: Array, count: int) -> tuple[Array, Array]:
    """The `count` highest of the latent rows, and their values."""
    value = acquisition(domain.snap(U))
    order = np.argsort(-value, kind="stable")[:count]
    return U[order], value[order]


# ---------------------------------------------------------------------------------------------- climb and hop


def climb(
    acquisition: Acquisition,
    domain: Domain,
    U: Array,
    value: Array,
    *,
    effort: Effort,
    lower: float | Array = 0.0,
    upper: float | Array = 1.0,
) -> tuple[Array, Array]:
    """All rows uphill together along the climbable columns, within bounds that are for all or for each of them.

    A row that rounding made worse stays where it was.
    """
    climbable = domain.climbable() & np.less(lower, upper)
    if not climbable.any():
        return U, value

    def loss(rows: Array) -> tuple[Array, Array]:
        found, gradient = acquisition.value_and_gradient(domain.snap(rows))
        return -found, -gradient

    minima = minimize_batch(
        loss,
        U,
        lower=np.where(climbable, lower, U),
        upper=np.where(climbable, upper, U),
        most_calls=effort.most_calls,
        first_step=effort.first_step,
        value_tolerance=effort.value_tolerance,
    )
    moved = domain.rounded(minima.x)
    is_known = np.array_equal(moved, minima.x)
    return _keep_better(U, value, moved, -minima.value if is_known else acquisition(domain.snap(moved)))


def _keep_better(U: Array, value: Array, moved: Array, new_value: Array) -> tuple[Array, Array]:
    better = new_value > value
    return np.where(better[:, None], moved, U), np.where(better, new_value, value)


def _hop(
    acquisition: Acquisition, domain: Domain, U: Array, value: Array, *, lower: Array, upper: Array
) -> tuple[BoolArray, Array, Array]:
    """Each row to the best of its neighbours where that is higher; all neighbours are evaluated in one call.

    Says which rows hopped.
    """
    others = [domain.neighbours(*row) for row in zip(U, lower, upper, strict=True)] if domain.has_grids else []
    if not any(len(rows) for rows in others):
        return np.zeros(len(U), dtype=bool), U, value
    groups = [np.concatenate([u[None, :], rows]) for u, rows in zip(U, others, strict=True)]
    ends = np.cumsum([len(group) for group in groups])[:-1]
    found = np.split(acquisition(domain.snap(np.concatenate(groups))), ends)
    best = [int(np.argmax(part)) for part in found]
    moved = np.stack([group[b] for group, b in zip(groups, best, strict=True)])
    new_value = np.array([part[b] for part, b in zip(found, best, strict=True)])
    return new_value > value, *_keep_better(U, value, moved, new_value)


# ------------------------------------------------------------
# Within many boxes, all of them together: Eq. 8 of LaMBO for all arms at once.

BOX_EFFORT = Effort(screened=32, restarts=2, rounds=8, most_calls=30, first_step=0.2, value_tolerance=1e-5)
"""Per box; a limit on time (`benchmarks.speed lambo`), not tuned for regret."""


@dataclass(frozen=True, eq=False)
class BoxMaxima:
    """The best row of each box (K, D), as the acquisition sees it, and its value (K,)."""

    x: Array
    value: Array


def maximize_in_boxes(
    acquisition: Acquisition,
    domain: Domain,
    lower: Array,
    upper: Array,
    *,
    rng: np.random.Generator,
    offered: Array | None = None,
    effort: Effort = BOX_EFFORT,
) -> BoxMaxima:
    """The highest row found within each pair of bounds (K, D); lower = upper holds a column.

    Bounds of a gridded column are values of its grid. `offered` rows (n, D) are screened too, moved into every box.
    """
    K = lower.shape[0]
    U = _within(domain, lower, upper, sobol(domain.width, effort.screened, rng=rng), offered)
    value = acquisition(domain.snap(U.reshape(-1, domain.width))).reshape(K, -1)
    best = np.argsort(-value, axis=1, kind="stable")[:, : effort.restarts]
    starts = np.take_along_axis(U, best[:, :, None], axis=1).reshape(-1, domain.width)
    R = best.shape[1]
    U, found = improve(
        acquisition,
        domain,
        starts,
        np.take_along_axis(value, best, axis=1).ravel(),
        lower=np.repeat(lower, R, axis=0),
        upper=np.repeat(upper, R, axis=0),
        effort=effort,
    )
    highest = np.arange(K) * R + np.argmax(found.reshape(K, R), axis=1)
    return BoxMaxima(domain.snap(U[highest]), found[highest])


def _within(domain: Domain, lower: Array, upper: Array, unit: Array, offered: Array | None) -> Array:
    """Rows (K, S, D) of every box: the points of the unit cube spread over it, and the offered rows moved into it."""
    rows = lower[:, None, :] + unit * (upper - lower)[:, None, :]
    if offered is not None and offered.shape[0]:
        complete = np.where(np.isnan(offered), 0.5, offered)
        rows = np.concatenate([rows, np.clip(complete, lower[:, None, :], upper[:, None, :])], axis=1)
    flat = domain.rounded(rows.reshape(-1, domain.width)) if domain.has_grids else rows
    return np.clip(flat.reshape(rows.shape), lower[:, None, :], upper[:, None, :])


# ------------------------------------------------------------
# Maximising an acquisition function in a box around one row: a search that stays where the data are.


KEPT = 0.8
"""Probability that a candidate keeps the category of the row at the centre. A guess, not tuned."""


@dataclass(frozen=True, eq=False)
class TrustRegion:
    """The rows whose numbers are within `side`/2 of `centre`, clipped to the cube; categories may be any.

    The side may be another in every column. A grid so coarse that its nearest values are further away is searched up to
    those. If the centre is inactive (NaN) every value is near.
    """

    domain: Domain
    centre: Array
    side: float | Array

    @property
    def bounds(self) -> tuple[Array, Array]:
        """The lowest and highest coordinate of each column (D,)."""
        gaps = np.array([0.0 if grid is None else 1.0 / grid.size for grid in self.domain.grids])
        half = np.maximum(0.5 * self.side, gaps)
        lower, upper = np.clip(self.centre - half, 0.0, 1.0), np.clip(self.centre + half, 0.0, 1.0)
        return np.where(np.isnan(self.centre), 0.0, lower), np.where(np.isnan(self.centre), 1.0, upper)

    def candidates(self, count: int, *, rng: np.random.Generator) -> Array:
        """`count` latent rows drawn uniformly; a category is the centre's with probability `KEPT`, else any."""
        lower, upper = self.bounds
        unit = rng.random((count, self.domain.width))
        rows = self.domain.rounded(lower + unit * (upper - lower))
        for j in self.domain.categories:
            anywhere = self.domain.from_unit(unit)[:, j]
            is_kept = (rng.random(count) < KEPT) & ~np.isnan(self.centre[j])
            rows[:, j] = np.where(is_kept, self.centre[j], anywhere)
        return rows


def maximize_in_trust_region(
    acquisition: Acquisition, region: TrustRegion, *, rng: np.random.Generator, effort: Effort
) -> Maximum:
    """The highest row found: the best of `effort.screened` candidates, of which the best few climb within the box."""
    domain, (lower, upper) = region.domain, region.bounds
    U, value = best_rows(acquisition, domain, region.candidates(effort.screened, rng=rng), effort.restarts)
    U, value = climb(acquisition, domain, U, value, effort=effort, lower=lower, upper=upper)
    best = int(np.argmax(value))
    return Maximum(domain.snap(U[best : best + 1])[0], float(value[best]))
