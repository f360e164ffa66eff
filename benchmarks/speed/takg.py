"""Compares a suggestion of `TraceKG` with BoTorch's multi-fidelity knowledge gradient, in turns on the same data.

The data are n observations: n/2 runs at uniform params and fidelities, each seen at half of its trace and at its end,
which is what enters our model by default. One suggestion is made untimed, so that a method that warm-starts its next
fit does so, as in the middle of a study; then several in a row are timed, by CPU, on one thread, each told its result
before the next. BoTorch fits a `SingleTaskMultiFidelityGP` to the same rows and optimises
`qMultiFidelityKnowledgeGradient` with 16 fantasies and 3 restarts. On some of these data all attempts of its fit fail;
that time counts too, and it continues from there. With the settings of its tutorial (128 fantasies, 10 restarts, 512
raw samples, at most 200 iterations) it is timed once, at the sizes in `TUTORIAL_SIZES`.
"""

import math
import time
import warnings
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.bars import Bar, Result, at_most
from benchmarks.drivers.botorch_mf import BoTorchMFKG
from benchmarks.problems.augmented import AUGMENTED, FIXED_COST, Augmented
from benchmarks.problems.data import missing_package
from benchmarks.spread import Spread
from farthing.costs import Remaining
from farthing.strategies.multifidelity import TraceKG
from farthing.strategies.shared.strategy import Randomness, Strategy
from farthing.trials import History, Measurement, Problem, State, Suggestion, Trial

SIZES, QUICK_SIZES, TUTORIAL_SIZES = (16, 48, 96, 200), (16,), (16,)
NAMES = ("augmented-branin", "augmented-hartmann-6", "augmented-rosenbrock-3")
IN_A_ROW, BOTORCH_IN_A_ROW = 8, 1
SHARE, MOST_SECONDS, MOST_SIZE = 1 / 20, 0.3, 100
OURS = "ours"

Seconds = dict[str, float]
"""CPU seconds of each contender."""


LIGHT = BoTorchMFKG("light", iterations=200)
TUTORIAL = BoTorchMFKG("tutorial", fantasies=128, restarts=10, raw_samples=512, iterations=200)


def run(*, seeds: int, quick: bool) -> Result:
    """`seeds` is the number of histories of each size."""
    missing = missing_package("botorch")
    peers: dict[str, Callable[..., float]] = {} if missing else {"botorch": botorchs}
    rows: list[dict[str, Any]] = []
    bars: list[Bar] = []
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for problem in (found for found in AUGMENTED if found.name in NAMES):
            assert isinstance(problem, Augmented)
            _compare(problem, peers, 8, seed=999)  # the first call of each pays for imports and caches
            for n in QUICK_SIZES if quick else SIZES:
                found = [_compare(problem, peers, n, seed=seed) for seed in range(seeds)]
                tutorial = not (missing or quick) and n in TUTORIAL_SIZES
                slow = botorchs(problem, drawn(problem, n, seed=0), TUTORIAL) if tutorial else None
                rows.append(_row(problem, n, found, slow))
                bars += _bars(problem, n, found)
    return Result(figures={"one suggestion": rows}, bars=bars, left_out=[missing] if missing else [])


# -------------------------------------------------------------------------------------------------------- the data


