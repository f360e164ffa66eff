"""Rules that say whether a round's measurement is worth paying for. One small object each."""

from dataclasses import dataclass
from functools import cache
from typing import Annotated

import numpy as np
from scipy.special import ndtr

from farthing.acquisition.confidence_bound import lower_confidence_bound, upper_confidence_bound
from farthing.acquisition.expected_improvement import expected_excess
from farthing.errors import InvalidArgument
from farthing.fields import Declaration, Number, Part, Whole, number, positive, share, whole
from farthing.models.linalg import Array, IntArray
from farthing.names import QUERY_RULE
from farthing.online.context import Query, QueryRule, RoundContext

LONE = "the choice has no rival to be compared with"
COIN = "the coin of this round says so"


@dataclass(frozen=True)
class Confidence(Declaration):
    """The paper's rule: ask while P(f(x_t) > f(x)) < κ for some rival x.

    P = Φ((μ_t − μ_x)/√(σ_t² + σ_x²)) with latent variances, as if x and x_t were independent. A lone optimum asks:
    otherwise the rule would be empty and the tuner silent for good.
    """

    kappa: float = share(0.9)

    def ask(self, context: RoundContext) -> Query | None:
        rivals, choice = context.rivals, context.choice
        if not rivals.size:
            return Query(choice, LONE)
        gap = context.mean[choice] - context.mean[rivals]
        least = float(np.min(ndtr(gap / np.sqrt(context.variance[choice] + context.variance[rivals]))))
        if least >= self.kappa:
            return None
        return Query(choice, f"the choice beats a rival with probability {least:.2f} < {self.kappa:g}")


@dataclass(frozen=True)
class Overlap(Declaration):
    """The paper's rule @*: ask while some rival's upper bound exceeds the lower bound of the choice.

    No κ does the same: two confidence intervals of different widths are not one probability.
    """

    def ask(self, context: RoundContext) -> Query | None:
        rivals, choice = context.rivals, context.choice
        if not rivals.size:
            return Query(choice, LONE)
        lower = lower_confidence_bound(context.mean[choice], context.variance[choice], context.beta)
        upper = upper_confidence_bound(context.mean[rivals], context.variance[rivals], context.beta)
        if np.all(upper <= lower):
            return None
        return Query(choice, "a rival's upper bound exceeds the choice's lower bound")


@dataclass(frozen=True)
class Bernoulli(Declaration):
    """Ask with probability p, whatever is known."""

    p: float = share(0.2)

    def ask(self, context: RoundContext) -> Query | None:
        return Query(context.choice, COIN) if context.happens("bernoulli", self.p) else None


@dataclass(frozen=True)
class Every(Declaration):
    """Ask in every n-th round, from the first one on."""

    n: int = whole(5, least=1)

    def ask(self, context: RoundContext) -> Query | None:
        return Query(context.choice, f"every {self.n} rounds") if (context.round - 1) % self.n == 0 else None


@dataclass(frozen=True)
class ExpectedRegret(Declaration):
    """Ask while the choice is expected to lose more than `price` a round against some rival: max E[(f(x) − f(x_t))₊].

    The price is in prior standard deviations of the value; a share of `OnlineTuner(price=…)` for each round that is
    left takes its place. Rivals are places all over the space, not optima only: a better place on a slope, or where
    little is known, counts. The expectation takes their covariance with the choice into account.
    """

    price: float = number(0.1, least=0.0)

    def ask(self, context: RoundContext) -> Query | None:
        places = context.alternatives
        if not places.size:
            return Query(context.choice, LONE)
        regret = float(np.max(expected_excess(*context.differences(places)))) / context.deviation
        price = self.price if context.price is None else context.price / (context.remaining * context.deviation)
        if regret <= price:
            return None
        return Query(context.choice, f"the expected regret {regret:.3g} exceeds the price {price:.3g}")


def has_price(rule: QueryRule) -> bool:
    """Whether the rule, or the one that it wraps, weighs what a measurement brings against a price."""
    inner = getattr(rule, "rule", None)
    return hasattr(rule, "price") or (inner is not None and has_price(inner))


# ----------------------------------------------------------------------------------------------------------- wrappers


