"""The params that a run may play, its first settings, and the types of what online tuners are told."""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from math import prod
from pathlib import Path
from typing import Literal, TypedDict

import numpy as np

from farthing.costs import Clock
from farthing.errors import InvalidArgument, StudyNotFound
from farthing.knowledge.earlier import LearnFrom, learn
from farthing.online import OnlineStrategy
from farthing.session.creation import closed_on_error
from farthing.space import Space
from farthing.space.encoding import Encoder
from farthing.storage import Storage, StudyRecord, open_storage
from farthing.trials import Params, Problem
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


# ------------------------------------------------------------
# The first settings of an online run, learnt from earlier studies.


def learned_params(given: object, problem: Problem, *, name: str, storage: str | Path | Storage | None) -> list[Params]:
    """The best configurations of earlier studies; of a run that is continued, those that it began with."""
    place = open_storage(storage)
    with closed_on_error(place, given=storage):
        params = _stored(place, name)
        if params is None:
            params = [start.params for start in learn(given, problem, name=name, storage=place).starts]
    if place is not storage:
        place.close()
    return params


def _stored(place: Storage, name: str) -> list[Params] | None:
    try:
        record: StudyRecord = place.load_study(name)
    except StudyNotFound:
        return None
    arguments = (record.strategy or {}).get("arguments", {})
    return list(arguments.get("initial", []))


# ------------------------------------------------------------
# The types of what online tuners are told.


class PassedSettings(TypedDict, total=False):
    """The rare arguments of `OnlineTuner` that those who make one for the user pass on."""

    candidates: Sequence[Params] | None
    guess: Params | None
    hold: int | None
    validation_cost: float | None
    price: float
    validation_size: int | None
    reward: Literal["value", "gain"]


class RareSettings(PassedSettings, total=False):
    """The arguments of `OnlineTuner` that few runs need."""

    learn_from: LearnFrom | None
    cost_unit: str | None
    clock: Clock | None


class OnlineSettings(PassedSettings, total=False):
    """The arguments of `OnlineTuner` that those who make one for the user pass on."""

    strategy: OnlineStrategy | str | None
    initial: Params | Sequence[Params] | None
    overhead: float | Literal["auto"] | None
    storage: str | Path | Storage | None
    name: str
    seed: int
