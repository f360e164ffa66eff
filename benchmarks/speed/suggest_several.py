"""One suggestion of `LogEHVI` with two and with three objectives, after 100 and after 1000 trials.

A history is n − 1 uniform draws and one suggestion, which is timed by itself: it fits every model. Then several in a
row are timed, by CPU, on one thread, each told its values before the next; the figure is their mean. Models are kept
until there are 5 % more observations.
"""

import time
from functools import partial
from statistics import fmean
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.bars import Bar, Result, at_most
from benchmarks.problems.vector_functions import dtlz2
from benchmarks.spread import Spread
from farthing.costs import Remaining
from farthing.space import Float, Space
from farthing.strategies.plain.hypervolume import LogEHVI
from farthing.strategies.shared.strategy import Randomness
from farthing.trials import History, Measurement, Problem, State, Suggestion, Trial
from farthing.trials.objectives import Objective

SIZES, QUICK_SIZES = (100, 1000), (50,)
IN_A_ROW = 5
MOST_MS = 1000.0
"""Of a suggestion in a row: a tenth of a trial of ten seconds. One that fits every model has no bar: it comes with
every 5 % more trials."""
SPACE = Space({f"x{i}": Float(0, 1) for i in range(1, 7)})


def run(*, seeds: int, quick: bool) -> Result:
    """`seeds` is the number of histories of each size."""
    rows: list[dict[str, Any]] = []
    bars: list[Bar] = []
    with threadpool_limits(limits=1):
        for m in (2, 3):
            timed(m, 30, seed=999)  # the first call pays for imports and caches
            for n in QUICK_SIZES if quick else SIZES:
                found = [timed(m, n, seed=seed) for seed in range(seeds)]
                first, later = (Spread.of(1000 * times[i] for times in found) for i in (0, 1))
                rows.append({"objectives": m, "n": n, "with fits, CPU ms": str(first), "in a row, CPU ms": str(later)})
                bars.append(at_most(f"{m} objectives, n = {n}", limit=MOST_MS, measured=later.median, unit="ms"))
    return Result(figures={"one suggestion": rows}, bars=bars, left_out=[])


def timed(m: int, n: int, *, seed: int) -> tuple[float, float]:
    """CPU seconds of the suggestion that fits every model, and of the mean of those after it."""
    problem = Problem(SPACE, value="f1", further=tuple(Objective(f"f{i}") for i in range(2, m + 1)))
    unit = np.random.default_rng([seed, n]).random((n - 1, SPACE.encoder.dimension))
    told = partial(_trial, m=m)
    trials = [told(i, Suggestion(params)) for i, params in enumerate(SPACE.encoder.decode_unit(unit))]
    seconds = []
    for _ in range(1 + IN_A_ROW):
        began = time.process_time()
        [suggestion] = LogEHVI().suggest(History(problem, trials), Remaining(), 1, Randomness(0))
        seconds.append(time.process_time() - began)
        trials.append(told(len(trials), suggestion))
    return seconds[0], fmean(seconds[1:])


def _trial(number: int, suggestion: Suggestion, *, m: int) -> Trial:
    first, *others = map(float, dtlz2(np.array([suggestion.params[f"x{i}"] for i in range(1, 7)]), m=m))
    metrics = {f"f{i}": value for i, value in enumerate(others, start=2)}
    point = Measurement(value=first, metrics=metrics)
    return Trial(number, suggestion, State.DONE, value=first, measurements=(point,))
