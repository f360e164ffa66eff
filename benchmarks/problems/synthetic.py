"""Test functions with known minima, on the domains on which they are usually given. An evaluation costs 1."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from benchmarks.problems.problem import Direction, Evaluation, Params, Problem
from farthing.space import Float, Space

Array: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Function:
    """A function of d numbers x1 … xd, each with its bounds in `domain`; `optimum` is one of its minimisers."""

    name: str
    formula: Callable[[Array], float]
    domain: tuple[tuple[float, float], ...]
    optimum: tuple[float, ...]
    best_value: float
    direction: Direction = "minimize"
    full_cost: float = 1.0

    def missing(self) -> str | None:
        return None

    def space(self) -> Space:
        return Space({f"x{i}": Float(low, high) for i, (low, high) in enumerate(self.domain, start=1)})

    def evaluate(self, params: Params, fidelity: Mapping[str, float], *, seed: int) -> Evaluation:
        return Evaluation(self.full_value(params), self.full_cost)

    def full_value(self, params: Params) -> float:
        return self.formula(np.array([params[f"x{i}"] for i in range(1, len(self.domain) + 1)]))


def branin(x: Array) -> float:
    """(x2 − 5.1/(4π²) x1² + 5/π x1 − 6)² + 10 (1 − 1/(8π)) cos x1 + 10."""
    valley = x[1] - 5.1 / (4 * math.pi**2) * x[0] ** 2 + 5 / math.pi * x[0] - 6
    return float(valley**2 + 10 * (1 - 1 / (8 * math.pi)) * np.cos(x[0]) + 10)


ALPHA = np.array([1.0, 1.2, 3.0, 3.2])
HARTMANN_3_A = np.array([[3, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]])
HARTMANN_3_P = 1e-4 * np.array([[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]])
HARTMANN_6_A = np.array(
    [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
)
HARTMANN_6_P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def hartmann_3(x: Array) -> float:
    return _hartmann(x, A=HARTMANN_3_A, P=HARTMANN_3_P)


def hartmann_6(x: Array) -> float:
    return _hartmann(x, A=HARTMANN_6_A, P=HARTMANN_6_P)


def _hartmann(x: Array, *, A: Array, P: Array) -> float:
    """−Σ_i α_i exp(−Σ_j A_ij (x_j − P_ij)²)."""
    return float(-ALPHA @ np.exp(-np.sum(A * (x - P) ** 2, axis=1)))


def ackley(x: Array) -> float:
    """−20 exp(−0.2 √mean x²) − exp(mean cos 2πx) + 20 + e."""
    hill = -20 * np.exp(-0.2 * np.sqrt(np.mean(x**2)))
    return float(hill - np.exp(np.mean(np.cos(2 * math.pi * x))) + 20 + math.e)


def rosenbrock(x: Array) -> float:
    """Σ_i 100 (x_{i+1} − x_i²)² + (1 − x_i)²."""
    return float(np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2))


def levy(x: Array) -> float:
    """sin²(πw_1) + Σ_{i<d} (w_i − 1)² (1 + 10 sin²(πw_i + 1)) + (w_d − 1)² (1 + sin²(2πw_d)),  w = 1 + (x − 1)/4."""
    w = 1 + (x - 1) / 4
    middle = np.sum((w[:-1] - 1) ** 2 * (1 + 10 * np.sin(math.pi * w[:-1] + 1) ** 2))
    return float(np.sin(math.pi * w[0]) ** 2 + middle + (w[-1] - 1) ** 2 * (1 + np.sin(2 * math.pi * w[-1]) ** 2))


def styblinski_tang(x: Array) -> float:
    """½ Σ_i x_i⁴ − 16 x_i² + 5 x_i."""
    return float(0.5 * np.sum(x**4 - 16 * x**2 + 5 * x))


def michalewicz(x: Array) -> float:
    """−Σ_i sin x_i sin²⁰(i x_i²/π)."""
    i = np.arange(1, x.size + 1)
    return float(-np.sum(np.sin(x) * np.sin(i * x**2 / math.pi) ** 20))


def griewank(x: Array) -> float:
    """Σ_i x_i²/4000 − Π_i cos(x_i/√i) + 1."""
    i = np.arange(1, x.size + 1)
    return float(np.sum(x**2) / 4000 - np.prod(np.cos(x / np.sqrt(i))) + 1)


def six_hump_camel(x: Array) -> float:
    """(4 − 2.1 x1² + x1⁴/3) x1² + x1 x2 + (4 x2² − 4) x2²."""
    first, second = x[0] ** 2, x[1] ** 2
    return float((4 - 2.1 * first + first**2 / 3) * first + x[0] * x[1] + (4 * second - 4) * second)


SHEKEL_BETA = 0.1 * np.array([1, 2, 2, 4, 4, 6, 3, 7, 5, 5])
SHEKEL_C = np.array(
    [
        [4, 1, 8, 6, 3, 2, 5, 8, 6, 7],
        [4, 1, 8, 6, 7, 9, 3, 1, 2, 3.6],
        [4, 1, 8, 6, 3, 2, 5, 8, 6, 7],
        [4, 1, 8, 6, 7, 9, 3, 1, 2, 3.6],
    ]
)


def shekel(x: Array) -> float:
    """−Σ_i 1/(Σ_j (x_j − C_ji)² + β_i), ten terms."""
    return float(-np.sum(1.0 / (np.sum((x[:, None] - SHEKEL_C) ** 2, axis=0) + SHEKEL_BETA)))


def zakharov(x: Array) -> float:
    """Σ x_i² + (Σ i x_i/2)² + (Σ i x_i/2)⁴."""
    weighted = float(np.arange(1, x.size + 1) @ x) / 2
    return float(x @ x) + weighted**2 + weighted**4


FUNCTIONS: tuple[Problem, ...] = (
    Function("branin", branin, ((-5, 10), (0, 15)), optimum=(math.pi, 2.275), best_value=0.39788735772973816),
    Function(
        "hartmann-3",
        hartmann_3,
        ((0, 1),) * 3,
        optimum=(0.114614, 0.555649, 0.852547),
        best_value=-3.862779787332663,
    ),
    Function(
        "hartmann-6",
        hartmann_6,
        ((0, 1),) * 6,
        optimum=(0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573),
        best_value=-3.3223680114155147,
    ),
    Function("ackley-5", ackley, ((-32.768, 32.768),) * 5, optimum=(0,) * 5, best_value=0.0),
    Function("rosenbrock-4", rosenbrock, ((-5, 10),) * 4, optimum=(1,) * 4, best_value=0.0),
)

MORE_FUNCTIONS: tuple[Problem, ...] = (
    Function(
        "six-hump-camel",
        six_hump_camel,
        ((-3, 3), (-2, 2)),
        optimum=(0.08984201, -0.71265640),
        best_value=-1.0316284534898774,
    ),
    Function(
        "shekel-4",
        shekel,
        ((0, 10),) * 4,
        optimum=(4.00074687, 3.99950948, 4.00074687, 3.99950948),
        best_value=-10.53644315348353,
    ),
    Function("zakharov-5", zakharov, ((-5, 10),) * 5, optimum=(0,) * 5, best_value=0.0),
)
"""For contests that have time for more of them."""

TUNING_FUNCTIONS: tuple[Problem, ...] = (
    Function("levy-4", levy, ((-10, 10),) * 4, optimum=(1,) * 4, best_value=0.0),
    Function(
        "styblinski-tang-5",
        styblinski_tang,
        ((-5, 5),) * 5,
        optimum=(-2.903534,) * 5,
        best_value=-195.8308285188571,
    ),
    Function(
        "michalewicz-5",
        michalewicz,
        ((0, math.pi),) * 5,
        optimum=(2.202906, 1.570796, 1.284992, 1.923058, 1.720470),
        best_value=-4.687658179088148,
    ),
    Function("griewank-4", griewank, ((-300, 600),) * 4, optimum=(0,) * 4, best_value=0.0),
)
"""For tuning our own strategies: what is tuned on them is reported on the others."""
