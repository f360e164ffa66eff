"""Expected improvement per marginal cost, over every prefix that was ever computed and new ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from farthing.acquisition.expected_improvement import LogAugmentedImprovement, log_joint_improvements
from farthing.acquisition.maximize import perturbed, sobol
from farthing.acquisition.prefix_classes import ClassMaximum
from farthing.fields import Several, Whole, positive
from farthing.models.linalg import Array
from farthing.strategies.pipeline.context import ChosenRow, PipelineContext
from farthing.strategies.pipeline.purchases import due_class
from farthing.strategies.pipeline.reuse import best_of_classes, chosen, every_prefix
from farthing.strategies.pipeline.strategy import StagedStrategy

POOL = 32
"""Completions of a new prefix among which a bundle is chosen. A limit on time, not tuned."""


@dataclass(frozen=True)
class PrefixEI(StagedStrategy):
    """Expected improvement per marginal cost: a pipeline keeps its outputs, so going back is free.

    Class m keeps the first m stages of some configuration and pays for the rest. In each class improvement per price is
    maximised over all kept prefixes, and the classes are compared. *Bundle*: new stages are worth more than
    one evaluation, because they make cheap ones possible. They are scored by the joint gain of the best k out of a pool
    of completions, over the price of the new stages and of k runs of the last, at the best k in `bundle`. *Rent or
    buy*: a class is bought once `rent_or_buy` times its price has been spent on cheaper ones since it was last bought,
    so that an overconfident model does not keep the same stages for ever. None leaves either out.
    """

    bundle: Annotated[Sequence[int], Several(Whole(least=1), fewest=1)] | None = (1, 2, 4, 8)
    rent_or_buy: float | None = positive(4.0)

    def choose(self, context: PipelineContext) -> ChosenRow:
        classes = every_prefix(context)
        found = best_of_classes(context, classes, LogAugmentedImprovement(context.gp, context.best))
        forced = self._due(context, found)
        if forced is None:
            best = max(found, key=lambda best: self._score(context, best))
            return chosen(classes, best, {"why": "most improvement per cost"})
        due = next(best for best in found if best.kept == forced)
        return chosen(classes, due, {"why": "its price has gone into cheaper evaluations", "forced": forced})

    def _due(self, context: PipelineContext, found: Sequence[ClassMaximum]) -> int | None:
        if self.rent_or_buy is None:
            return None
        pipeline = context.pipeline
        prices: list[float | None] = [None] * pipeline.layout.count
        for best in found:
            if best.value > -np.inf:
                prices[best.kept] = pipeline.price(best.x, best.kept)
        return due_class(pipeline.meters, prices, self.rent_or_buy)

    def _score(self, context: PipelineContext, best: ClassMaximum) -> float:
        """log EI/price; of new stages log max_k qEI_k/(price of those but the last + k times that of the last)."""
        pipeline = context.pipeline
        if best.kept == pipeline.last_class or best.value == -np.inf or self.bundle is None:
            return best.value
        pool = _completions(context, best.x)
        gains = log_joint_improvements(context.gp, pool, context.best, self.bundle, rng=context.rng)
        costs = pipeline.prices.costs.costs(best.x[None, :])[0]
        price = np.sum(costs[best.kept : -1]) + np.array(self.bundle) * costs[-1]
        return float(np.max(gains - np.log(price)))


def _completions(context: PipelineContext, x: Array) -> Array:
    """x, and rows with its stages but the last, which is half the time spread out and half the time near that of x.

    Later trials would mostly be near x: rows that are only spread out hardly ever promise more than the best one.
    """
    pipeline = context.pipeline
    held = pipeline.layout.columns(pipeline.last_class)
    spread = pipeline.domain.from_unit(sobol(x.size, POOL // 2, rng=context.rng))
    complete = np.where(np.isnan(x), spread[0], x)
    near = perturbed(pipeline.domain, complete[None, :], POOL - len(spread), rng=context.rng)
    rows = np.where(held, complete, np.concatenate([spread, near]))
    return np.concatenate([x[None, :], pipeline.domain.snap(rows)])
