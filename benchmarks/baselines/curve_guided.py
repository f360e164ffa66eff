"""Common to rules that use a model of learning curves: random starts, then one choice after another."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from farthing.costs import Remaining
from farthing.strategies.shared.starts import first_params, starts_in_vain
from farthing.strategies.shared.strategy import Randomness, Recommendation, Strategy
from farthing.trials import History, Suggestion

if TYPE_CHECKING:
    import numpy as np

    from benchmarks.baselines.curve_search import CurveSearch, Option
    from farthing.acquisition.acquisition import Acquisition
    from farthing.models.gp import GP
    from farthing.models.linalg import Array


STARTS = 5
"""Random configurations before the model is asked; the same number as `TraceKG` has."""


@dataclass(frozen=True)
class CurveGuided(Strategy):
    """A strategy of which a choice is all that is its own. It recommends the lowest loss expected at full fidelity."""

    takes_starts: ClassVar[bool] = True

    @abstractmethod
    def _choice(self, search: "CurveSearch", rng: "np.random.Generator", *, may_be_new: bool) -> Suggestion | None:
        """The next evaluation; None where there is nothing to continue and nothing new may begin."""

    def suggest(self, history: History, budget: Remaining, count: int, rng: Randomness) -> Sequence[Suggestion]:
        new_left = int(min(count, max(0, budget.trials)))
        starts = _start(history, max(0, min(new_left, STARTS + starts_in_vain(history) - history.configurations)), rng)
        if len(starts) == count:
            return starts
        from benchmarks.baselines.curve_search import curve_search
        from farthing.models.linalg import one_thread

        with one_thread():
            search = curve_search(history)
            if search is None:
                return _start(history, new_left, rng)
            return self._chosen(search, starts, count, new_left, rng)

    def _chosen(
        self, search: "CurveSearch", starts: list[Suggestion], count: int, new_left: int, rng: Randomness
    ) -> list[Suggestion]:
        """The starts and what is chosen after them, each as if all before had returned what is expected of them."""
        chosen, search = list(starts), search.after(starts)
        while len(chosen) < count:
            is_new_left = sum(one.resume_from is None for one in chosen) < new_left
            generator = rng.at("search", len(search.history), len(chosen))
            found = self._choice(search, generator, may_be_new=is_new_left)
            if found is None:
                break
            chosen.append(found)
            search = search.after([found])
        return chosen

    def recommend(self, history: History) -> Recommendation | None:
        from benchmarks.baselines.curve_search import recommended_by_curves
        from farthing.models.linalg import one_thread

        with one_thread():
            return recommended_by_curves(history)

    def resumable(self, history: History) -> set[int]:
        from farthing.strategies.multifidelity.basket import Basket
        from farthing.strategies.multifidelity.levels import Fidelities
        from farthing.strategies.multifidelity.runs import runs_of

        runs = runs_of(history)
        waiting = Basket.of(history, runs, Fidelities(history.problem.space)).places
        return {last.number for place in waiting if (last := runs[place].last) is not None}


def _start(history: History, count: int, rng: Randomness) -> list[Suggestion]:
    """Learnt or random configurations at the lower levels of fidelity, in turns: the model must see how they differ."""
    if count < 1:
        return []
    from farthing.strategies.multifidelity.levels import Fidelities

    space, numbers = history.problem.space, range(len(history), len(history) + count)
    levels = space.encoder.decode_fidelity(Fidelities(space).grid())
    lower = levels[: max(1, len(levels) // 2)]
    first = zip(numbers, first_params(history, numbers, rng), strict=True)
    return [Suggestion(one.params, lower[number % len(lower)], note=one.noted()) for number, one in first]


# ------------------------------------------------------------
# BOCA: a confidence bound chooses the configuration, the cheapest fidelity that still tells something is bought.


@dataclass(frozen=True)
class BOCA(CurveGuided):
    """Multi-fidelity optimisation with continuous approximations (after Kandasamy et al., 2017).

    The configuration is the one whose loss at full fidelity might be lowest, μ − √β σ with β_t = 0.5 d log(2t + 1). It
    is evaluated at the cheapest fidelity at which the model is uncertain enough: where the posterior deviation exceeds
    the prior one times the information gap ξ = √(1 − ρ²) to full fidelity times (cost/full cost)^q,
    q = 1/(fidelities + d + 2). A paused run of that configuration is continued. The model is that of `TraceKG`, where
    the paper has a Gaussian kernel over the fidelities. Recommends the lowest loss expected at full
    fidelity among the configurations seen.
    """

    needs_gap: ClassVar[bool] = False

    def _choice(self, search: "CurveSearch", rng: "np.random.Generator", *, may_be_new: bool) -> Suggestion | None:
        from benchmarks.baselines.bounds import boca_beta
        from farthing.acquisition.confidence_bound import ConfidenceBound

        dimension = search.history.problem.space.encoder.dimension
        beta = boca_beta(search.history.configurations, dimension)

        def bound(gp: "GP") -> "Acquisition":
            return ConfidenceBound(gp, beta)

        option = search.best_option(bound, rng, may_be_new=may_be_new)
        return None if option is None else search.suggestion(option, self._level(search, option, beta))

    def _level(self, search: "CurveSearch", option: "Option", beta: float) -> "Array":
        return _telling_level(search, option, beta=beta if self.needs_gap else None)


@dataclass(frozen=True)
class BOCAWithGap(BOCA):
    """BOCA with the paper's other condition, ξ > max ξ/√β, without which it takes full fidelity.

    With a β as small as that of its experiments hardly anything but the ends is left, and the authors' own program
    (dragonfly) goes without it.
    """

    needs_gap: ClassVar[bool] = True


def _telling_level(search: "CurveSearch", option: "Option", *, beta: float | None = None) -> "Array":
    """The cheapest level s at which σ(x, s) > √k(s, s) ξ(s) (cost/full cost)^q, and with a β ξ(s) > max ξ/√β.

    Where there is none, the most expensive one.
    """
    import numpy as np

    levels, begun = search.targets(option)
    X = np.tile(option.x, (len(levels), 1))
    cost = search.cost(X, levels, np.tile(begun, (len(levels), 1)))
    full_cost = search.cost(X[:1], np.ones_like(levels[:1]), np.zeros_like(levels[:1]))
    rows = np.hstack([X, levels])
    q = 1.0 / (rows.shape[1] + 2)
    gap, deviation = _information_gap(search, option.x, rows)
    is_telling = np.sqrt(search.gp.predict(rows)[1]) > deviation * gap * np.minimum(cost / full_cost, 1.0) ** q
    if beta is not None:
        everywhere = np.hstack([np.tile(option.x, (len(search.grid), 1)), search.grid])
        is_telling &= gap > _information_gap(search, option.x, everywhere)[0].max() / np.sqrt(beta)
    if not is_telling.any():
        return np.asarray(levels[int(np.argmax(cost))])
    return np.asarray(levels[int(np.argmin(np.where(is_telling, cost, np.inf)))])


def _information_gap(search: "CurveSearch", x: "Array", rows: "Array") -> tuple["Array", "Array"]:
    """ξ = √(1 − ρ²), the share of f(x, 1) that f(x, s) leaves open under the prior, and the prior's deviation √k."""
    import numpy as np

    K = search.gp.kernel.evaluate(search.gp.theta, np.concatenate([search.fidelities.at_full(x[None, :]), rows])).K
    variance = np.diag(K)
    unexplained = 1.0 - K[0, 1:] ** 2 / (variance[0] * variance[1:])
    return np.sqrt(np.maximum(unexplained, 0.0)), np.sqrt(variance[1:])


