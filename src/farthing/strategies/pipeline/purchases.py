"""The purchases of every trial of a pipeline, and the prefixes that are kept: a replay of the history."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from farthing.models.linalg import BoolArray
from farthing.space import Space
from farthing.space.stages import prefix
from farthing.trials import History, Params, State, Trial, noted
from farthing.trials.prefixes import is_stage, surviving_prefixes, was_cached

# ------------------------------------------------------------
# Which parameters and which columns belong to the first stages of a pipeline.


@dataclass(frozen=True)
class Layout:
    """The stages of a space, in order; one that declares none is a pipeline of a single stage."""

    space: Space

    @cached_property
    def stages(self) -> tuple[tuple[str, ...], ...]:
        """The parameters of each stage."""
        return tuple(self.space.stages.values()) or (tuple(self.space.parameters),)

    @cached_property
    def stage_names(self) -> tuple[str, ...]:
        return tuple(self.space.stages) or ("all",)

    @property
    def count(self) -> int:
        return len(self.stages)

    @cached_property
    def stage_of_column(self) -> tuple[int, ...]:
        home = {name: index for index, names in enumerate(self.stages) for name in names}
        return tuple(home[name] for name in self.space.encoder.names)

    def columns(self, length: int) -> BoolArray:
        """Which columns belong to the first `length` stages."""
        return np.array(self.stage_of_column) < length

    def prefixes(self, params: Params) -> list[Hashable]:
        """Keys of the first 1, 2, … stages of a configuration, the last stage left out: equal for equal stages."""
        return [prefix(self.space, params, length) for length in range(1, self.count)]

    def with_prefix(self, params: Params, source: Params, length: int) -> dict[str, object]:
        """`params` whose first `length` stages are those of `source`, to the bit: decoding may round them."""
        kept = {name for stage in self.stages[:length] for name in stage}
        chosen = {name: value for name, value in params.items() if name not in kept}
        chosen |= {name: value for name, value in source.items() if name in kept}
        return {name: chosen[name] for name in self.space.parameters if name in chosen}

    def is_discrete(self, first: int, last: int) -> bool:
        """Whether the stages from `first` up to `last`, itself left out, have finitely many configurations."""
        encoder = self.space.encoder
        finite = encoder.categories.keys() | encoder.discrete.keys()
        return all(j in finite for j, stage in enumerate(self.stage_of_column) if first <= stage < last)


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
    forced = noted(trial.note).get("forced")
    cost = trial.cost if trial.state is State.DONE and trial.cost > 0 else None
    return Purchase(trial.params, min(kept, layout.count - 1), cost, forced if isinstance(forced, int) else None)


def _kept(prefixes: Sequence[Hashable], cached: Sequence[Mapping[Hashable, Params]]) -> int:
    there = (length for length in range(len(prefixes), 0, -1) if prefixes[length - 1] in cached[length])
    return next(there, 0)


# ------------------------------------------------------------
# Rent or buy: the cost of cheaper classes since a more expensive one was last bought.
#
# Class m keeps the first m stages. Renting, that is buying only cheap evaluations, would never change the early
# stages; buying new ones at once wastes the information of cheap evaluations. Buying when the rent reaches the price
# costs at most twice as much as the best choice in hindsight.


def meters(made: Sequence[Purchase], costs: Sequence[float], count: int) -> list[float]:
    """For each of `count` classes the cost of cheaper ones since it was last bought.

    A purchase resets the meters of its class and of all cheaper ones; a forced one at least that of the class it was
    forced for, even if it turned out cheaper.
    """
    running = [0.0] * count
    for purchase, cost in zip(made, costs, strict=True):
        bought = purchase.kept if purchase.forced is None else min(purchase.kept, purchase.forced)
        running = [amount + cost if m < bought else 0.0 for m, amount in enumerate(running)]
    return running


def due_class(running: Sequence[float], prices: Sequence[float | None], factor: float) -> int | None:
    """The most expensive class whose meter has reached `factor` times its price; one without a price cannot be bought.

    The last class is the cheapest and has no meter.
    """
    for m, price in enumerate(prices[:-1]):
        if price is not None and running[m] >= factor * price:
            return m
    return None
