"""Compares one batched search for Eq. 8 of LaMBO, over all arms, with a loop of `scipy.optimize.minimize`.

The function is the lower confidence bound of a Gaussian process with 100 observations in 6 dimensions; an arm is a box
of its first three, and each arm has two starts, the best of 32 points of its box, with the effort that LaMBO has.
SciPy's L-BFGS-B gets the same starts, one row at a time: once by default, with finite differences, and once with our
exact gradient. Screening is not timed. The optima compared are those of the arms, over
their starts.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from benchmarks.bars import Bar, Result, at_most
from benchmarks.spread import Spread
from farthing.acquisition.confidence_bound import ConfidenceBound, lambo_beta
from farthing.acquisition.maximize import BOX_EFFORT, Domain, improve
from farthing.models.fitting import fit_gp
from farthing.models.kernels import SE, Constant
from farthing.models.linalg import Array

ARMS, QUICK_ARMS = (8, 32, 64), (8,)
N, D, STARTS, SCREENED = 100, 6, BOX_EFFORT.restarts, BOX_EFFORT.screened
SHARE = 0.05
"""Of the loop's CPU time, at most."""
SAME = 1e-4
"""The largest allowed difference of the optima, in standardised units."""
TIMES = ("ours", "loop", "loop with our gradient")
SHARES = ("ours / loop", "ours / loop with our gradient")


def run(*, seeds: int, quick: bool) -> Result:
    """`seeds` is the number of processes for each number of arms."""
    rows: list[dict[str, Any]] = []
    bars: list[Bar] = []
    with threadpool_limits(limits=1):
        for arms in QUICK_ARMS if quick else ARMS:
            found = [_compare(arms, seed=seed) for seed in range(seeds)]
            rows.append(_row(arms, found))
            bars += _bars(arms, found)
    return Result(figures={"all arms": rows}, bars=bars, left_out=[])


def _bars(arms: int, found: list[dict[str, float]]) -> list[Bar]:
    apart = max(one["loop's optima below ours"] for one in found)
    return [
        *(
            at_most(f"{arms} arms, {name}", limit=SHARE, measured=_spread(found, name).median, unit="CPU")
            for name in SHARES
        ),
        at_most(f"{arms} arms, worst optimum of ours beside the loop's", limit=SAME, measured=apart, unit=""),
    ]


def _compare(arms: int, *, seed: int) -> dict[str, float]:
    bound, starts, lower, upper = _problem(arms, seed=seed)
    screened = bound(starts)
    ours, seconds = _timed(lambda: _batched(bound, starts, screened, lower, upper))
    loop, plain_seconds = _timed(lambda: _loop(bound, starts, lower, upper, with_gradient=False))
    exact, exact_seconds = _timed(lambda: _loop(bound, starts, lower, upper, with_gradient=True))
    best = np.maximum(loop, exact).reshape(arms, STARTS).max(axis=1)
    behind = best - ours.reshape(arms, STARTS).max(axis=1)
    return {
        "ours": seconds,
        "loop": plain_seconds,
        "loop with our gradient": exact_seconds,
        "ours / loop": seconds / plain_seconds,
        "ours / loop with our gradient": seconds / exact_seconds,
        "loop's optima below ours": float(max(behind.max(), 0.0)),
    }


def _problem(arms: int, *, seed: int) -> tuple[ConfidenceBound, Array, Array, Array]:
    """Returns the bound, and for every start of every arm its place and the box of the arm."""
    rng = np.random.default_rng([seed, arms])
    X = rng.random((N, D))
    y = np.sum(np.cos(3.0 * X + rng.random(D)), axis=1) + 0.05 * rng.standard_normal(N)
    gp = fit_gp(Constant() * SE(tuple(range(D))), X, (y - y.mean()) / y.std())
    bound = ConfidenceBound(gp, lambo_beta(N, D))
    cuts = rng.integers(0, 4, (arms, 3)) / 4.0
    lower, upper = np.zeros((arms, D)), np.ones((arms, D))
    lower[:, :3], upper[:, :3] = cuts, cuts + 0.25
    points = lower[:, None, :] + rng.random((arms, SCREENED, D)) * (upper - lower)[:, None, :]
    value = bound(points.reshape(-1, D)).reshape(arms, SCREENED)
    best = np.argsort(-value, axis=1)[:, :STARTS]
    starts = np.take_along_axis(points, best[:, :, None], axis=1).reshape(-1, D)
    return bound, starts, np.repeat(lower, STARTS, axis=0), np.repeat(upper, STARTS, axis=0)


def _batched(bound: ConfidenceBound, starts: Array, screened: Array, lower: Array, upper: Array) -> Array:
    domain = Domain((None,) * D)
    return improve(bound, domain, starts, screened, lower=lower, upper=upper, effort=BOX_EFFORT)[1]


def _loop(bound: ConfidenceBound, starts: Array, lower: Array, upper: Array, *, with_gradient: bool) -> Array:
    def loss(x: Array) -> tuple[float, Array]:
        value, gradient = bound.value_and_gradient(x[None, :])
        return -float(value[0]), -gradient[0]

    def loss_alone(x: Array) -> float:
        return -float(bound(x[None, :])[0])

    found = [
        minimize(
            loss if with_gradient else loss_alone,
            start,
            jac=with_gradient,
            bounds=np.stack([low, high], axis=1),
            method="L-BFGS-B",
        ).fun
        for start, low, high in zip(starts, lower, upper, strict=True)
    ]
    return -np.array(found)


def _timed(work: Callable[[], Array]) -> tuple[Array, float]:
    began = time.process_time()
    found = work()
    return found, time.process_time() - began


def _spread(found: list[dict[str, float]], name: str) -> Spread:
    return Spread.of(one[name] for one in found)


def _row(arms: int, found: list[dict[str, float]]) -> dict[str, Any]:
    times = {f"{name}, CPU ms": str(Spread.of(1000 * one[name] for one in found)) for name in TIMES}
    shares = {name: str(_spread(found, name)) for name in SHARES}
    return {"arms": arms, "n": N, **times, **shares, "processes": len(found)}