@dataclass(frozen=True)
class Quota(Declaration):
    """The paper's quotas: B1 = `sure` measurements are asked for by coins of their own, up to B2 = `allowed` may be.

    Each round asks with probability B1/T, and else lets the rule ask with probability (B2 − B1)/T. Both bound the mean
    number of measurements, not the number itself: `Capped` does that.
    """

    rule: Annotated[QueryRule, Part(QUERY_RULE)]
    sure: Annotated[float, Number(least=0.0)]
    allowed: Annotated[float, Number(least=0.0)]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sure > self.allowed:
            raise InvalidArgument(
                f"Quotas must satisfy 0 ≤ sure ≤ allowed, got {self.sure:g} and {self.allowed:g}. "
                "Give the measurements that are always taken first."
            )

    def ask(self, context: RoundContext) -> Query | None:
        if context.happens("sure", self.sure / context.rounds):
            return Query(context.choice, "the sure quota pays for this round")
        if not context.happens("allowed", (self.allowed - self.sure) / context.rounds):
            return None
        return self.rule.ask(context)


@dataclass(frozen=True)
class Capped(Declaration):
    """Lets the rule ask until `most` measurements are taken, the first one included; then never again."""

    rule: Annotated[QueryRule, Part(QUERY_RULE)]
    most: Annotated[int, Whole(least=1, usual=100)]

    def ask(self, context: RoundContext) -> Query | None:
        return self.rule.ask(context) if context.asked < self.most else None


@dataclass(frozen=True)
class Floor(Declaration):
    """Asks by the rule, and now and then by a coin: a model that has learnt to forget too slowly is found out."""

    rule: Annotated[QueryRule, Part(QUERY_RULE)]
    p: float = share(0.02)

    def ask(self, context: RoundContext) -> Query | None:
        query = self.rule.ask(context)
        if query is None and context.happens("floor", self.p):
            return Query(context.choice, COIN)
        return query


# ------------------------------------------------------------
# Ask where the knowledge gained over the next rounds is worth more than its price.


NODES = 15
"""Of the Gauss–Hermite quadrature."""

SPREAD = 36
"""Places spread over the candidates, beside the local optima and the argmax of the mean."""


@dataclass(frozen=True)
class ValueOfInformation(Declaration):
    """Measure at the argmax of μ + H·KG − price where that beats max μ, else stay silent.

    KG is how much one measurement is expected to raise the highest mean, which is played for the next rounds, at most
    `horizon` of them. What is known fades with √(1−ε) a round, and so does its worth: H = Σ_{h < horizon} (1−ε)^{h/2}.
    The price is in prior standard deviations of the value, summed over rounds. `OnlineTuner(price=…)`, in units of the
    value, takes its place.
    """

    price: float = number(0.3, least=0.0)
    horizon: float = positive(40.0)

    def ask(self, context: RoundContext) -> Query | None:
        places = considered(context)
        mean = context.mean[places]
        gain = knowledge_gradient(mean, context.moves(places))
        price = self.price * context.deviation if context.price is None else context.price
        worth = mean + self.rounds_worth(context) * gain - price
        best = int(np.argmax(worth))
        if worth[best] <= float(np.max(context.mean)):
            return None
        return Query(int(places[best]), f"knowing it is worth {worth[best] - mean.max():.3g} more than its price")

    def rounds_worth(self, context: RoundContext) -> float:
        """H, of the rounds that are left."""
        rounds = min(self.horizon, context.remaining)
        lasting = context.lasting
        return float(rounds if lasting >= 1.0 else (1.0 - lasting**rounds) / (1.0 - lasting))


def considered(context: RoundContext) -> IntArray:
    """Places that stand for all: some spread evenly, the local optima and the argmax of the mean."""
    m = context.posterior.size
    spread = np.linspace(0, m - 1, min(SPREAD, m)).astype(np.int64)
    return np.unique(np.concatenate([spread, context.optima, [context.best_mean]]))


def knowledge_gradient(mean: Array, moves: Array) -> Array:
    """E[max_x μ'(x)] − max_x μ(x) for a measurement at each of the places, of shape (n,).

    A measurement at x_j moves the means to μ + σ̃_j Z, Z ~ N(0, 1); σ̃_j is column j of `moves`.
    """
    nodes, weights = _gauss_hermite()
    highest = np.stack([np.max(mean[:, None] + z * moves, axis=0) for z in nodes])
    return np.asarray(weights @ highest - np.max(mean))


@cache
def _gauss_hermite() -> tuple[Array, Array]:
    """Nodes and weights for the expectation under a standard normal."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    return nodes, weights / np.sqrt(2.0 * np.pi)