def drawn(problem: Augmented, n: int, *, seed: int) -> list[Trial]:
    """n/2 runs, each seen twice."""
    space, rng = problem.space(), np.random.default_rng([seed, n])
    params = space.encoder.decode_unit(rng.random((n // 2, space.encoder.dimension)))
    fidelities = space.encoder.decode_fidelity(rng.uniform(0.2, 1.0, (n // 2, len(space.fidelities))))
    return [
        seen(problem, number, Suggestion(one, fidelity))
        for number, (one, fidelity) in enumerate(zip(params, fidelities, strict=True))
    ]


def seen(problem: Augmented, number: int, suggestion: Suggestion) -> Trial:
    *_, traced = suggestion.fidelity
    half = {**suggestion.fidelity, traced: max(0.1, suggestion.fidelity[traced] / 2)}
    points = [
        Measurement(value=problem.evaluate(suggestion.params, at, seed=0).value, fidelity=at)
        for at in (half, suggestion.fidelity)
    ]
    return Trial(number, suggestion, State.DONE, value=points[-1].value, measurements=tuple(points))


def declared(params: object, fidelity: Any) -> float:
    return FIXED_COST + float(np.prod(list(fidelity.values())))


# ------------------------------------------------------------------------------------------------------- contenders


def ours(strategy: Strategy, problem: Augmented, trials: Sequence[Trial]) -> float:
    """The cost is known to both: BoTorch gets it as its cost model."""
    history = History(Problem(problem.space(), declared_cost=declared), trials)
    seconds = []
    for _ in range(1 + IN_A_ROW):
        began = time.process_time()
        [suggestion] = strategy.suggest(history, Remaining(), 1, Randomness(0))
        seconds.append(time.process_time() - began)
        history = history.updated([seen(problem, len(history), suggestion)], version=len(history))
    return fmean(seconds[1:])


def botorchs(problem: Augmented, trials: Sequence[Trial], peer: BoTorchMFKG = LIGHT) -> float:
    """Not a number where it fails: on exact values its matrices can be singular beyond repair."""
    import torch
    from gpytorch.settings import cholesky_max_tries
    from linear_operator.utils.errors import NotPSDError

    torch.set_num_threads(1)
    torch.manual_seed(0)
    encoder = problem.space().encoder
    points = [(trial.params, point) for trial in trials for point in trial.measurements]
    X = np.hstack(
        [
            encoder.encode([params for params, _ in points]),
            encoder.encode_fidelity([point.fidelity for _, point in points]),
        ]
    )
    loss = np.array([point.value for _, point in points])
    seconds = []
    for _ in range(BOTORCH_IN_A_ROW):
        began = time.process_time()
        try:
            with cholesky_max_tries(9):  # by default it gives up sooner on matrices that are nearly singular
                row = peer.suggest(X, loss, problem.fidelities)
        except (NotPSDError, RuntimeError):
            return math.nan
        seconds.append(time.process_time() - began)
        params, fidelity = encoder.decode(row[None, : -problem.fidelities]), row[-problem.fidelities :]
        amounts = dict(zip(problem.space().fidelities, np.maximum(fidelity, 0.1).tolist(), strict=True))
        X = np.vstack([X, row])
        loss = np.append(loss, problem.evaluate(params[0], amounts, seed=0).value)
    return fmean(seconds)


# -------------------------------------------------------------------------------------------------------- measuring


def _compare(problem: Augmented, peers: dict[str, Callable[..., float]], n: int, *, seed: int) -> Seconds:
    trials = drawn(problem, n, seed=seed)
    return {OURS: ours(TraceKG(), problem, trials)} | {name: peer(problem, trials) for name, peer in peers.items()}


def _row(problem: Augmented, n: int, found: list[Seconds], tutorial: float | None) -> dict[str, Any]:
    compared = _compared(found)
    times = {"ours, CPU ms": str(Spread.of(1000 * seconds[OURS] for seconds in found))}
    theirs = {"botorch, CPU ms": str(Spread.of(1000 * seconds["botorch"] for seconds in compared))} if compared else {}
    shares = {"ours / botorch": str(_share(compared))} if compared else {}
    slow = {} if tutorial is None or math.isnan(tutorial) else {"botorch, tutorial, CPU ms": round(1000 * tutorial)}
    counts = {"histories": len(found), "botorch failed on": sum("botorch" in one for one in found) - len(compared)}
    return {"function": problem.name, "n": n, **times, **theirs, **shares, **slow, **counts}


def _compared(found: list[Seconds]) -> list[Seconds]:
    """The seeds for which BoTorch had an answer."""
    return [seconds for seconds in found if math.isfinite(seconds.get("botorch", math.nan))]


def _share(compared: list[Seconds]) -> Spread:
    return Spread.of(seconds[OURS] / seconds["botorch"] for seconds in compared)


def _bars(problem: Augmented, n: int, found: list[Seconds]) -> list[Bar]:
    where = f"{problem.name}, n = {n}"
    measured = Spread.of(seconds[OURS] for seconds in found).median
    compared = _compared(found)
    share = _share(compared).median if compared else None
    shares = [at_most(f"{where}, ours / BoTorch", limit=SHARE, measured=share, unit="CPU")]
    seconds = [at_most(f"{where}, ours", limit=MOST_SECONDS, measured=measured, unit="CPU s")]
    return (shares if "botorch" in found[0] else []) + (seconds if n <= MOST_SIZE else [])
