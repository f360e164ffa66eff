"""Test functions with fidelities: those of the taKG paper (Wu et al., 2019), after Kandasamy et al. (2017).

An evaluation at s costs 0.01 + Π s. `s1` (the only one of the first three) is a trace there; in Rosenbrock, `s1` stands
for data and `s2`, a trace, for iterations. All have a floor of 0.1: below it these functions are nearly as informative
and cost a hundredth, so that any search without a floor stays at the bottom. `augmented-from-0-…` have none, to compare
taKG with taKG⁰ where the paper sees the difference.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from benchmarks.problems.problem import Direction, Evaluation, Params, Point
from benchmarks.problems.synthetic import ALPHA, HARTMANN_3_A, HARTMANN_3_P, HARTMANN_6_A, HARTMANN_6_P
from farthing.space import Fidelity, Float, Space

Array: TypeAlias = npt.NDArray[np.float64]

FLOOR = 0.1
FIXED_COST = 0.01
TRACE_POINTS = 4
"""Number of equal steps on the way to s at which a run reports."""


@dataclass(frozen=True)
class Augmented:
    """A function of x1 … xd and of s1 (and s2), of which the last is a trace; `optimum` is a minimiser at s = 1."""

    name: str
    formula: Callable[[Array, Array], float]
    domain: tuple[tuple[float, float], ...]
    optimum: tuple[float, ...]
    best_value: float
    fidelities: int = 1
    least: float = FLOOR
    direction: Direction = "minimize"
    full_cost: float = FIXED_COST + 1.0

    def missing(self) -> str | None:
        return None

    def space(self) -> Space:
        names = [f"s{i}" for i in range(1, self.fidelities + 1)]
        return Space(
            {f"x{i}": Float(low, high) for i, (low, high) in enumerate(self.domain, start=1)},
            fidelities={name: Fidelity(self.least, 1.0, trace=name == names[-1]) for name in names},
        )

    def evaluate(self, params: Params, fidelity: Mapping[str, float], *, seed: int) -> Evaluation:
        *_, (traced, reached) = fidelity.items()
        steps = self.least + (reached - self.least) * np.linspace(0.0, 1.0, TRACE_POINTS)
        amounts = dict.fromkeys([*steps[:-1].tolist(), reached])
        trace = tuple(self._point(params, {**fidelity, traced: amount}) for amount in amounts)
        return Evaluation(trace[-1].value, trace[-1].cost, trace)

    def full_value(self, params: Params) -> float:
        return self._value(params, np.ones(self.fidelities))

    def _point(self, params: Params, fidelity: Mapping[str, float]) -> Point:
        s = np.array(list(fidelity.values()))
        return Point(fidelity, self._value(params, s), FIXED_COST + float(np.prod(s)))

    def _value(self, params: Params, s: Array) -> float:
        return self.formula(np.array([params[f"x{i}"] for i in range(1, len(self.domain) + 1)]), s)


def augmented_branin(x: Array, s: Array) -> float:
    """Branin with 5.1/(4π²) − 0.1 (1 − s) in the place of 5.1/(4π²)."""
    curvature = 5.1 / (4 * math.pi**2) - 0.1 * (1 - s[0])
    valley = x[1] - curvature * x[0] ** 2 + 5 / math.pi * x[0] - 6
    return float(valley**2 + 10 * (1 - 1 / (8 * math.pi)) * np.cos(x[0]) + 10)


def augmented_hartmann_3(x: Array, s: Array) -> float:
    return _hartmann(x, s, A=HARTMANN_3_A, P=HARTMANN_3_P)


def augmented_hartmann_6(x: Array, s: Array) -> float:
    return _hartmann(x, s, A=HARTMANN_6_A, P=HARTMANN_6_P)


def _hartmann(x: Array, s: Array, *, A: Array, P: Array) -> float:
    """Hartmann with α_1 − 0.1 (1 − s) in the place of α_1; negated, as the paper prints it to be maximised."""
    alpha = ALPHA - np.array([0.1 * (1 - s[0]), 0.0, 0.0, 0.0])
    return float(-alpha @ np.exp(-np.sum(A * (x - P) ** 2, axis=1)))


def augmented_rosenbrock(x: Array, s: Array) -> float:
    """Σ_i 100 (x_{i+1} − x_i² + 0.1 (1 − s1))² + (x_i − 1 + 0.1 (1 − s2))²; the paper's bracket takes in the 100."""
    valley = x[1:] - x[:-1] ** 2 + 0.1 * (1 - s[0])
    return float(np.sum(100 * valley**2 + (x[:-1] - 1 + 0.1 * (1 - s[1])) ** 2))


AUGMENTED: tuple[Augmented, ...] = (
    Augmented(
        "augmented-branin",
        augmented_branin,
        ((-5, 10), (0, 15)),
        optimum=(math.pi, 2.275),
        best_value=0.39788735772973816,
    ),
    Augmented(
        "augmented-hartmann-3",
        augmented_hartmann_3,
        ((0, 1),) * 3,
        optimum=(0.114614, 0.555649, 0.852547),
        best_value=-3.862779787332663,
    ),
    Augmented(
        "augmented-hartmann-6",
        augmented_hartmann_6,
        ((0, 1),) * 6,
        optimum=(0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573),
        best_value=-3.3223680114155147,
    ),
    Augmented(
        "augmented-rosenbrock-3",
        augmented_rosenbrock,
        ((-5, 10),) * 3,
        optimum=(1.0,) * 3,
        best_value=0.0,
        fidelities=2,
    ),
)

FROM_ZERO = tuple(replace(one, name=one.name.replace("-", "-from-0-", 1), least=1e-3) for one in AUGMENTED)
"""The same with fidelities from a thousandth."""
