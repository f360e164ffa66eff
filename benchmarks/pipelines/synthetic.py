"""Test functions cut into stages with prices: what is kept of an earlier evaluation need not be paid again.

Values are scaled to [0, 1]. Three of the four functions have their minimum in the centre of the box, where every
bisection hits it, so most problems are shifted: their minimum is at a place drawn for them. Problems for
tuning have other places than reported ones.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from benchmarks.problems.problem import Direction, Evaluation, Params
from benchmarks.problems.synthetic import Array, ackley, griewank, hartmann_6
from farthing.space import Float, Space

STAGE_NAMES = ("first", "second", "third")
ROOM = 0.15
"""How far from the faces of the box a shifted minimum stays, as a share of its width."""


def rastrigin(x: Array) -> float:
    """10 d + Σ_i x_i² − 10 cos 2πx_i."""
    return float(10 * x.size + np.sum(x**2 - 10 * np.cos(2 * math.pi * x)))


@dataclass(frozen=True)
class Base:
    """A function on a cube of side `width` about `centre`; `lowest` and `highest` are its range there, roughly."""

    formula: Callable[[Array], float]
    centre: float
    width: float
    lowest: float
    highest: float
    optimum: tuple[float, ...] = ()
    """As shares of the width; the centre where it is not given."""


HARTMANN = Base(
    hartmann_6, 0.5, 1.0, -3.3223680114155147, 0.0, (0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573)
)
RASTRIGIN = Base(rastrigin, 0.0, 10.24, 0.0, 242.12)
ACKLEY = Base(ackley, 0.0, 65.536, 0.0, 22.35)
GRIEWANK = Base(griewank, 0.0, 1200.0, 0.0, 542.0)


@dataclass(frozen=True)
class StagedFunction:
    """`sizes` are the numbers of parameters of the stages, `prices` what they cost; `place` keys the shift, 0: none."""

    name: str
    base: Base
    sizes: tuple[int, ...]
    prices: tuple[float, ...]
    place: int = 0
    direction: Direction = "minimize"
    best_value: float = 0.0
    noise: float = 0.0
    """Deviation of what is measured from the value; values are scaled to [0, 1]."""

    def missing(self) -> str | None:
        return None

    @property
    def full_cost(self) -> float:
        return sum(self.prices)

    def space(self) -> Space:
        names = iter(f"x{i}" for i in range(1, sum(self.sizes) + 1))
        stages = {
            stage: {next(names): Float(0, 1) for _ in range(size)}
            for stage, size in zip(STAGE_NAMES, self.sizes, strict=False)
        }
        return Space(stages=stages)

    def stage_costs(self, params: Params) -> tuple[float, ...]:
        return self.prices

    @property
    def stage_prices(self) -> dict[str, float]:
        return dict(zip(STAGE_NAMES, self.prices, strict=False))

    def evaluate(self, params: Params, fidelity: Mapping[str, float], *, seed: int) -> Evaluation:
        return Evaluation(self.full_value(params), self.full_cost)

    def measured_value(self, params: Params, *, seed: int, number: int) -> float:
        """The value with the noise of this seed's evaluation of that number."""
        return self.full_value(params) + self.noise * float(np.random.default_rng([11, seed, number]).standard_normal())

    def full_value(self, params: Params) -> float:
        """(f − lowest)/(highest − lowest) at the unit cube's point, moved so that the minimum lies at its place."""
        x = np.array([params[f"x{i}"] for i in range(1, sum(self.sizes) + 1)])
        raw = self.base.formula(self.base.centre + self.base.width * (x - self._shift - 0.5))
        return (raw - self.base.lowest) / (self.base.highest - self.base.lowest)

    @cached_property
    def _shift(self) -> Array:
        optimum = np.array(self.base.optimum or (0.5,) * sum(self.sizes))
        if not self.place:
            return np.zeros(optimum.size)
        drawn = np.random.default_rng([7, self.place]).uniform(ROOM, 1 - ROOM, optimum.size)
        return np.asarray(drawn - optimum)


TEN, ONE, FORTY = (10.0, 1.0), (1.0, 1.0), (40.0, 10.0, 1.0)

_CUTS = (
    StagedFunction("hartmann-6 [3,3] 10:1", HARTMANN, (3, 3), TEN),
    StagedFunction("hartmann-6 [3,3] 1:1", HARTMANN, (3, 3), ONE),
    StagedFunction("hartmann-6 [2,2,2] 40:10:1", HARTMANN, (2, 2, 2), FORTY),
    StagedFunction("rastrigin-6 [3,3] 10:1", RASTRIGIN, (3, 3), TEN),
    StagedFunction("rastrigin-6 [3,3] 1:1", RASTRIGIN, (3, 3), ONE),
    StagedFunction("rastrigin-6 [2,2,2] 40:10:1", RASTRIGIN, (2, 2, 2), FORTY),
    StagedFunction("ackley-8 [2,6] 10:1", ACKLEY, (2, 6), TEN),
    StagedFunction("ackley-8 [4,4] 10:1", ACKLEY, (4, 4), TEN),
    StagedFunction("ackley-8 [4,4] 1:1", ACKLEY, (4, 4), ONE),
    StagedFunction("ackley-8 [2,2,4] 40:10:1", ACKLEY, (2, 2, 4), FORTY),
    StagedFunction("griewank-6 [3,3] 10:1", GRIEWANK, (3, 3), TEN),
    StagedFunction("griewank-6 [3,3] 1:1", GRIEWANK, (3, 3), ONE),
)
_LONG_FIRST = StagedFunction("ackley-8 [6,2] 10:1", ACKLEY, (6, 2), TEN)
_IN_THE_PAPER = (0, 3, 6, 7, 9, 10)
_STALLING = (0, 2)
"""On these expected improvement without regard to noise kept the same first stage for ever."""

NOISES = (0.0, 0.005, 0.02)
PLACES = 5
"""Places of the minimum for every function: ten seeds of one place are ten runs on one landscape."""


def _placed(cuts: Iterable[StagedFunction], kind: str, *, first: int) -> tuple[StagedFunction, ...]:
    return tuple(replace(cut, name=f"{kind}/{cut.name}", place=first + number) for number, cut in enumerate(cuts))


def _at_places(
    cuts: Iterable[StagedFunction], kind: str, *, first: int, noises: Iterable[float] = NOISES
) -> tuple[StagedFunction, ...]:
    """Every function with every noise at places of its own, which are the same for all noises."""
    return tuple(
        replace(
            cut,
            name=f"{kind}/{cut.name} noise {noise:g} place {place}",
            place=first + 100 * place + number,
            noise=noise,
        )
        for place in range(1, PLACES + 1)
        for noise in noises
        for number, cut in enumerate(cuts)
    )


SHIFTED = _placed(_CUTS, "shifted", first=1)
CENTRED = tuple(replace(cut, name=f"centred/{cut.name}") for cut in (*(_CUTS[i] for i in _IN_THE_PAPER), _LONG_FIRST))
EQUAL_PRICES = replace(_CUTS[1], name=f"centred/{_CUTS[1].name}")
"""The paper's Figure 3 E."""
TUNING = _placed(_CUTS, "tuning", first=101)
"""The same functions with their minima elsewhere: what is tuned on them is reported on the others."""
PLACED = _at_places((*_CUTS, _LONG_FIRST), "places", first=1000)
STALLING = _at_places([_CUTS[i] for i in _STALLING], "stalling", first=2000, noises=(0.005,))

STAGED_FUNCTIONS = (*SHIFTED, *CENTRED, EQUAL_PRICES, *TUNING, *PLACED, *STALLING)
