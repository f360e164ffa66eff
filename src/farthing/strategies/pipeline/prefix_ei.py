"""Expected improvement per marginal cost, over every prefix that was ever computed and new ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from farthing.acquisition.acquisition import Acquisition, Unvisited
from farthing.acquisition.expected_improvement import LogAugmentedImprovement, log_joint_improvements
from farthing.acquisition.maximize import perturbed, sobol
from farthing.acquisition.prefix_classes import ClassMaximum, NewPrefixes, PrefixClass, PricedClasses, maximize_classes
from farthing.fields import Several, Whole, positive
from farthing.models.linalg import Array
from farthing.strategies.pipeline.context import ChosenRow, PipelineContext, PipelineState
from farthing.strategies.pipeline.purchases import due_class
from farthing.strategies.pipeline.strategy import StagedStrategy
from farthing.strategies.shared.guessing import believed
from farthing.trials import Json, Params

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


# ------------------------------------------------------------
# Classes of configurations by the number of stages kept, and the best row of each.

MOST_PREFIXES = 256
"""Of more that are there the most promising are searched: each is a start of the search, and beyond some hundred the
rest of a study's prefixes are of configurations that were given up. A limit on time and memory, not tuned."""


@dataclass(frozen=True, eq=False)
class ReuseClass:
    """Configurations of which the first `kept` stages may be kept, as a class to search; none where nothing is kept."""

    searched: PrefixClass
    sources: Sequence[Params]

    @property
    def kept(self) -> int:
        return self.searched.kept


def fresh(context: PipelineContext) -> ReuseClass:
    """Nothing is kept; searches start from the best of what was seen."""
    return ReuseClass(PrefixClass(0, context.pipeline.layout.columns(0), context.best_rows[:MOST_PREFIXES]), ())


def every_prefix(context: PipelineContext) -> list[ReuseClass]:
    """A fresh start, and for every number of stages the prefixes that are there, the most promising first."""
    return _classes(context, {m: list(known.values()) for m, known in enumerate(context.pipeline.purchases.cached)})


def those_of(context: PipelineContext, sources: Sequence[Params]) -> list[ReuseClass]:
    """A fresh start, and for every number of stages those prefixes of these configurations that are there."""
    pipeline = context.pipeline
    kept = [pipeline.purchases.kept(pipeline.layout, params) for params in sources]
    lengths = range(1, pipeline.layout.count)
    there = {m: [params for params, most in zip(sources, kept, strict=True) if most >= m] for m in lengths}
    return _classes(context, there)


def best_of_classes(
    context: PipelineContext, classes: Sequence[ReuseClass], log_value: Acquisition, *, exponent: float = 1.0
) -> list[ClassMaximum]:
    """The row with most value per price^exponent of each class.

    −∞ if none is affordable, new, and of no cheaper class. If nothing is affordable at all, the limit does not
    count: the study itself will refuse the price.
    """
    steered = believed(log_value, context.pipeline.history, results=context.seen.count)
    untried = Unvisited(steered, np.concatenate([context.seen.X, context.gp.X]))
    stages = context.pipeline.layout
    if not stages.is_discrete(stages.count - 1, stages.count):
        found = _best(context, classes, steered, exponent=exponent)
        if not any(untried.has(best.x) for best in found):
            return found
    # a corner, or one of finitely many last stages, that was tried with its prefix
    return _best(context, classes, untried, exponent=exponent)


def _best(
    context: PipelineContext, classes: Sequence[ReuseClass], log_value: Acquisition, *, exponent: float
) -> list[ClassMaximum]:
    pipeline = context.pipeline
    searched = [each.searched for each in classes]
    for limit in (context.limit, np.inf):
        priced = PricedClasses(log_value, pipeline.prices.costs, exponent=exponent, limit=limit)
        found = maximize_classes(
            _new_prefixes(pipeline, priced), pipeline.domain, searched, rng=context.rng, effort=context.effort
        )
        if limit == np.inf or any(best.value > -np.inf for best in found):
            break
    return found


def chosen(classes: Sequence[ReuseClass], best: ClassMaximum, note: dict[str, Json]) -> ChosenRow:
    """The best row of a class, with the configuration whose stages it keeps."""
    own = next(each for each in classes if each.kept == best.kept)
    return ChosenRow(best.x, best.kept, own.sources[best.source] if best.kept else None, note)


def _classes(context: PipelineContext, sources: Mapping[int, list[Params]]) -> list[ReuseClass]:
    return [fresh(context), *(_class(context, kept, own) for kept, own in sources.items() if own)]


def _class(context: PipelineContext, kept: int, sources: list[Params]) -> ReuseClass:
    pipeline = context.pipeline
    rows = pipeline.encode(sources)
    parts = [context.gp.mean(rows[at : at + MOST_PREFIXES]) for at in range(0, len(rows), MOST_PREFIXES)]
    order = np.argsort(np.concatenate(parts), kind="stable")[:MOST_PREFIXES]
    return ReuseClass(PrefixClass(kept, pipeline.layout.columns(kept), rows[order]), [sources[i] for i in order])


def _new_prefixes(pipeline: PipelineState, priced: Acquisition) -> Acquisition:
    """On discrete stages a search of new ones may come upon a prefix that is there: that is another class."""
    layout = pipeline.layout
    discrete = [layout.is_discrete(m, m + 1) for m in range(layout.count - 1)]
    if not any(discrete):
        return priced
    cached = pipeline.purchases.cached
    known = [pipeline.encode(list(cached[m + 1].values()) if finite else []) for m, finite in enumerate(discrete)]
    return NewPrefixes(priced, [layout.columns(m + 1) for m in range(layout.count - 1)], known)