# ------------------------------------------------------------
# Freeze-thaw: train the most promising run a step further, paused or new.


@dataclass(frozen=True)
class FreezeThawEI(CurveGuided):
    """Expected improvement of the final loss under a model of learning curves (after Swersky et al., 2014, and DyHPO).

    Every paused run and the best new configuration compete by the improvement that is expected of them at full
    fidelity; the winner is trained one level further, levels being a factor of 1.65 apart. The choice is blind to cost.
    Recommends the lowest loss expected at full fidelity among the configurations seen.
    """

    def _choice(self, search: "CurveSearch", rng: "np.random.Generator", *, may_be_new: bool) -> Suggestion | None:
        from farthing.acquisition.expected_improvement import LogExpectedImprovement

        best = search.best_mean

        def improvement(gp: "GP") -> "Acquisition":
            return LogExpectedImprovement(gp, best)

        option = search.best_option(improvement, rng, may_be_new=may_be_new)
        if option is None:
            return None
        return search.suggestion(option, _next_level(search, search.targets(option)[0]))


def _next_level(search: "CurveSearch", levels: "Array") -> "Array":
    """The least of the levels; what is no trace is at its full amount where traces are there to be short of."""
    import numpy as np

    trace = search.fidelities.is_trace
    if trace.any():
        levels = levels[np.all(levels[:, ~trace] == levels[:, ~trace].max(axis=0), axis=1)]
    return np.asarray(levels[int(np.argmin(np.prod(levels, axis=1)))])
