"""The first evaluations of a pipeline: points that fill the space evenly, most of them with the stages of the last."""

from collections.abc import Sequence

import numpy as np

from farthing.models.linalg import Array
from farthing.strategies.pipeline.context import ChosenRow, Market
from farthing.strategies.pipeline.meters import due_class
from farthing.trials import Params

RENT = 0.1
"""New stages are bought once so much of their price went into cheaper ones."""


def next_of_design(market: Market, unit: Array, tried: Sequence[Params]) -> ChosenRow | None:
    """The point of the unit cube (d,), with as many of the latest configuration's stages as are not due for a change.

    Fewer are kept where that configuration was tried; None where even the point itself was.
    """
    latent = market.domain.from_unit(unit[None, :])[0]
    last = market.purchases.made[-1].params if market.purchases.made else None
    for kept in range(_kept(market, last), -1, -1):
        choice = ChosenRow(_row(market, latent, last, kept), kept, last, {})
        if params_of(market, choice) not in tried:
            return choice
    return None


def params_of(market: Market, choice: ChosenRow) -> Params:
    """The configuration of a choice; the stages that it keeps are those of its source to the bit."""
    [params] = market.layout.space.encoder.decode(choice.row[None, :])
    return market.layout.with_prefix(params, choice.source, choice.kept) if choice.source and choice.kept else params


def _kept(market: Market, last: Params | None) -> int:
    if last is None:
        return 0
    row = market.encode([last])[0]
    prices = [market.price(row, m) for m in range(market.layout.count)]
    due = due_class(market.meters, prices, RENT)
    return market.last_class if due is None else due


def _row(market: Market, latent: Array, last: Params | None, kept: int) -> Array:
    if last is None:
        return np.asarray(market.domain.snap(latent[None, :])[0])
    before = market.encode([last])[0]
    held = market.layout.columns(kept) & ~np.isnan(before)
    return np.asarray(market.domain.snap(np.where(held, before, latent)[None, :])[0])
