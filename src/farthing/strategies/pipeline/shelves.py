"""What may be kept, by the number of stages kept, and the best row that each of these shelves offers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from farthing.acquisition.acquisition import Acquisition
from farthing.acquisition.prefix_classes import ClassMaximum, NewPrefixes, PrefixClass, PricedClasses, maximize_classes
from farthing.acquisition.unvisited import Unvisited
from farthing.strategies.pipeline.context import ChosenRow, Market, PipelineContext
from farthing.trials import Json, Params


@dataclass(frozen=True, eq=False)
class Shelf:
    """Configurations of which the first `kept` stages may be kept, as a class to search; none where nothing is kept."""

    searched: PrefixClass
    sources: Sequence[Params]

    @property
    def kept(self) -> int:
        return self.searched.kept


def fresh(context: PipelineContext) -> Shelf:
    """Nothing is kept; searches start from the best of what was seen."""
    return Shelf(PrefixClass(0, context.market.layout.columns(0), context.best_rows), ())


def every_prefix(context: PipelineContext) -> list[Shelf]:
    """A fresh start, and for every number of stages all prefixes that are there, the most promising first."""
    return _shelves(context, {m: list(known.values()) for m, known in enumerate(context.market.purchases.cached)})


def those_of(context: PipelineContext, sources: Sequence[Params]) -> list[Shelf]:
    """A fresh start, and for every number of stages those prefixes of these configurations that are there."""
    market = context.market
    kept = [market.purchases.kept(market.layout, params) for params in sources]
    lengths = range(1, market.layout.count)
    there = {m: [params for params, most in zip(sources, kept, strict=True) if most >= m] for m in lengths}
    return _shelves(context, there)


def best_of_shelves(
    context: PipelineContext, shelves: Sequence[Shelf], log_value: Acquisition, *, exponent: float = 1.0
) -> list[ClassMaximum]:
    """The row with most value per price^exponent from each shelf.

    −∞ where none is affordable, new, and of no cheaper class. Where nothing is affordable at all, the limit does not
    count: whoever runs the study will see the price.
    """
    market = context.market
    classes = [shelf.searched for shelf in shelves]
    for limit in (context.limit, np.inf):
        priced = PricedClasses(_untried(context, log_value), market.prices.costs, exponent=exponent, limit=limit)
        found = maximize_classes(
            _new_prefixes(market, priced), market.domain, classes, rng=context.rng, effort=context.effort
        )
        if limit == np.inf or any(best.value > -np.inf for best in found):
            break
    return found


def chosen(shelves: Sequence[Shelf], best: ClassMaximum, note: dict[str, Json]) -> ChosenRow:
    """What was found on a shelf, with the configuration whose stages it keeps."""
    shelf = next(shelf for shelf in shelves if shelf.kept == best.kept)
    return ChosenRow(best.x, best.kept, shelf.sources[best.source] if best.kept else None, note)


def _shelves(context: PipelineContext, sources: Mapping[int, list[Params]]) -> list[Shelf]:
    return [fresh(context), *(_shelf(context, kept, own) for kept, own in sources.items() if own)]


def _shelf(context: PipelineContext, kept: int, sources: list[Params]) -> Shelf:
    market = context.market
    rows = market.encode(sources)
    order = np.argsort(context.gp.mean(rows), kind="stable")
    return Shelf(PrefixClass(kept, market.layout.columns(kept), rows[order]), [sources[i] for i in order])


def _untried(context: PipelineContext, log_value: Acquisition) -> Acquisition:
    """With a last stage of finitely many values, a prefix that is there may have been tried with all of them."""
    layout = context.market.layout
    is_discrete = layout.is_discrete(layout.count - 1, layout.count)
    return Unvisited(log_value, context.gp.X) if is_discrete else log_value


def _new_prefixes(market: Market, priced: Acquisition) -> Acquisition:
    """On discrete stages a search of new ones may come upon a prefix that is there: that is another class."""
    layout = market.layout
    discrete = [layout.is_discrete(m, m + 1) for m in range(layout.count - 1)]
    if not any(discrete):
        return priced
    cached = market.purchases.cached
    known = [market.encode(list(cached[m + 1].values()) if finite else []) for m, finite in enumerate(discrete)]
    return NewPrefixes(priced, [layout.columns(m + 1) for m in range(layout.count - 1)], known)
