"""The purchases of every trial of a pipeline, and the prefixes that are kept: a replay of the history."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from farthing.strategies.pipeline.layout import Layout
from farthing.trials import History, Params, State, Trial
from farthing.trials.prefixes import is_stage, surviving_prefixes, was_cached


@dataclass(frozen=True)
class Purchase:
    """A configuration that kept its first `kept` stages and paid for the others.

    `forced` names the class that it was bought for, where a meter had run full. `cost` is None where it is not known
    yet, or says nothing because the work failed.
    """

    params: Params
    kept: int
    cost: float | None = None
    forced: int | None = None


@dataclass(frozen=True)
class Purchases:
    """`made` are the purchases in their order; `cached[m]` maps the prefixes of m stages to params that have them."""

    made: tuple[Purchase, ...]
    cached: tuple[Mapping[Hashable, Params], ...]

    def kept(self, layout: Layout, params: Params) -> int:
        """The number of stages of a configuration that are kept; never the last one, which is always paid."""
        return _kept(layout.prefixes(params), self.cached)

    def with_one(self, layout: Layout, purchase: Purchase) -> "Purchases":
        """After one more purchase, whose prefixes count as kept."""
        cached = [dict(known) for known in self.cached]
        for length, found in enumerate(layout.prefixes(purchase.params), start=1):
            cached[length].setdefault(found, purchase.params)
        return Purchases((*self.made, purchase), tuple(cached))


def purchases_of(history: History, layout: Layout) -> Purchases:
    """Every prefix that a trial computed, or is about to, counts as cached until it is evicted.

    A trial that is done without a word about its stages counts as if it had computed all of them.
    """
    cached: list[dict[Hashable, Params]] = [{} for _ in range(layout.count)]
    made: list[Purchase] = []
    for trial, lengths in surviving_prefixes(history, expects=True):
        prefixes = layout.prefixes(trial.params)
        made.append(_purchase(trial, _kept(prefixes, cached), layout))
        for length in lengths:
            cached[length].setdefault(prefixes[length - 1], trial.params)
    return Purchases(tuple(made), tuple(cached))


def _purchase(trial: Trial, known: int, layout: Layout) -> Purchase:
    stages = [point for point in trial.measurements if is_stage(point)]
    ran = [point.step for point in stages if point.step is not None and not was_cached(point)]
    kept = min(ran, default=known)
    forced = trial.note.get("forced") if isinstance(trial.note, dict) else None
    cost = trial.cost if trial.state is State.DONE and trial.cost > 0 else None
    return Purchase(trial.params, min(kept, layout.count - 1), cost, forced if isinstance(forced, int) else None)


def _kept(prefixes: Sequence[Hashable], cached: Sequence[Mapping[Hashable, Params]]) -> int:
    there = (length for length in range(len(prefixes), 0, -1) if prefixes[length - 1] in cached[length])
    return next(there, 0)
