"""The context of a decision about a pipeline."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from farthing.acquisition.maximize import Domain, Effort
from farthing.costs import Remaining
from farthing.models.gp import GP
from farthing.models.linalg import Array, IntArray
from farthing.strategies.pipeline.purchases import Layout, Purchase, Purchases, meters
from farthing.strategies.pipeline.stage_costs import PricedStages
from farthing.strategies.shared.cost_model import PastErrors
from farthing.strategies.shared.modelling import Observations, domain_of
from farthing.trials import History, Json, Params, Prediction


@dataclass(frozen=True, eq=False)
class PipelineState:
    """The kept prefixes, the prices, and the purchases so far."""

    history: History
    layout: Layout
    purchases: Purchases
    prices: PricedStages

    @cached_property
    def domain(self) -> Domain:
        return domain_of(self.history.problem.space.encoder)

    @property
    def last_class(self) -> int:
        """The cheapest class: all stages kept but the last."""
        return self.layout.count - 1

    def encode(self, params: Sequence[Params]) -> Array:
        return self.history.problem.space.encoder.encode(list(params))

    def price(self, row: Array, kept: int) -> float:
        """The cost of a row if its first `kept` stages are kept."""
        return float(self.prices.costs.price(row[None, :], np.array([kept], dtype=np.int64))[0])

    def predicted_cost(self, row: Array, kept: int) -> Prediction | None:
        """With the deviation that past predictions show."""
        if not self.prices.is_known:
            return None
        price, deviation = self.price(row, kept), PastErrors.of(self.history).seen(is_new=True)
        return Prediction(price, None if deviation is None else price * deviation)

    @cached_property
    def meters(self) -> list[float]:
        """See `meters.meters`; purchases whose cost is not known count at their price."""
        made = self.purchases.made
        unpaid = [purchase for purchase in made if purchase.cost is None]
        kept: IntArray = np.array([purchase.kept for purchase in unpaid], dtype=np.int64)
        rows = self.encode([purchase.params for purchase in unpaid])
        expected = iter(self.prices.costs.price(rows, kept).tolist() if unpaid else [])
        costs = [next(expected) if purchase.cost is None else purchase.cost for purchase in made]
        return meters(made, costs, self.layout.count)

    def after(self, params: Params, kept: int, forced: int | None) -> "PipelineState":
        """The state once this has been bought as well."""
        purchases = self.purchases.with_one(self.layout, Purchase(params, kept, forced=forced))
        return PipelineState(self.history, self.layout, purchases, self.prices)


@dataclass(frozen=True, eq=False)
class PipelineContext:
    """The state of the pipeline, a model of the observations, and the rest of the budget.

    `gp` has the trials in flight, and those just chosen, as if they had returned its prediction. `notes`
    are those of all decisions taken so far.
    """

    pipeline: PipelineState
    seen: Observations
    gp: GP
    budget: Remaining
    effort: Effort
    rng: np.random.Generator
    notes: Sequence[dict[str, Json]]

    @cached_property
    def limit(self) -> float:
        """The most that one evaluation may cost. If nothing is affordable there is no limit: the study refuses it."""
        in_seconds = self.pipeline.history.problem.cost_unit == "seconds"
        limit = min(self.budget.cost, self.budget.seconds if in_seconds else math.inf)
        return limit if limit > 0.0 and self.pipeline.prices.is_known else math.inf

    @cached_property
    def best(self) -> float:
        """The least mean over rows that were observed or are pending."""
        return float(self.gp.mean(self.gp.X).min())

    @cached_property
    def best_rows(self) -> Array:
        """The rows that were observed or are pending, best first."""
        return np.asarray(self.gp.X[np.argsort(self.gp.mean(self.gp.X), kind="stable")])


@dataclass(frozen=True, eq=False)
class ChosenRow:
    """A row, the configuration whose first `kept` stages it keeps, and what to note about it."""

    row: Array
    kept: int
    source: Params | None
    note: dict[str, Json]
