"""The places where a model-based player plays: a fixed set of candidates, or a whole space.

Both give a `View` of a round: what is believed at some rows, and which of these are neighbours. Over candidates the
rows never change; in a space they are a pool that is drawn again after every observation.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np

from farthing.acquisition.acquisition import FixedFeatures
from farthing.acquisition.confidence_bound import ConfidenceBound
from farthing.acquisition.maximize import Domain, Effort, improve, maximize, perturbed, sobol
from farthing.models.candidate_filter import CandidateFilter, prior_over
from farthing.models.drifting_posterior import DriftingPosterior, Selected, Shifted
from farthing.models.linalg import Array
from farthing.models.window_process import WindowProcess
from farthing.online.context import Neighbourhood
from farthing.online.model import Hyperparameters, ModelForm
from farthing.online.strategy import OnlineProblem, Place
from farthing.strategies.shared.modelling import domain_of

POOL, NEARBY, VISITED = 128, 64, 32
"""Rows of a pool: spread evenly, around the best known ones, and visited before."""

EFFORT = Effort(screened=64, restarts=4, rounds=2, most_calls=20)
CLIMBING = Effort(rounds=2, most_calls=40)
"""For local optima that are climbed to from random places."""
STALE = 8
"""A pool this many rounds old is drawn again before anything is measured."""


@dataclass(frozen=True, eq=False)
class View:
    posterior: DriftingPosterior
    neighbourhood: Neighbourhood


class Field(Protocol):
    def reset(self, hyperparameters: Hyperparameters) -> None:
        """Forgets all observations; from now on these hyperparameters hold."""
        ...

    def observe(self, place: Place, z: float, *, round: int) -> None: ...

    def view(self, round: int, *, fresh: bool = False) -> View:
        """The posterior in that round; `fresh` draws rows again that are old."""
        ...

    def posterior_at(self, places: Sequence[Place], round: int) -> DriftingPosterior:
        """The belief about some places, in a round not before the last view's."""
        ...

    def place(self, row: int) -> Place:
        """The place of a row of the last view."""
        ...

    def row(self, place: Place) -> Array:
        """A place as the kernel sees it."""
        ...

    def design(self, count: int) -> list[Place]:
        """Places to begin with, spread out."""
        ...

    def drawn_at(self) -> int | None:
        """The round in which the rows of the view were drawn, where that was not the one after the last observation."""
        ...

    def draw(self, round: int) -> None:
        """Draws the rows as they were drawn in that round."""
        ...


class CandidateField:
    """Finitely many candidates: an exact filter over all of them, about a mean (`shift`) where one is known."""

    def __init__(
        self, problem: OnlineProblem, form: ModelForm, *, bandwidth: float | None, shift: Array | None = None
    ) -> None:
        assert problem.rows is not None
        self._problem, self._form, self._shift = problem, form, shift
        m = problem.rows.shape[0]
        self._X = np.arange(m, dtype=float)[:, None] if form.uses_index else problem.rows
        self._neighbourhood = Neighbourhood(problem.rows, categories=frozenset(form.categories), bandwidth=bandwidth)
        self.filter: CandidateFilter

    def reset(self, hyperparameters: Hyperparameters) -> None:
        prior = prior_over(self._form.space_kernel(), np.array(hyperparameters.theta), self._X)
        self.filter = CandidateFilter(
            prior,
            forgetting=hyperparameters.forgetting,
            noise=hyperparameters.noise,
            level=hyperparameters.level,
        )

    def observe(self, place: Place, z: float, *, round: int) -> None:
        assert isinstance(place, int)
        self.filter.advance_to(round)
        self.filter.observe(place, z if self._shift is None else z - float(self._shift[place]))

    def view(self, round: int, *, fresh: bool = False) -> View:
        self.filter.advance_to(round)
        posterior = self.filter if self._shift is None else Shifted(self.filter, self._shift)
        return View(posterior, self._neighbourhood)

    def posterior_at(self, places: Sequence[Place], round: int) -> DriftingPosterior:
        return Selected(self.view(round).posterior, np.array(places, dtype=np.int64))

    def place(self, row: int) -> Place:
        return row

    def row(self, place: Place) -> Array:
        return np.asarray(self._X[cast(int, place)])

    def design(self, count: int) -> list[Place]:
        order = self._problem.randomness.at("design").permutation(self._X.shape[0])
        return [int(place) for place in order[:count]]

    def drawn_at(self) -> int | None:
        return None

    def draw(self, round: int) -> None:
        """Candidates are not drawn."""


