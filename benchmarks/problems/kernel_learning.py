"""Kernel learning: the hyperparameters of a Gaussian process, with its likelihood and the gradient of that.

The problem of the taKG paper (after the one-dimensional demonstration of KISS-GP), scaled down: 2048 points of a smooth
function with noise, and inducing points on a grid (the subset-of-regressors approximation). Both numbers are
fidelities, neither a trace. The loss is the negative log marginal likelihood per point. An evaluation costs its share
of the arithmetic, n m²; with its gradient 2.5 times as much, which is what counting operations gives.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize

from benchmarks.problems.problem import Direction, Evaluation, Params, Problem
from farthing.space import Fidelity, Float, Space

Array: TypeAlias = npt.NDArray[np.float64]

POINTS, INDUCING = 2048, 64
GRADIENT_COST = 2.5
JITTER = 1e-8
NAMES = ("variance", "lengthscale", "noise")
SPACE = Space(
    {
        "variance": Float(1e-2, 1e2, log=True),
        "lengthscale": Float(3e-2, 1e1, log=True),
        "noise": Float(1e-3, 1e1, log=True),
    },
    fidelities={"points": Fidelity(256, POINTS, integer=True), "inducing": Fidelity(24, INDUCING, integer=True)},
)


@dataclass(frozen=True)
class KernelLearning:
    name: str = "kernel-learning"
    direction: Direction = "minimize"
    full_cost: float = 1.0
    gives_gradient: bool = False

    def missing(self) -> str | None:
        return None

    def space(self) -> Space:
        return SPACE

    def with_gradient(self) -> "KernelLearning":
        """The same problem whose evaluations have gradients, and cost more for it."""
        return replace(self, gives_gradient=True)

    def evaluate(self, params: Params, fidelity: Mapping[str, float], *, seed: int) -> Evaluation:
        n, m = round(fidelity["points"]), round(fidelity["inducing"])
        x, y = _data(n)
        value, slopes = likelihood([math.log(params[name]) for name in NAMES], x, y, m)
        share = n * m**2 / (POINTS * INDUCING**2)
        gradient = {name: float(slope) / params[name] for name, slope in zip(NAMES, slopes, strict=True)}
        if not self.gives_gradient:
            return Evaluation(value, share)
        return Evaluation(value, GRADIENT_COST * share, gradient=gradient)

    def full_value(self, params: Params) -> float:
        return _full_value(tuple(params.items()))

    @cached_property
    def best_value(self) -> float:
        """By quasi-Newton steps at full fidelity from where the data were drawn."""
        x, y = _data(POINTS)
        found = minimize(likelihood, np.log([1.0, 0.5, 0.04]), args=(x, y, INDUCING), jac=True, method="L-BFGS-B")
        return float(found.fun)


@lru_cache(maxsize=4096)
def _full_value(params: tuple[tuple[str, float], ...]) -> float:
    return KernelLearning().evaluate(dict(params), SPACE.full_fidelity, seed=0).value


@cache
def _data(count: int) -> tuple[Array, Array]:
    """The first `count` points; they come in random order, so that few of them cover the line too."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-5.0, 5.0, POINTS)
    y = np.sin(2.0 * x) + 0.5 * np.cos(5.0 * x) + 0.1 * x + 0.2 * rng.standard_normal(POINTS)
    return x[:count], y[:count]


def likelihood(theta: Array | list[float], x: Array, y: Array, m: int) -> tuple[float, Array]:
    """−log N(y; 0, Q)/n and its derivatives in the logarithms θ of variance v, lengthscale ℓ and noise s.

    Q = K_fu K_uu⁻¹ K_uf + s I,   B = s I + A Aᵀ,   A = L⁻¹ K_uf,   L Lᵀ = K_uu
    dQ = dK_fu W + Wᵀ dK_uf − Wᵀ dK_uu W,   W = K_uu⁻¹ K_uf
    """
    (v, length, s), n = np.exp(np.asarray(theta)), x.size
    u = np.linspace(-5.0, 5.0, m)
    Kfu, Kuu = _rbf(x, u, v, length), _rbf(u, u, v, length)
    L = cholesky(Kuu + JITTER * v * np.eye(m), lower=True)
    A = solve_triangular(L, Kfu.T, lower=True)
    B = cho_factor(s * np.eye(m) + A @ A.T, lower=True)
    c = A @ y
    alpha = (y - A.T @ cho_solve(B, c)) / s
    log_det = (n - m) * math.log(s) + 2.0 * float(np.sum(np.log(np.diag(B[0]))))
    value = 0.5 * (n * math.log(2.0 * math.pi) + log_det + float(y @ alpha)) / n

    W = solve_triangular(L.T, A, lower=False)
    G = (W.T - A.T @ cho_solve(B, A @ W.T)) / s  # Q⁻¹ Wᵀ
    trace_inverse = (n - float(np.trace(cho_solve(B, A @ A.T)))) / s
    by_noise = 0.5 * (trace_inverse - float(alpha @ alpha)) * s
    Wa = W @ alpha
    slopes = []
    for dKfu, dKuu in ((Kfu, Kuu), (_by_length(Kfu, x, u, length), _by_length(Kuu, u, u, length))):
        trace = 2.0 * float(np.sum(G * dKfu)) - float(np.sum(dKuu * (W @ G)))
        quadratic = 2.0 * float(alpha @ dKfu @ Wa) - float(Wa @ dKuu @ Wa)
        slopes.append(0.5 * (trace - quadratic))
    return value, np.array([*slopes, by_noise]) / n


def _rbf(a: Array, b: Array, v: float, length: float) -> Array:
    return np.asarray(v * np.exp(-0.5 * (a[:, None] - b[None, :]) ** 2 / length**2))


def _by_length(K: Array, a: Array, b: Array, length: float) -> Array:
    """∂K/∂ log ℓ."""
    return np.asarray(K * (a[:, None] - b[None, :]) ** 2 / length**2)


KERNEL_LEARNING: tuple[Problem, ...] = (KernelLearning(),)
