"""taKG and taKG⁰ to the letter of the paper, to compare with (Wu, Toscano-Palmerin, Frazier and Wilson, 2020)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from farthing.costs import Remaining
from farthing.fields import whole
from farthing.models.linalg import one_thread
from farthing.strategies.multifidelity.ascent import choose_together
from farthing.strategies.multifidelity.basket import Basket
from farthing.strategies.multifidelity.context import read_context
from farthing.strategies.multifidelity.finishing import affordable
from farthing.strategies.multifidelity.levels import Fidelities
from farthing.strategies.multifidelity.recommending import recommend_anywhere
from farthing.strategies.multifidelity.runs import runs_of
from farthing.strategies.multifidelity.takg import random_starts, require_fidelities, starts_left, suggestion_of
from farthing.strategies.shared.strategy import Randomness, Recommendation, Strategy
from farthing.trials import History, Suggestion


@dataclass(frozen=True)
class PublishedTraceKG(Strategy):
    """The method as published, which `TraceKG.paper()` makes, to compare with.

    A squared-exponential kernel over params (section 5.3); losses as they are; ten samples of the hyperparameters by
    the sampler of emcee (section 3); a basket of ten, which drops the entry that is worth least (section 2.6);
    stochastic gradient ascent over params, fidelities and retained points, x* of each draw searched for in the whole
    space (section 2.5); and the lowest posterior mean anywhere.

    The paper leaves open, and we chose: a lengthscale for each param and log-normal priors; samples drawn anew when
    there are 12 % more trials; five random starts at 13 % of the fidelity; four new configurations and every entry of
    the basket climb, 20 steps each; several evaluations are chosen one after another and then climb together; only
    what was trained enters the basket; a warm start costs at least the fixed part of its cost, and goes on by a tenth
    of what is left; points retained keep a tenth of the curve between them; points known for free have no noise, others
    at least a thousandth of the prior's variance. Losses are shifted and scaled as a whole, which changes the units of
    the priors only. The cost model is that of `TraceKG`.

    Args:
        zero_avoiding: taKG⁰, or else taKG.
        samples: of the hyperparameters.
        retain: |S|, the points of each curve that enter the model: 2 or 3 in the paper.
        basket: the number of paused runs that may be continued.
    """

    zero_avoiding: bool = True
    samples: int = whole(10, least=1)
    retain: int = whole(2, least=1)
    basket: int = whole(10, least=0)

    takes_starts: ClassVar[bool] = True
    differences: ClassVar[str] = (
        "a squared-exponential kernel instead of Matérn, losses as they are, ten samples of the hyperparameters, "
        "a basket that drops what is worth least, stochastic ascent."
    )

    @property
    def floor(self) -> float:
        return 0.0

    @property
    def batch_cost(self) -> str:
        return "max"

    @property
    def fidelity_kernel(self) -> str:
        return "published"

    def suggest(self, history: History, budget: Remaining, count: int, rng: Randomness) -> Sequence[Suggestion]:
        require_fidelities(history)
        starts = random_starts(history, budget, min(count, starts_left(history, budget)), rng)
        if len(starts) == count:
            return starts
        with one_thread():
            context = read_context(self, history, rng, starts)
            if context is None:
                return [*starts, *random_starts(history, budget, count - len(starts), rng, after=starts)]
            limit, new_left = affordable(context, budget), budget.trials - len(starts)
            chosen = choose_together(context, count - len(starts), limit=limit, new_left=new_left)
            return [*starts, *(suggestion_of(context, choice) for choice in chosen)]

    def recommend(self, history: History) -> Recommendation | None:
        """The lowest posterior mean at full fidelity anywhere in the space; the trial is the best of those seen."""
        with one_thread():
            return recommend_anywhere(self, history) if history.done else None

    def resumable(self, history: History) -> set[int]:
        basket = Basket.of(history, runs_of(history), Fidelities(history.problem.space))
        return basket.kept(history).last_trials