class SpaceField:
    """A whole space: a process over the window of what is not forgotten, seen at a pool of rows.

    With `climbs`, this many random places climb the upper bound in every round, as in the paper, and where they end
    are its local optima; else these are rows of the pool that are higher than those around them.
    """

    def __init__(
        self,
        problem: OnlineProblem,
        form: ModelForm,
        *,
        bandwidth: float,
        tolerance: float,
        beta_at: Callable[[int], float],
        climbs: int = 0,
    ) -> None:
        self._problem, self._form, self._beta_at = problem, form, beta_at
        self._bandwidth, self._tolerance, self._climbs = bandwidth, tolerance, climbs
        self._domain: Domain = domain_of(problem.encoder)
        self._observed = 0
        self._pool: Array | None = None
        self._view: View | None = None
        self._made_at = 0
        self._first_round = 0
        self.process: WindowProcess

    def reset(self, hyperparameters: Hyperparameters) -> None:
        self.process = WindowProcess(
            self._form.space_kernel(),
            np.array(hyperparameters.theta),
            dimension=self._form.dimension,
            forgetting=hyperparameters.forgetting,
            noise=hyperparameters.noise,
            level=hyperparameters.level,
            tolerance=self._tolerance,
        )
        self._observed = 0
        self._view = None

    def observe(self, place: Place, z: float, *, round: int) -> None:
        assert isinstance(place, np.ndarray)
        self.process.observe(place, z, round=round)
        self._observed += 1
        self._view, self._first_round = None, round + 1

    def view(self, round: int, *, fresh: bool = False) -> View:
        if self._view is None:
            self.draw(self._first_round)
        if self._made_at != round and (self._climbs or (fresh and round - self._made_at >= STALE)):
            self.draw(round)
        assert self._view is not None
        self._view.posterior.advance_to(round)
        return self._view

    def posterior_at(self, places: Sequence[Place], round: int) -> DriftingPosterior:
        return self.process.at(np.stack([self.row(place) for place in places]), round=round)

    def place(self, row: int) -> Place:
        assert self._pool is not None
        params = self._problem.encoder.decode(self._pool[row][None, :])
        return np.asarray(self._problem.encoder.encode(params)[0])

    def row(self, place: Place) -> Array:
        return np.asarray(place)

    def design(self, count: int) -> list[Place]:
        rng = self._problem.randomness.at("design")
        encoder = self._problem.encoder
        rows = encoder.snap(self._domain.from_unit(sobol(self._domain.width, max(count, 2), rng=rng)))
        return list(encoder.encode(encoder.decode(rows[:count])))

    def drawn_at(self) -> int | None:
        return self._made_at if self._view is not None and self._made_at != self._first_round else None

    def draw(self, round: int) -> None:
        """Rows spread evenly, rows around the best known ones, and the optima of mean and upper bound."""
        rng = self._problem.randomness.at("pool", round, self._observed)
        gp, domain = self.process.gp, self._domain
        visited = gp.X[:, :-1]
        best = visited[np.argsort(-gp.y, kind="stable")[:VISITED]]
        spread = domain.from_unit(sobol(domain.width, POOL, rng=rng))
        rows = [domain.snap(spread), best]
        if best.size:
            complete = np.where(np.isnan(best), domain.from_unit(rng.random(best.shape)), best)
            rows.append(domain.snap(perturbed(domain, complete, NEARBY, rng=rng)))
            for weight in (0.0, self._beta_at(round)):
                bound = FixedFeatures(ConfidenceBound(gp, weight, sign=1.0), (float(round),))
                rows.append(maximize(bound, domain, rng=rng, offered=best[:8], effort=EFFORT).x[None, :])
        climbed = self._climbed(round, rng) if self._climbs and best.size else np.zeros((0, domain.width))
        snapped = self._problem.encoder.snap(np.concatenate([climbed, *rows]))
        self._pool, place = np.unique(snapped, axis=0, return_inverse=True)
        self._made_at = round
        neighbourhood = Neighbourhood(
            self._pool,
            categories=frozenset(self._form.categories),
            bandwidth=self._bandwidth,
            peaks=np.unique(place.reshape(-1)[: len(climbed)]) if len(climbed) else None,
        )
        self._view = View(self.process.at(self._pool, round=round), neighbourhood)

    def _climbed(self, round: int, rng: np.random.Generator) -> Array:
        """The ends of random places that climb the upper bound of that round."""
        bound = FixedFeatures(ConfidenceBound(self.process.gp, self._beta_at(round), sign=1.0), (float(round),))
        U = self._domain.from_unit(rng.random((self._climbs, self._domain.width)))
        lower, upper = (np.broadcast_to(end, U.shape) for end in self._domain.bounds())
        found, _ = improve(
            bound, self._domain, U, bound(self._domain.snap(U)), lower=lower, upper=upper, effort=CLIMBING
        )
        return self._domain.snap(found)
