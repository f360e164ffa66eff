"""Steps to neighbours of a setting, and in which direction they have paid so far."""

from dataclasses import dataclass, field

import numpy as np

from farthing.models.linalg import Array
from farthing.online.strategy import OnlineProblem, Place

REMEMBERED = 64
"""Probes that the gradient is learnt from."""

SLOPE = 10.0
"""The prior deviation of the gradient: a step of 0.1 is worth about one deviation of the forecast."""

FADING = 0.85
"""The share of a probe's weight that is left after the next one: the gradient at another place and time is another."""


@dataclass
class Gradient:
    """A Bayesian linear regression of how much better probes were, in deviations, on how far they went."""

    moves: list[list[float]] = field(default_factory=list)
    gains: list[float] = field(default_factory=list)

    def learn(self, move: Array, gain: float) -> None:
        self.moves, self.gains = [*self.moves, move.tolist()][-REMEMBERED:], [*self.gains, gain][-REMEMBERED:]

    def correct_last(self, gain: float) -> None:
        """Puts a better estimate in the place of the last one."""
        self.gains = [*self.gains[:-1], gain]

    def sampled(self, width: int, rng: np.random.Generator) -> Array:
        """A draw from its posterior: what is known well is followed, what is not is tried (Thompson sampling)."""
        mean, precision = self._posterior(width)
        root = np.linalg.cholesky(precision)
        return np.asarray(mean + np.linalg.solve(root.T, rng.standard_normal(width)))

    def predict(self, move: Array) -> tuple[float, float]:
        """Mean and deviation of the gain of that move."""
        mean, precision = self._posterior(len(move))
        return float(move @ mean), float(np.sqrt(move @ np.linalg.solve(precision, move)))

    def _posterior(self, width: int) -> tuple[Array, Array]:
        """The mean of the gradient and its precision."""
        D = np.array(self.moves, dtype=float).reshape(-1, width)
        weight = FADING ** np.arange(len(D))[::-1]
        precision = np.eye(width) / SLOPE**2 + D.T @ (weight[:, None] * D)
        mean = np.linalg.solve(precision, D.T @ (weight * np.array(self.gains, dtype=float)))
        return np.asarray(mean, dtype=np.float64), precision


class Steps:
    """The neighbours of a place, among candidates or in the whole space."""

    def __init__(self, problem: OnlineProblem) -> None:
        self._problem, self._encoder = problem, problem.encoder
        self.width = self._features(self._middle_row()).shape[1]

    def middle(self) -> Place:
        """The middle of the space, or the candidate that is nearest to it."""
        return self._nearest(self._middle_row())

    def spread(self, count: int, rng: np.random.Generator) -> list[Place]:
        """Places all over the space, one in each of `count` parts of every range, or the candidates nearest to them."""
        unit, width = rng.random((count, self._encoder.dimension)), self._encoder.dimension
        parts = rng.permuted(np.tile(np.arange(count)[:, None], width), axis=0)
        return [self._nearest(row[None, :]) for row in self._encoder.from_unit((parts + unit) / count)]

    def towards(self, gradient: Gradient, origin: Place, *, step: float, rng: np.random.Generator) -> Place:
        """The neighbour, about a step away, that is best by a draw of the gradient; the origin where it is alone."""
        places = self._neighbours(origin, step=step)
        if not places:
            return origin
        slope = gradient.sampled(self.width, rng)
        worth = [float(self.between(origin, place) @ slope) for place in places]
        return places[int(np.argmax(worth))]

    def between(self, origin: Place, place: Place) -> Array:
        """How far it is in each direction; categories have one for each of their options."""
        rows = self._features(np.stack([self._row(origin), self._row(place)]))
        return np.asarray(rows[1] - rows[0])

    # ----------------------------------------------------------------------------------------------------- neighbours

    def _neighbours(self, origin: Place, *, step: float) -> list[Place]:
        if self._problem.rows is not None:
            return self._candidates_near(origin, step=step)
        row = self._row(origin)
        params = self._encoder.decode(np.concatenate([*self._along_axes(row, step), *self._next(row)]))
        return [each for each in self._encoder.encode(params) if not np.array_equal(each, row, equal_nan=True)]

    def _along_axes(self, row: Array, step: float) -> list[Array]:
        """Rows that differ in one parameter, by a step up or down or in its category.

        So a parameter that does harm only later does not drift along with one that pays at once.
        """
        found = []
        for column in range(len(row)):
            if column in self._encoder.categories:
                values = [float(each) for each in range(self._encoder.categories[column]) if each != row[column]]
            else:
                own = 0.5 if np.isnan(row[column]) else row[column]
                values = [float(np.clip(own + way * step, 0.0, 1.0)) for way in (-1.0, 1.0)]
            for value in values:
                changed = np.where(np.isnan(row), 0.5, row)
                changed[column] = value
                found.append(changed[None, :])
        return found

    def _candidates_near(self, origin: Place, *, step: float) -> list[Place]:
        """Candidates within a step, and at least the nearest two in each dimension."""
        rows = self._problem.rows
        assert rows is not None
        assert isinstance(origin, int)
        features = self._features(rows)
        distance = _distances(features, features[[origin]])
        order = [int(i) for i in np.argsort(distance, kind="stable") if i != origin]
        within = sum(distance[i] <= step for i in order)
        return list(order[: max(within, 2 * self._encoder.dimension)])

    def _next(self, row: Array) -> list[Array]:
        """The next values of columns with few of them, which a short step does not reach."""
        found = []
        for column in self._encoder.discrete:
            grid = self._encoder.grid(column)
            if grid is None or np.isnan(row[column]):
                continue
            at = int(np.argmin(np.abs(grid - row[column])))
            for other in {max(at - 1, 0), min(at + 1, len(grid) - 1)} - {at}:
                changed = np.where(np.isnan(row), 0.5, row)
                changed[column] = grid[other]
                found.append(changed[None, :])
        return found

    # --------------------------------------------------------------------------------------------------------- as rows

    def _nearest(self, row: Array) -> Place:
        rows = self._problem.rows
        if rows is None:
            return np.asarray(self._encoder.encode(self._encoder.decode(row))[0])
        return int(np.argmin(_distances(self._features(rows), self._features(row))))

    def _middle_row(self) -> Array:
        return self._encoder.from_unit(np.full((1, self._encoder.dimension), 0.5))

    def _row(self, place: Place) -> Array:
        if isinstance(place, np.ndarray):
            return place
        assert self._problem.rows is not None
        return np.asarray(self._problem.rows[place])

    def _features(self, rows: Array) -> Array:
        """Numbers as they are and categories one-hot, so that two of them are a distance of 1 apart; inactive is 0."""
        columns = []
        for j in range(self._encoder.dimension):
            if j in self._encoder.categories:
                options = np.arange(self._encoder.categories[j])
                columns.append((rows[:, [j]] == options) / np.sqrt(2.0))
            else:
                columns.append(np.nan_to_num(rows[:, [j]]))
        return np.concatenate(columns, axis=1)


def _distances(rows: Array, origin: Array) -> Array:
    return np.asarray(np.linalg.norm(rows - origin, axis=1))
