"""Ask where the knowledge gained over the next rounds is worth more than its price."""

from dataclasses import dataclass
from functools import cache

import numpy as np

from farthing.fields import Declaration, number, positive
from farthing.models.linalg import Array, IntArray
from farthing.strategies.online.context import Query, RoundContext

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
