"""Designs that ask no model: independent draws, and points that fill the space evenly."""

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from farthing.strategies.shared.strategy import Randomness
from farthing.trials import History, Params

if TYPE_CHECKING:
    import numpy as np


def draw(history: History, numbers: range, rng: Randomness) -> list[Params]:
    """Random params for the trials that will have these numbers, keyed by them."""
    return [_decoded(history, rng.at("trial", number)) for number in numbers]


ATTEMPTS = 32
"""Draws after which a repeat is accepted, in a finite space that is nearly used up. A limit on time, not tuned."""


def draw_new(history: History, numbers: range, rng: Randomness) -> list[Params]:
    """The same, drawn again where a finite space gave params that were tried: they would be bought twice."""
    found = draw(history, numbers, rng)
    if any(parameter.count is None for parameter in history.problem.space.parameters.values()):
        return found
    tried = [trial.params for trial in history]
    for place, number in enumerate(numbers):
        attempt = 0
        while attempt < ATTEMPTS and (found[place] in tried or found[place] in found[:place]):
            attempt += 1
            found[place] = _decoded(history, rng.at("trial", number, attempt))
    return found


def _decoded(history: History, generator: "np.random.Generator") -> Params:
    encoder = history.problem.space.encoder
    return encoder.decode_unit_row(generator.random(encoder.dimension).tolist())


def sobol_params(history: History, count: int, rng: Randomness) -> list[Params]:
    """The next `count` points of the sequence, one for each configuration that the history does not have yet."""
    return list(history.problem.space.encoder.decode_unit(sobol_unit(history, count, rng))) if count > 0 else []


def sobol_unit(history: History, count: int, rng: Randomness) -> "np.ndarray":
    """The same as uniform coordinates, shape (count, d)."""
    first, last = history.configurations, history.configurations + count
    dimension = history.problem.space.encoder.dimension
    return _sobol_points(rng.seed, dimension, power=(last - 1).bit_length())[first:last]


@lru_cache(maxsize=8)
def _sobol_points(seed: int, dimension: int, *, power: int) -> "np.ndarray":
    """The first 2^power points; longer sequences begin with the shorter ones."""
    from farthing.models.sobol import sobol_points

    return sobol_points(dimension, power, rng=Randomness(seed).at("sobol"))


def new_ones(design: Sequence[Params], history: History) -> list[Params]:
    """The configurations of a design that were not tried yet: if parameters have few values, points coincide."""
    tried = [trial.params for trial in history]
    found: list[Params] = []
    for params in design:
        if params not in tried and params not in found:
            found.append(params)
    return found
