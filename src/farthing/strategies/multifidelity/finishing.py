"""The end of a budget: successive halving among the runs at hand, so that the best of them is recommended.

A configuration that is begun near the end of a budget cannot be told from the good ones any more, and a run that is
trained to the end alone tells nothing of the others. So a third of what a budget has beyond two trainings goes into
comparing: the best half at each rung is trained to twice as much, sized so that all of it fits what is left. It is
planned again for every suggestion, from the history alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from math import floor, inf

import numpy as np

from farthing.costs import Remaining
from farthing.models.linalg import Array, IntArray
from farthing.strategies.multifidelity.candidates import ChosenEvaluation, at_levels
from farthing.strategies.multifidelity.context import CurveContext
from farthing.strategies.multifidelity.handover import TINY, is_reserve, money_left
from farthing.strategies.multifidelity.recommending import expected
from farthing.strategies.multifidelity.runs import Run, loss_up_to, recommendable
from farthing.trials import History, noted

REDUCTION = 2.0
"""From one rung to the next; the best half of a rung goes on. A guess, no other is on record."""
LOWEST = 0.1
"""Of the full fidelity: the lowest rung. Shorter runs are not compared. A guess, no other is on record."""
LEAST_DOUBT, DRAWS = 0.1, 256
"""Of `doubt`, below which the model is believed. At the first moment of comparing it was .23 to .84 in eight studies of
`lm_code` and `mixer_fashion`, .01 to .06 in four of lcbench, and at most .05 in nine of smooth functions."""
NOTE = "comparing"
"""The key in the notes of what is trained to compare runs."""
WHY = "to tell the best runs apart before the budget ends"


@dataclass(frozen=True)
class Promotion:
    """A run, by its place among the runs at hand, the share of the full fidelity it is to reach, and the price."""

    run: int
    level: float
    price: float


def finishing(
    context: CurveContext, budget: Remaining, count: int, *, trusts_model: bool
) -> list[ChosenEvaluation] | None:
    """The next trainings by which the runs are compared; None while it is too early, or nothing is left to compare."""
    if not is_ending(context, budget, trusts_model=trusts_model):
        return None
    contest, means = Contest(context, trusts_model), Means.of(context, budget)
    plan = contest.largest_plan(means)
    if plan is None:
        return None if budget.trials >= 1 else []
    return contest.first(plan, count) or contest.first(contest.beyond(plan, means), count)


def is_ending(context: CurveContext, budget: Remaining, *, trusts_model: bool) -> bool:
    """Whether no configuration may be begun any more, or only the reserve is left and it is in doubt which run is best.

    A model that is sure of that is better asked for new configurations to the end. Once runs are being compared they
    are to the end, since that is how doubt goes.
    """
    if context.only_trace is None or not context.runs:
        return False
    if budget.trials < 1 or not is_reserve(context.history, context.runs, budget):
        return budget.trials < 1
    return not trusts_model or _has_begun(context.history) or doubt(context) >= LEAST_DOUBT


def doubt(context: CurveContext) -> float:
    """The expected gain from knowing the ends of all runs, in deviations of their predictions.

    E[f(leader) − min f], with the ends f independent and normal: the value of perfect information on the runs at hand.
    """
    mean, variance = context.model.gp.predict(context.at_full(context.seen))
    normals = context.rng.at("doubt", len(context.history)).standard_normal((DRAWS, mean.size))
    ends = mean + np.sqrt(variance) * normals
    gain = float(np.mean(ends[:, np.argmin(mean)] - ends.min(axis=1)))
    return gain / max(float(np.std(mean)), TINY)


def _has_begun(history: History) -> bool:
    return any(NOTE in noted(trial.note) for trial in reversed(history))


@dataclass(frozen=True)
class Means:
    """The money that is left: in all, for a single training, and for how many workers side by side."""

    money: float
    longest: float = inf
    workers: int = 1

    @classmethod
    def of(cls, context: CurveContext, budget: Remaining) -> "Means":
        if not context.cost.is_in_units:
            return cls(inf)
        workers = len(context.history.in_flight) + 1
        return cls(money_left(context.history, budget), affordable(context, budget), workers)

    def pay(self, plan: Sequence[Promotion]) -> bool:
        return sum(one.price for one in plan) <= self.money

    def cover(self, plan: Sequence[Promotion]) -> bool:
        """Whether all of a plan can be paid, and ends in time: the next rung begins when the one below has ended."""
        prices = [[one.price for one in plan if one.level == level] for level in {one.level for one in plan}]
        return self.pay(plan) and sum(max(max(rung), sum(rung) / self.workers) for rung in prices) <= self.longest


def affordable(context: CurveContext, budget: Remaining) -> float:
    """The most that a single training may cost: the rest of the budget, if the model predicts in its unit."""
    if not context.cost.is_in_units:
        return inf
    return budget.most_to_pay(in_seconds=context.history.problem.cost_unit == "seconds")


@dataclass(frozen=True, eq=False)
class Contest:
    """The runs that may be recommended, and the rungs on which they are compared."""

    context: CurveContext
    trusts_model: bool
    _prices: dict[tuple[int, float, float], float] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def runs(self) -> list[Run]:
        return recommendable(self.context.runs)

    @cached_property
    def reach(self) -> Array:
        return np.array([float(run.reached[0]) for run in self.runs])

    @cached_property
    def rows(self) -> Array:
        return self.context.params_of(self.runs)

    @cached_property
    def rungs(self) -> list[float]:
        """Shares of the full fidelity; one that is close to it is left out."""
        levels = [min(LOWEST, float(self.reach.max()))]
        while levels[-1] * REDUCTION**1.5 < 1.0:
            levels.append(levels[-1] * REDUCTION)
        rounded = self.context.fidelities.rounded(np.array([*levels, 1.0])[:, None])[:, 0]
        return [float(level) for level in np.unique(rounded)]

    @cached_property
    def losses(self) -> Array:
        """The loss of each run on each rung (rungs, runs), infinite where it has not come so far."""
        return np.array([[loss_up_to(run, level) for run in self.runs] for level in self.rungs])

    @cached_property
    def expected(self) -> Array:
        return expected(self.context.history, self.context.model, self.runs)

    @cached_property
    def places(self) -> list[int]:
        """The place of each of the runs among all runs of the context."""
        by_identity = {id(run): place for place, run in enumerate(self.context.runs)}
        return [by_identity[id(run)] for run in self.runs]

    def largest_plan(self, means: Means) -> list[Promotion] | None:
        """The promotions of the largest halving that can be paid, the lowest rung first.

        Where that does not end in time, the largest in which a run is trained to the end, from the lowest rung that has
        one. If nothing fits, the best run one rung further. None where every run has come as far as it is to come.
        """
        most = len(self.runs) if means.money < inf else max(1, len(self.runs) // int(REDUCTION))
        halvings = self._halvings(most, 0)
        if not halvings:
            return None
        rungs = range(len(self.rungs) - 1)
        complete = (plan for rung in rungs for plan in self._halvings(most, rung) if plan[-1].level == self.rungs[-1])
        wanted = chain([plan for plan in halvings if means.pay(plan)][:1], complete, halvings)
        return next((plan for plan in wanted if means.cover(plan)), None) or self.beyond((), means)[:1]

    def _halvings(self, most: int, lowest: int) -> list[list[Promotion]]:
        """Lists the halvings that begin at a rung, the largest first."""
        return [plan for size in reversed(_sizes(most)) if (plan := self._plan(size, lowest))]

    def _plan(self, size: int, lowest: int) -> list[Promotion]:
        """The promotions of a halving in which so many leave the rung `lowest`, its own first.

        Higher up it goes by what is known today: it is planned again when results have come.
        """
        reach, found = self.reach.copy(), list[Promotion]()
        members = list(range(len(self.runs)))
        for rung in range(lowest, len(self.rungs) - 1):
            there = [run for run in members if reach[run] >= self.rungs[rung] - TINY]
            members = self._best(there, rung, floor(size * REDUCTION ** (lowest - rung)))
            for run in members:
                if reach[run] < self.rungs[rung + 1] - TINY:
                    found.append(self._promotion(run, reach[run], rung + 1))
                    reach[run] = self.rungs[rung + 1]
        return found

    def beyond(self, plan: Sequence[Promotion], means: Means) -> list[Promotion]:
        """Further promotions that end in time, for idle workers: from the highest rung down, the best of each first."""
        found, planned = list[Promotion](), {one.run for one in plan}
        for rung in reversed(range(len(self.rungs) - 1)):
            is_there = (self.reach >= self.rungs[rung] - TINY) & (self.reach < self.rungs[rung + 1] - TINY)
            there = [run for run in np.flatnonzero(is_there).tolist() if run not in planned]
            further = (self._promotion(run, self.reach[run], rung + 1) for run in self._best(there, rung, len(there)))
            found += [one for one in further if one.price <= min(means.money, means.longest)]
        return found

    def _best(self, members: list[int], rung: int, count: int) -> list[int]:
        """Of runs on a rung the best, by what they measured there and by what is expected of them, in equal parts.

        By what they measured alone where the model has no skill.
        """
        measured = _ranks(self.losses[rung, members])
        expected = _ranks(self.expected[members]) if self.trusts_model else measured
        order = np.lexsort((measured, measured + expected))
        return [members[i] for i in order[:count]]

    def first(self, plan: Sequence[Promotion], count: int) -> list[ChosenEvaluation]:
        """The first promotions of a plan whose runs are not in training, one for each run."""
        taken = set(self.context.pending.source.tolist())
        found: list[ChosenEvaluation] = []
        for promotion in plan:
            place = self.places[promotion.run]
            if place not in taken and len(found) < count:
                taken.add(place)
                found.append(self._chosen(promotion, place))
        return found

    def _chosen(self, promotion: Promotion, place: int) -> ChosenEvaluation:
        begun, level = self.context.basket.begun(place), np.array([[promotion.level]])
        candidate = at_levels(self.rows[promotion.run], level, begun=begun, source=place)
        return ChosenEvaluation(candidate, promotion.price, 0.0, reason=WHY)

    def _promotion(self, run: int, reached: float, rung: int) -> Promotion:
        level = self.rungs[rung]
        key = (run, reached, level)
        if key not in self._prices:
            begun = reached * float(self.context.basket.begun(self.places[run])[0] > 0.0)
            cost = self.context.cost(self.rows[run : run + 1], np.array([[level]]), np.array([[begun]]))
            self._prices[key] = float(cost[0])
        return Promotion(run, level, self._prices[key])


def _sizes(most: int) -> list[int]:
    """Numbers of runs that leave the lowest rung: 1, 2, 3, 4, 6, 8, 12, …."""
    return [size for size in sorted({*(2**k for k in range(12)), *(3 * 2**k for k in range(11))}) if size <= most]


def _ranks(losses: Array) -> IntArray:
    """0 for the lowest, 1 for the next, …; ties in their order."""
    ranks = np.empty(losses.size, dtype=np.int64)
    ranks[np.argsort(losses, kind="stable")] = np.arange(losses.size)
    return ranks
