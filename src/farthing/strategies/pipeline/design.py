"""The first evaluations of a pipeline: points that fill the space evenly, most of them with the stages of the last."""

from collections.abc import Sequence

import numpy as np

from farthing.models.linalg import Array
from farthing.strategies.pipeline.context import ChosenRow, PipelineState
from farthing.strategies.pipeline.meters import due_class
from farthing.trials import Params

RENT = 0.1
"""New stages are bought once this share of their price went into cheaper trials. 0.3 was tried before; no record."""


def next_of_design(pipeline: PipelineState, unit: Array, tried: Sequence[Params]) -> ChosenRow | None:
    """The point of the unit cube (d,), with as many of the latest configuration's stages as are not due for a change.

    Fewer are kept where that configuration was tried; None where even the point itself was.
    """
    latent = pipeline.domain.from_unit(unit[None, :])[0]
    last = pipeline.purchases.made[-1].params if pipeline.purchases.made else None
    for kept in range(_kept(pipeline, last), -1, -1):
        choice = ChosenRow(_row(pipeline, latent, last, kept), kept, last, {})
        if params_of(pipeline, choice) not in tried:
            return choice
    return None


def params_of(pipeline: PipelineState, choice: ChosenRow) -> Params:
    """The configuration of a choice; the stages that it keeps are those of its source to the bit."""
    [params] = pipeline.layout.space.encoder.decode(choice.row[None, :])
    return pipeline.layout.with_prefix(params, choice.source, choice.kept) if choice.source and choice.kept else params


def _kept(pipeline: PipelineState, last: Params | None) -> int:
    if last is None:
        return 0
    row = pipeline.encode([last])[0]
    prices = [pipeline.price(row, m) for m in range(pipeline.layout.count)]
    due = due_class(pipeline.meters, prices, RENT)
    return pipeline.last_class if due is None else due


def _row(pipeline: PipelineState, latent: Array, last: Params | None, kept: int) -> Array:
    if last is None:
        return np.asarray(pipeline.domain.snap(latent[None, :])[0])
    before = pipeline.encode([last])[0]
    held = pipeline.layout.columns(kept) & ~np.isnan(before)
    return np.asarray(pipeline.domain.snap(np.where(held, before, latent)[None, :])[0])
