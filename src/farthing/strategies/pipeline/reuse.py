"""Reuse of stages: classes of configurations by the number of stages kept, and the best row of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from farthing.acquisition.acquisition import Acquisition, Unvisited
from farthing.acquisition.prefix_classes import ClassMaximum, NewPrefixes, PrefixClass, PricedClasses, maximize_classes
from farthing.strategies.pipeline.context import ChosenRow, PipelineContext, PipelineState
from farthing.strategies.shared.guessing import believed
from farthing.trials import Json, Params

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
