"""A model of learning curves as rules see it that judge configurations at full fidelity, one at a time."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from farthing.acquisition.acquisition import Acquisition, FixedFeatures, Unvisited
from farthing.acquisition.maximize import maximize
from farthing.models.gp import GP
from farthing.models.linalg import Array
from farthing.space.encoding import Encoder
from farthing.strategies.multifidelity.basket import continuing_saves, starts_at
from farthing.strategies.multifidelity.candidates import Bought
from farthing.strategies.multifidelity.context import cost_of_runs
from farthing.strategies.multifidelity.curve_model import CurveModel, fit_curves
from farthing.strategies.multifidelity.levels import Fidelities
from farthing.strategies.multifidelity.recommending import ranked
from farthing.strategies.multifidelity.runs import Run, active_runs, recommendable, runs_of
from farthing.strategies.shared.cost_model import CostModel
from farthing.strategies.shared.guessing import believed
from farthing.strategies.shared.modelling import domain_of
from farthing.strategies.shared.searching import ORDINARY, unvisited
from farthing.strategies.shared.strategy import Recommendation
from farthing.trials import History, Suggestion, Trial

RETAINED = 2
"""Points of each curve that enter the model: its middle and its end. As the paper of taKG has, ℓ = 2."""
OFFERED = 8
"""Number of the best rows seen that are offered as starting points; a guess, not tuned."""


@dataclass(frozen=True, eq=False)
class Option:
    """A configuration (d,), how good it looks at full fidelity, and the run of it that there is already, if any."""

    x: Array
    height: float
    run: Run | None = None


@dataclass(frozen=True, eq=False)
class CurveSearch:
    """A history, the model of its runs, and the process after everything in flight.

    `taken` are trials that a suggestion made a moment ago continues.
    """

    history: History
    runs: Sequence[Run]
    model: CurveModel
    gp: GP
    taken: frozenset[int] = frozenset()
    chosen: tuple[Suggestion, ...] = ()

    @cached_property
    def bought(self) -> Bought:
        """What is done, in flight or chosen: a second time it would tell nothing new."""
        return Bought.of(self.history, self.chosen)

    @cached_property
    def fidelities(self) -> Fidelities:
        return Fidelities(self.history.problem.space)

    @cached_property
    def cost(self) -> CostModel:
        return cost_of_runs(self.history, list(self.runs))

    @cached_property
    def grid(self) -> Array:
        """The levels of fidelity to choose from (G, m), the least first."""
        return self.fidelities.grid()

    @cached_property
    def seen(self) -> Array:
        """Configurations that have a result (N, d)."""
        return self._encoder.encode([run.params for run in recommendable(self.runs)])

    @property
    def best_mean(self) -> float:
        """The lowest loss that is expected at full fidelity of a configuration seen."""
        return float(np.min(self.gp.mean(self.fidelities.at_full(self.seen))))

    def best_option(
        self, acquisition: Callable[[GP], Acquisition], generator: np.random.Generator, *, may_be_new: bool
    ) -> Option | None:
        """The highest at full fidelity of all paused runs and, where there `may_be_new` ones, all configurations."""
        target = acquisition(self.gp)
        options = [self._best_paused(target), self._best_new(target, generator) if may_be_new else None]
        return max((option for option in options if option), key=lambda option: option.height, default=None)

    def targets(self, option: Option) -> tuple[Array, Array]:
        """The levels (G, m) to which an option can be trained, and from where it would pay (m,)."""
        if option.run is None:
            return self.grid, np.zeros(self.fidelities.count)
        stands = option.run.reached
        saves = continuing_saves(self.history) and bool(self.fidelities.is_trace.any())
        return self._unbought(option.run, self._above(stands)), starts_at(option.run, is_saving=saves)

    def suggestion(self, option: Option, s: Array) -> Suggestion:
        """The evaluation of an option at s (m,), with what is to be remembered of the models."""
        source = option.run.last if option.run else None
        return Suggestion(
            self._encoder.decode(option.x[None, :])[0] if source is None else source.params,
            self._encoder.decode_fidelity(s[None, :])[0],
            resume_from=None if source is None else source.number,
            note={**self.model.note(), **self.cost.note()},
        )

    def after(self, suggestions: Iterable[Suggestion]) -> "CurveSearch":
        """As if each of these had returned what is expected of it."""
        found = self
        for chosen in suggestions:
            source = frozenset() if chosen.resume_from is None else frozenset({chosen.resume_from})
            believed = found._kriging_believer(chosen)
            found = replace(found, gp=believed, taken=found.taken | source, chosen=(*found.chosen, chosen))
        return found

    @property
    def _encoder(self) -> Encoder:
        return self.history.problem.space.encoder

    def _kriging_believer(self, evaluation: Suggestion | Trial) -> GP:
        x = self._encoder.encode([evaluation.params])
        return self.gp.kriging_believer(np.hstack([x, self._encoder.encode_fidelity([evaluation.fidelity])]))

    def _above(self, stands: Array) -> Array:
        """Further along the traces; where there are none, anything that is more in one fidelity and less in none."""
        if self.fidelities.is_trace.any():
            return self.fidelities.further(self.grid, stands)
        return np.asarray(self.grid[np.all(self.grid >= stands, axis=1) & np.any(self.grid > stands, axis=1)])

    def _unbought(self, run: Run, levels: Array) -> Array:
        """Levels to which no run of the same params was trained."""
        X = np.repeat(self._encoder.encode([run.params]), len(levels), axis=0)
        return np.asarray(levels[~self.bought.has(X, levels)])

    def _best_paused(self, target: Acquisition) -> Option | None:
        waiting = [run for run in self.runs if self._is_waiting(run)]
        if not waiting:
            return None
        X = self._encoder.encode([run.params for run in waiting])
        heights = target(self.fidelities.at_full(X))
        best = int(np.argmax(heights))
        return Option(X[best], float(heights[best]), waiting[best])

    def _is_waiting(self, run: Run) -> bool:
        if run.last is None or not run.is_paused or run.last.number in self.taken:
            return False
        return bool(np.any(run.reached < 1.0)) and len(self.targets(_of(run))[0]) > 0

    def _best_new(self, target: Acquisition, generator: np.random.Generator) -> Option:
        domain = domain_of(self._encoder)
        order = np.argsort(self.gp.mean(self.fidelities.at_full(self.seen)), kind="stable")
        plain = FixedFeatures(target, self.fidelities.full)
        steered = believed(plain, self.history, results=len(self.history.done))
        function = unvisited(steered, domain, self.gp.X[:, : domain.width])
        found = maximize(function, domain, rng=generator, offered=self.seen[order[:OFFERED]], effort=ORDINARY)
        if self.bought.knows(found.x[None, :])[0]:  # a corner of a continuous space
            function = Unvisited(function, self._encoder.encode([run.params for run in self.runs]))
            found = maximize(function, domain, rng=generator, offered=self.seen[order[:OFFERED]], effort=ORDINARY)
        return Option(found.x, found.value if steered is plain else float(plain(found.x[None, :])[0]))


def _of(run: Run) -> Option:
    return Option(np.zeros(0), 0.0, run)


def curve_search(history: History) -> CurveSearch | None:
    """None as long as no value is known."""
    found = _fitted(history)
    return found and replace(found, gp=_after_flight(found))


def _after_flight(search: CurveSearch) -> GP:
    gp = search.gp
    for trial in search.history.in_flight:
        gp = replace(search, gp=gp)._kriging_believer(trial)
    return gp


def recommended_by_curves(history: History) -> Recommendation | None:
    """The configuration seen whose loss at full fidelity is expected to be lowest."""
    search = _fitted(history, may_refit=False)
    if search is None:
        return None
    expected = search.model.gp.mean(search.fidelities.at_full(search.seen))
    ranking = ranked(history, search.model, recommendable(search.runs), expected)
    return replace(ranking[0], ranking=ranking)


def _fitted(history: History, *, may_refit: bool = True) -> CurveSearch | None:
    runs = active_runs(history, runs_of(history), retain=RETAINED)
    if all(run.last is None for run in runs):
        return None
    model = fit_curves(history, runs, retain=RETAINED, fidelity_kernel="curves", may_refit=may_refit)
    return None if model is None else CurveSearch(history, runs, model, model.gp)
