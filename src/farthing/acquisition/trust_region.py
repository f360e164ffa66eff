"""Maximising an acquisition function in a box around one row: a search that stays where the data are."""

from dataclasses import dataclass

import numpy as np

from farthing.acquisition.acquisition import Acquisition
from farthing.acquisition.maximize import Domain, Effort, Maximum, best_rows, climb
from farthing.models.linalg import Array

KEPT = 0.8
"""Probability that a candidate keeps the category of the row at the centre. A guess, not tuned."""


@dataclass(frozen=True, eq=False)
class TrustRegion:
    """The rows whose numbers are within `side`/2 of `centre`, clipped to the cube; categories may be any.

    A grid so coarse that its nearest values are further away is searched up to those. If the centre is inactive
    (NaN) every value is near.
    """

    domain: Domain
    centre: Array
    side: float

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
