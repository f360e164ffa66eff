"""Maximising one acquisition function within many boxes, all of them together: Eq. 8 of LaMBO for all arms at once."""

from dataclasses import dataclass

import numpy as np

from farthing.acquisition.acquisition import Acquisition
from farthing.acquisition.maximize import Domain, Effort, Maximum, best_rows, climb, improve, sobol
from farthing.models.linalg import Array

EFFORT = Effort(screened=32, restarts=2, rounds=8, most_calls=30, first_step=0.2, value_tolerance=1e-5)
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
    effort: Effort = EFFORT,
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
