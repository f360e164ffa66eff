"""The params of a recorded table, and random configurations of them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

Settings = Mapping[str, NDArray[np.float64]]
"""One array for each param, with an entry for each configuration."""


@dataclass(frozen=True)
class Param:
    """Kind "float", or "choice" among `choices`, which are numbers in order; `log` says on which scale it is even."""

    kind: str
    low: float
    high: float
    log: bool = False
    choices: tuple[float, ...] = ()

    def drawn(self, rng: np.random.Generator, count: int) -> NDArray[np.float64]:
        if self.choices:
            return rng.choice(np.array(self.choices, dtype=float), count)
        if self.log:
            return np.exp(rng.uniform(np.log(self.low), np.log(self.high), count))
        return rng.uniform(self.low, self.high, count)


def real(low: float, high: float, *, log: bool = False) -> Param:
    return Param("float", low, high, log)


def whole(low: int, high: int) -> Param:
    """Few enough to be shapes: every number is a choice."""
    return Param("int", low, high, False, tuple(float(i) for i in range(low, high + 1)))


def choice(*choices: int) -> Param:
    return Param("choice", choices[0], choices[-1], True, tuple(float(c) for c in choices))


@dataclass(frozen=True)
class TableSpace:
    """`params` by name; those in `shaping` decide the shape of the computation: rows that share them run at once."""

    params: Mapping[str, Param]
    shaping: Sequence[str]

    def shapes(self) -> list[dict[str, int]]:
        combined = product(*(self.params[name].choices for name in self.shaping))
        return [dict(zip(self.shaping, map(int, shape), strict=True)) for shape in combined]

    def drawn(
        self, rng: np.random.Generator, count: int, *, shape: Mapping[str, int]
    ) -> dict[str, NDArray[np.float64]]:
        """Random configurations of one shape."""
        return {
            name: np.full(count, float(shape[name])) if name in shape else param.drawn(rng, count)
            for name, param in self.params.items()
        }

    def described(self) -> dict[str, dict[str, object]]:
        return {
            name: {key: value for key, value in asdict(param).items() if key != "choices" or param.kind == "choice"}
            for name, param in self.params.items()
        }
