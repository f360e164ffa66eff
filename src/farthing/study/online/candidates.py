"""The params that a run may play: the given ones, or all of a small space."""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from math import prod

import numpy as np

from farthing.errors import InvalidArgument
from farthing.space import Space
from farthing.space.encoding import Encoder
from farthing.trials import Params
from farthing.validation import shown

MOST_ENUMERATED = 1000
"""A space with at most this many configurations is played as candidates, with the exact filter."""


def candidates_of(space: Space, given: Sequence[Params] | None) -> list[Params] | None:
    """The candidates, checked; all configurations where none are given and there are few; None for a whole space."""
    if given is None:
        return _enumerated(space)
    checked = [space.check(params) for params in _several(given, what="Candidates")]
    if len(checked) < 2 or len({json.dumps(params, sort_keys=True) for params in checked}) < len(checked):
        raise InvalidArgument(
            f"Candidates must be at least two, all different, got {len(checked)}. Leave duplicates out."
        )
    return list(checked)


def initial_params(space: Space, given: Params | Sequence[Params] | None) -> list[Params]:
    """None, one or several, as a checked list."""
    listed = [] if given is None else [given] if isinstance(given, Mapping) else given
    return [space.check(params) for params in _several(listed, what="Initial params")]


def _several(given: object, *, what: str) -> Iterable[Params]:
    if not isinstance(given, Iterable) or isinstance(given, str | Mapping):
        raise InvalidArgument(f"{what} must be a list of params, got {shown(given)}. Write [{{'rate': 0.1}}, …].")
    return given


def _enumerated(space: Space) -> list[Params] | None:
    encoder = space.encoder
    counts = [(encoder.categories | encoder.discrete).get(j) for j in range(encoder.dimension)]
    known = [count for count in counts if count]
    if len(known) < len(counts) or not 2 <= prod(known) <= MOST_ENUMERATED:
        return None
    grids = [range(count) if j in encoder.categories else _grid(encoder, j) for j, count in enumerate(known)]
    rows = np.array(list(product(*grids)), dtype=np.float64)
    distinct = {json.dumps(params, sort_keys=True): params for params in encoder.decode(rows)}
    return list(distinct.values()) if len(distinct) > 1 else None


def _grid(encoder: Encoder, column: int) -> list[float]:
    grid = encoder.grid(column)
    assert grid is not None
    return [float(x) for x in grid]
