"""The context: everything that a choice depends on, read from a history."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Protocol

import numpy as np

from farthing.acquisition.expected_improvement import log_expected_improvement
from farthing.acquisition.knowledge_gradient import KnowledgeGradient, antithetic_normals
from farthing.costs import EFFORT_LEVELS, EffortLevel
from farthing.models.gp import GP, VALUE
from farthing.models.linalg import Array, IntArray
from farthing.space.encoding import Encoder
from farthing.strategies.multifidelity.basket import Basket, continuing_saves
from farthing.strategies.multifidelity.candidates import NEW, Bought, Candidates, retained_points, with_params
from farthing.strategies.multifidelity.curve_model import GROWTH_BEFORE_REFIT, CurveModel, fit_curves
from farthing.strategies.multifidelity.levels import Fidelities
from farthing.strategies.multifidelity.runs import MOST_POINTS, Run, active_runs, recommendable, runs_of
from farthing.strategies.multifidelity.skill import only_trace
from farthing.strategies.shared.cost_model import CostModel, Fit, cost_model
from farthing.strategies.shared.strategy import Randomness
from farthing.trials import History, Suggestion, Trial, noted

MOST_COMPARED = 48
"""Paused runs that are compared in a long study, and configurations that may be recommended. Limits time, not tuned."""
FANTASIES: dict[EffortLevel, int] = {"ordinary": 8, "frugal": 2, "screen": 0, "several": 0}
"""Joint draws of the results of pending evaluations; zero: their mean stands in. A limit on time, not tuned."""
MOST_PENDING = 100
"""Evaluations in flight that a model takes into account, the latest ones. A limit on time, not tuned: all those of a
thousand workers would take minutes for each suggestion."""
GROWTH: dict[EffortLevel, float] = {"ordinary": 0.0, "frugal": 1.5, "screen": 1.5, "several": 4.0}
"""Hyperparameters are kept until there are this many times the trials: a fit takes half a second, in which all workers
wait. Not tuned."""
POINTS_IN_HASTE = 160
"""Points of curves that a process is conditioned on at the least effort. A limit on time, not tuned: a fit to 400 of
them takes a third of a second, in which no worker gets anything, and one to these a twentieth."""
MOST_COST = 0.2
"""Of a full training: a start that costs more than this is not bought for its price alone. A guess, not tuned."""
MOST_INFORMATION = 0.9
"""Of the variance at full fidelity: a start that tells more is worth buying. A guess, not tuned."""

Form = Literal["taKG", "taKG0"]


class Settings(Protocol):
    """The arguments of the strategy that a context depends on."""

    @property
    def zero_avoiding(self) -> bool | str: ...
    @property
    def retain(self) -> int: ...
    @property
    def samples(self) -> int: ...
    @property
    def basket(self) -> int | None: ...
    @property
    def floor(self) -> float | None: ...
    @property
    def batch_cost(self) -> str: ...
    @property
    def fidelity_kernel(self) -> str: ...


@dataclass(frozen=True, eq=False)
class CurveContext:
    """`runs` are those that are modelled; `pending` are evaluations in flight, or chosen a moment ago."""

    settings: Settings
    history: History
    runs: list[Run]
    model: CurveModel
    cost: CostModel
    rng: Randomness
    pending: Candidates
    effort: EffortLevel = "ordinary"

    @cached_property
    def fidelities(self) -> Fidelities:
        return Fidelities(self.history.problem.space)

    @property
    def encoder(self) -> Encoder:
        return self.history.problem.space.encoder

    @cached_property
    def seen(self) -> Array:
        """The configurations with a result (N, d): what is recommended by default."""
        return self.params_of(recommendable(self.runs))

    def params_of(self, runs: Sequence[Run]) -> Array:
        return self.encoder.encode([run.params for run in runs])

    @cached_property
    def basket(self) -> Basket:
        """The paused runs to compare: those that a full basket kept, and in a long study the most promising."""
        taken = set(self.pending.source.tolist())
        basket = Basket.of(self.history, self.runs, self.fidelities, taken=taken)
        if self.settings.basket is not None:
            return basket.kept(self.history)
        if not self.is_bounded or len(basket.places) <= MOST_COMPARED:
            return basket
        rows = self.at_full(self.params_of([self.runs[place] for place in basket.places]))
        best = float(np.min(self.mean(self.seen)))
        return basket.best(log_expected_improvement(*self.kriging_believer.predict(rows), best), MOST_COMPARED)

    @cached_property
    def recommendable(self) -> Array:
        """The configurations that may be recommended after one more evaluation (M, d): in a long study the best."""
        if not self.is_bounded:
            return self.seen
        return np.asarray(self.seen[np.sort(np.argsort(self.mean(self.seen), kind="stable")[:MOST_COMPARED])])

    @property
    def is_bounded(self) -> bool:
        """Whether the study is so long that some of its curves are modelled by their ends, or not at all."""
        return any(run.is_end_only for run in self.runs)

    @cached_property
    def form(self) -> Form:
        if self.settings.zero_avoiding != "auto":
            return "taKG0" if self.settings.zero_avoiding else "taKG"
        ones = np.ones((self.seen.shape[0], self.fidelities.count))
        nothing = np.zeros_like(ones)
        shares = self.cost(self.seen, self.fidelities.low * ones, nothing) / self.cost(self.seen, ones, nothing)
        return measured_form(self.model.gp, self.fidelities, float(np.median(shares)), self.seen)

    @cached_property
    def only_trace(self) -> str | None:
        return only_trace(self.history)

    @cached_property
    def grid(self) -> Array:
        """The levels worth considering (G, m)."""
        return self.fidelities.grid(self.floor)

    @property
    def floor(self) -> float:
        """The least share of each fidelity."""
        return self.settings.floor or 0.0

    def at_full(self, X: Array) -> Array:
        return self.fidelities.at_full(X)

    @cached_property
    def bought(self) -> Bought:
        """The rows that are done, in flight or chosen: a second time they would tell nothing new."""
        return Bought.of(self.history).and_also(self.pending)

    def unbought(self, candidates: Candidates) -> Candidates:
        """Candidates that were not bought already; all of them where every one was, in a space that is used up."""
        is_new = ~self.bought.has(candidates.X, candidates.S)
        return candidates.picked(is_new) if is_new.any() else candidates

    def twin(self, candidate: Candidates) -> Run | None:
        """A run that has the params of a candidate that is trained from nothing."""
        place = int(candidate.source[0])
        if place != NEW or not self.bought.knows(candidate.X)[0]:
            return None
        same = np.all(np.isclose(self.params_of(self.runs), candidate.X, rtol=0.0, atol=1e-9, equal_nan=True), axis=1)
        return self.runs[int(np.argmax(same))] if same.any() else None

    def source(self, candidate: Candidates) -> Trial | None:
        """The trial that a candidate continues."""
        place = int(candidate.source[0])
        return None if place == NEW else self.runs[place].last

    # --------------------------------------------------------------------------------------------- processes

    @cached_property
    def processes(self) -> list[Sequence[GP]]:
        """For each sample of the hyperparameters, the process after each fantasy of what is pending."""
        return [self._after_pending(gp) for gp in self.model.processes]

    @cached_property
    def kriging_believer(self) -> GP:
        """One process for all of these: as if what is pending had returned what is expected of it."""
        gp = self.model.processes[0]
        return gp.kriging_believer(self._pending_rows) if len(self.pending) else gp

    def _after_pending(self, gp: GP) -> Sequence[GP]:
        if len(self.pending) == 0:
            return (gp,)
        if not (count := FANTASIES[self.effort]):
            return (gp.kriging_believer(self._pending_rows),)
        rng = self.rng.at("fantasies", len(self.history), len(self.pending))
        return gp.fantasies(self._pending_rows, count, rng=rng)

    @cached_property
    def _pending_rows(self) -> Array:
        latest = self.pending.picked(np.arange(max(0, len(self.pending) - MOST_PENDING), len(self.pending)))
        points = retained_points(latest, self.fidelities, retain=self.settings.retain)
        return with_params(latest.X, points).reshape(-1, self.model.gp.X.shape[1])

    def mean(self, X: Array) -> Array:
        """The posterior mean at full fidelity (N,), over samples and fantasies."""
        rows = self.at_full(X)
        return np.asarray(np.mean([gp.mean(rows) for processes in self.processes for gp in processes], axis=0))

    def information(
        self, choices: Array, *, free: int, bought: int, pairs: int, draw: int = 0
    ) -> list[KnowledgeGradient]:
        """The value of information where one of `choices` (M, d) is recommended, for each sample.

        Normals are common to all candidates; another `draw` has others.
        """
        normals = antithetic_normals(pairs, free, bought, rng=self.rng.at("normals", len(self.history), draw))
        return [KnowledgeGradient(found, self.at_full(choices), normals, free) for found in self.processes]

    @property
    def observed(self) -> IntArray:
        """The observations of each point of S: its value, and slopes along all columns if any were seen (ta-dKG⁰)."""
        return np.array([VALUE, *self.model.sloped_columns], dtype=np.int64)

    def with_also(self, chosen: Candidates) -> "CurveContext":
        """The context once something was chosen."""
        return replace(self, pending=self.pending.and_also(chosen))


def read_context(
    settings: Settings,
    history: History,
    rng: Randomness,
    chosen: Sequence[Suggestion],
    *,
    effort: EffortLevel = "ordinary",
) -> CurveContext | None:
    """None where no value is known yet."""
    is_in_haste = effort == EFFORT_LEVELS[-1]
    most = POINTS_IN_HASTE if is_in_haste else MOST_POINTS
    runs = active_runs(history, runs_of(history), retain=settings.retain, most=most)
    may_refit = _has_outgrown_its_fit(history, GROWTH[effort])
    model = fit_curves(
        history,
        runs,
        retain=settings.retain,
        fidelity_kernel=settings.fidelity_kernel,
        may_refit=may_refit,
        samples=settings.samples,
    )
    if model is None or not any(run.last for run in runs):
        return None
    cost, pending = cost_of_runs(history, runs, may_refit=may_refit), in_flight(history, runs, chosen)
    return CurveContext(settings, history, runs, model, cost, rng, pending, effort)


def cost_of_runs(history: History, runs: Sequence[Run], *, may_refit: bool = True) -> CostModel:
    """The cost model of what the trials of these runs paid."""
    trials = [trial for run in runs for trial in run.trials]
    fit = Fit.noted(history, growth=GROWTH_BEFORE_REFIT if may_refit else None)
    return cost_model(history, trials, fit, saves=continuing_saves(history))


def _has_outgrown_its_fit(history: History, growth: float) -> bool:
    """Whether there are that many times as many finished trials as when hyperparameters were last fitted."""
    notes = (noted(trial.note) for trial in reversed(history))
    fitted_on = next((note["fitted_on"] for note in notes if "fitted_on" in note), 0)
    return history.finished > growth * fitted_on


def in_flight(history: History, runs: Sequence[Run], chosen: Sequence[Suggestion]) -> Candidates:
    """The rows that trials in flight and suggestions just made are going to observe."""
    encoder, nothing = history.problem.space.encoder, np.zeros(len(history.problem.space.fidelities))
    fidelities = Fidelities(history.problem.space)
    found = [
        (run.params, trial.fidelity, run.reached if run.last is not None else nothing, i)
        for i, run in enumerate(runs)
        for trial in run.trials
        if not trial.is_finished
    ]
    found += [(suggestion.params, suggestion.fidelity, nothing, NEW) for suggestion in chosen]
    return Candidates(
        X=encoder.encode([params for params, _, _, _ in found]),
        S=encoder.encode_fidelity([fidelity for _, fidelity, _, _ in found]),
        begun=np.array([begun for _, _, begun, _ in found]).reshape(len(found), fidelities.count),
        source=np.array([source for _, _, _, source in found], dtype=np.int64),
    )


def measured_form(gp: GP, fidelities: Fidelities, least_cost: float, x: Array) -> Form:
    """taKG⁰ where cost and information vanish together as the fidelity goes to zero: a cheap start that tells little.

    `least_cost` is what the least amount costs of a full training; x (N, d) are configurations to judge the model at.
    """
    return "taKG0" if least_cost <= MOST_COST and told_by_zero(gp, fidelities, x) <= MOST_INFORMATION else "taKG"


def told_by_zero(gp: GP, fidelities: Fidelities, x: Array) -> float:
    """ρ² between f(x, 0) and f(x, 1) under the prior, in the fidelity that tells the most."""
    ones = np.ones((x.shape[0], fidelities.count))
    shares = []
    for i in range(fidelities.count):
        S = ones.copy()
        S[:, i] = 0.0
        pair = np.stack([np.hstack([x, S]), fidelities.at_full(x)], axis=1)
        K = gp.kernel.evaluate(gp.theta, pair).K
        shares.append(float(np.mean(K[:, 0, 1] ** 2 / (K[:, 0, 0] * K[:, 1, 1]))))
    return max(shares)
