"""The end of a budget: successive halving among the runs at hand, so that the best of them is recommended.

A configuration that is begun near the end of a budget cannot be told from the good ones any more, and a run that is
trained to the end alone tells nothing of the others. So the last third goes into comparing: the best half at each rung
is trained to twice as much, sized so that all of it fits what is left. It is planned again for every suggestion, from
the history alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import floor, inf

import numpy as np

from farthing.costs import Remaining
from farthing.models.linalg import Array, IntArray
from farthing.strategies.multifidelity.candidates import ChosenEvaluation, at_levels
from farthing.strategies.multifidelity.context import CurveContext
from farthing.strategies.multifidelity.recommending import expected
from farthing.strategies.multifidelity.runs import Run, loss_up_to, recommendable
from farthing.strategies.shared.searching import share_left
from farthing.trials import History

RESERVE = 0.35
"""The share of a budget that is kept for comparing. Chosen on the tables of `real-curves-tuning`;
`docs/systems/multifidelity.md` lists what was tried."""
REDUCTION = 2.0
"""From one rung to the next; the best half of a rung goes on. No other was better on the same tables."""
LOWEST = 0.1
"""Of the full fidelity: the lowest rung. Shorter runs are not compared; rungs from a twentieth on were worse."""
LEAST_DOUBT, DRAWS = 0.1, 256
"""Of `doubt`, below which the model is believed. At the first moment of comparing it was .23 to .84 in eight studies of
`lm_code` and `mixer_fashion`, .01 to .06 in four of lcbench, and at most .05 in nine of smooth functions."""
TINY = 1e-9
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
    contest = Contest(context, trusts_model)
    plan = contest.largest_plan(money_left(context, budget))
    if plan is None:
        return None if budget.trials >= 1 else []
    return contest.first(plan, count) or contest.first(contest.best_that_wait(affordable(context, budget)), count)


def is_ending(context: CurveContext, budget: Remaining, *, trusts_model: bool) -> bool:
    """Whether no configuration may be begun any more, or only the reserve is left and it is in doubt which run is best.

    A model that is sure of that is better asked for new configurations to the end. Once runs are being compared they
    are to the end, since that is how doubt goes.
    """
    if context.only_trace is None or not context.runs:
        return False
    limited = Remaining(cost=budget.cost, seconds=budget.seconds)
    if budget.trials < 1 or share_left(context.history, limited) > RESERVE:
        return budget.trials < 1
    return not trusts_model or _has_begun(context.history) or doubt(context) >= LEAST_DOUBT


def doubt(context: CurveContext) -> float:
    """What knowing the ends of all runs would be expected to gain, in deviations of what is predicted of them.

    E[f(leader) − min f], with the ends f independent and normal: the value of perfect information on the runs at hand.
    """
    mean, variance = context.model.gp.predict(context.at_full(context.seen))
    normals = context.rng.at("doubt", len(context.history)).standard_normal((DRAWS, mean.size))
    ends = mean + np.sqrt(variance) * normals
    gain = float(np.mean(ends[:, np.argmin(mean)] - ends.min(axis=1)))
    return gain / max(float(np.std(mean)), TINY)


def _has_begun(history: History) -> bool:
    return any(isinstance(trial.note, dict) and NOTE in trial.note for trial in reversed(history))


def money_left(context: CurveContext, budget: Remaining) -> float:
    """The cost that may still be paid in all; seconds that are left are left to every worker."""
    if not context.cost.is_in_units:
        return inf
    is_time = context.history.problem.cost_unit == "seconds"
    return min(budget.cost, budget.seconds * (len(context.history.in_flight) + 1) if is_time else inf)


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
        """Where each of the runs stands among all runs of the context."""
        by_identity = {id(run): place for place, run in enumerate(self.context.runs)}
        return [by_identity[id(run)] for run in self.runs]

    def largest_plan(self, left: float) -> list[Promotion] | None:
        """The promotions of the largest halving that `left` pays for; of none, the best run as far as it can come.

        None where every run that would be compared has come as far as it is to come.
        """
        most = len(self.runs) if left < inf else max(1, len(self.runs) // int(REDUCTION))
        plans = [plan for size in _sizes(most) if (plan := self._plan(size))]
        affordable = [plan for plan in plans if sum(one.price for one in plan) <= left]
        if not plans:
            return None
        return affordable[-1] if affordable else self.best_that_wait(left)[:1]

    def _plan(self, size: int) -> list[Promotion]:
        """The promotions of a halving in which so many leave the lowest rung, the lowest rung first.

        Higher up it goes by what is known today: it is planned again when results have come.
        """
        reach, found = self.reach.copy(), list[Promotion]()
        members = list(range(len(self.runs)))
        for rung, following in enumerate(self.rungs[1:]):
            there = [run for run in members if reach[run] >= self.rungs[rung] - TINY]
            members = self._best(there, rung, floor(size * REDUCTION**-rung))
            for run in members:
                if reach[run] < following - TINY:
                    found.append(Promotion(run, following, self._price(run, reach[run], following)))
                    reach[run] = following
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

    def _price(self, run: int, reached: float, level: float) -> float:
        key = (run, reached, level)
        if key not in self._prices:
            begun = reached * float(self.context.basket.begun(self.places[run])[0] > 0.0)
            cost = self.context.cost(self.rows[run : run + 1], np.array([[level]]), np.array([[begun]]))
            self._prices[key] = float(cost[0])
        return self._prices[key]

    def best_that_wait(self, left: float) -> list[Promotion]:
        """The runs that are not complete, as far as each can be trained; what is expected to be best comes first.

        For workers that would be idle while those of a plan are in training.
        """
        found: list[Promotion] = []
        for run in np.argsort(self.expected, kind="stable").tolist():
            reached = float(self.reach[run])
            further = [level for level in self.rungs if level > reached + TINY]
            prices = [(level, self._price(run, reached, level)) for level in further]
            found += [Promotion(run, level, price) for level, price in prices if price <= left][-1:]
        return found


def _sizes(most: int) -> list[int]:
    """Numbers of runs that leave the lowest rung: 1, 2, 3, 4, 6, 8, 12, …."""
    return [size for size in sorted({*(2**k for k in range(12)), *(3 * 2**k for k in range(11))}) if size <= most]


def _ranks(losses: Array) -> IntArray:
    """0 for the lowest, 1 for the next, …; ties in their order."""
    ranks = np.empty(losses.size, dtype=np.int64)
    ranks[np.argsort(losses, kind="stable")] = np.arange(losses.size)
    return ranks
