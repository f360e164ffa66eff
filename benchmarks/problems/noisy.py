"""Test functions that are measured with noise, on the scale of random search.

A function is shifted and scaled so that its minimum is 0 and the median of random configurations 1. Every measurement
has normal noise; the same configuration with the same seed has the same, in every method. Methods are judged by the
true value of what they recommend.
"""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from benchmarks.problems.problem import Direction, Evaluation, Params, Problem, random_params
from benchmarks.problems.synthetic import FUNCTIONS, TUNING_FUNCTIONS
from farthing.space import Space

DEVIATION = 0.3
RANDOM_CONFIGURATIONS = 2000


@dataclass(frozen=True)
class Noisy:
    """A function of `synthetic`, measured with noise."""

    function: Problem
    best_value: float = 0.0
    direction: Direction = "minimize"
    full_cost: float = 1.0

    @property
    def name(self) -> str:
        return f"noisy/{self.function.name}"

    def missing(self) -> str | None:
        return None

    def space(self) -> Space:
        return self.function.space()

    def evaluate(self, params: Params, fidelity: Mapping[str, float], *, seed: int) -> Evaluation:
        key = zlib.crc32(np.array(list(params.values()), dtype=float).tobytes())
        noise = DEVIATION * np.random.default_rng([seed, key]).standard_normal()
        return Evaluation(self.full_value(params) + float(noise), self.full_cost)

    def full_value(self, params: Params) -> float:
        lowest, median = self._scale
        return (self.function.full_value(params) - lowest) / (median - lowest)

    @cached_property
    def _scale(self) -> tuple[float, float]:
        """The best value, and the median of random configurations."""
        values = [self.function.full_value(params) for params in random_params(self.function, RANDOM_CONFIGURATIONS)]
        assert self.function.best_value is not None
        return self.function.best_value, float(np.median(values))


NOISY: tuple[Problem, ...] = tuple(Noisy(function) for function in FUNCTIONS)
NOISY_FOR_TUNING: tuple[Problem, ...] = tuple(Noisy(function) for function in TUNING_FUNCTIONS)
