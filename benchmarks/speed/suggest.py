"""One suggestion of `LogEI` beside Optuna's GPSampler and BoTorch's log EI, which take turns on the same histories.

A history is n − 1 uniform draws and one suggestion, which is not timed: it lets a method that warm-starts its next fit
do so, as in the middle of a study. Then several suggestions in a row are timed, by CPU, on one thread, each told its
loss before the next; the figure is their mean. Ours keep a fit until there are 5 % more observations, so the row is
long enough to hold fits at every size, about as many as a long study has. BoTorch, which fits again every time, has a
shorter row; it takes continuous numbers only and is timed on that space.

How time and memory grow, from 10 trials to 10 000 and from 2 parameters to 100, is measured in fresh processes, for our
strategies of every kind, Optuna's samplers and BoTorch (`_growth`).
"""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.bars import Bar, Result, at_most
from benchmarks.drivers.botorch import BoTorch
from benchmarks.drivers.optuna import suggest as suggest_by_optuna
from benchmarks.problems import Params
from benchmarks.problems.data import missing_package
from benchmarks.problems.synthetic import hartmann_6
from benchmarks.speed._growth import measure as measure_growth
from benchmarks.spread import Spread
from farthing.costs import Remaining
from farthing.space import Choice, Float, Int, Space
from farthing.strategies.plain.bayesian import LogEI
from farthing.strategies.shared.strategy import Randomness
from farthing.trials import History, Problem, State, Suggestion, Trial

SIZES, QUICK_SIZES = (20, 50, 100, 200), (20, 50)
IN_A_ROW, BOTORCH_IN_A_ROW = 11, 3
"""With 11 suggestions from n = 20, 50, 100 and 200 on, ours fit 6, 3, 2 and 1 times."""
SHARE = 0.5
"""Of GPSampler's CPU time, at most."""
GROWTH = (50, 200)
LOG_EI = LogEI()

Seconds = dict[str, float]
"""CPU seconds of each contender."""


@dataclass(frozen=True)
class Task:
    """A space to draw from, and a loss on it."""

    name: str
    space: Space
    loss: Callable[[Params], float]

    def drawn(self, n: int, *, seed: int) -> list[Params]:
        encoder = self.space.encoder
        unit = np.random.default_rng([seed, n]).random((n, encoder.dimension))
        return list(encoder.decode(encoder.from_unit(unit)))


def hartmann_loss(params: Params) -> float:
    return hartmann_6(np.array(list(params.values())))


def network_loss(params: Params) -> float:
    """A bowl in the numbers whose place depends on the optimizer, as learning rates do."""
    place = {"sgd": -1.0, "adam": -3.0, "lion": -4.0, "rmsprop": -3.0}[params["optimizer"]]
    rate = (np.log10(params["rate"]) - place) ** 2
    size = 0.1 * (np.log2(params["units"]) - 7) ** 2 + 0.2 * (params["layers"] - 3) ** 2
    return float(np.log1p(rate + size + 2 * (params["dropout"] - 0.2) ** 2 + 0.1 * abs(params["batch"] - 64) / 64))


TASKS = (
    Task("6-d", Space({f"x{i}": Float(0, 1) for i in range(1, 7)}), hartmann_loss),
    Task(
        "mixed",
        Space(
            {
                "rate": Float(1e-5, 1.0, log=True),
                "dropout": Float(0.0, 0.9),
                "units": Int(16, 1024, log=True),
                "layers": Int(1, 8),
                "batch": Choice(16, 32, 64, 128, 256, ordered=True),
                "optimizer": Choice("sgd", "adam", "lion", "rmsprop"),
            }
        ),
        network_loss,
    ),
)


def run(*, seeds: int, quick: bool) -> Result:
    """`seeds` is the number of histories of each size."""
    missing = {package: missing_package(package) for package in ("optuna", "botorch")}
    contenders = {"ours": ours} | ({} if missing["optuna"] else {"optuna": optunas})
    on_numbers = {} if missing["botorch"] else {"botorch": botorchs}
    rows: list[dict[str, Any]] = []
    bars: list[Bar] = []
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for task in TASKS:
            chosen = contenders | (on_numbers if task.name == "6-d" else {})
            sizes = QUICK_SIZES if quick else SIZES
            _compare(task, chosen, 12, seed=999)  # the first call of each pays for imports and caches
            seconds = {n: [_compare(task, chosen, n, seed=seed) for seed in range(seeds)] for n in sizes}
            rows += [_row(task, n, found) for n, found in seconds.items()]
            bars += _bars(task, seconds)
    without_greenlet = missing_package("greenlet") and "greenlet is absent: GPSampler then takes a slower path"
    left_out = [reason for reason in (*missing.values(), without_greenlet) if reason]
    growth, growth_bars, growth_left_out = measure_growth(seeds=seeds, quick=quick)
    return Result(
        figures={"one suggestion": rows, **growth}, bars=[*bars, *growth_bars], left_out=[*left_out, *growth_left_out]
    )


# ------------------------------------------------------------------------------------------------- contenders


def ours(task: Task, drawn: Sequence[Params]) -> float:
    problem = Problem(task.space)
    trials = [_trial(number, Suggestion(params), task) for number, params in enumerate(drawn)]
    seconds = []
    for _ in range(1 + IN_A_ROW):
        began = time.process_time()
        [suggestion] = LOG_EI.suggest(History(problem, trials), Remaining(), 1, Randomness(0))
        seconds.append(time.process_time() - began)
        trials.append(_trial(len(trials), suggestion, task))
    return fmean(seconds[1:])


def _trial(number: int, suggestion: Suggestion, task: Task) -> Trial:
    return Trial(number, suggestion, State.DONE, value=task.loss(suggestion.params))


def optunas(task: Task, drawn: Sequence[Params]) -> float:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.GPSampler(seed=0))
    for params in drawn:
        study.enqueue_trial(_for_optuna(task.space, params))
    seconds = []
    for _ in range(len(drawn) + 1 + IN_A_ROW):
        began = time.process_time()
        trial = study.ask()
        params = suggest_by_optuna(trial, task.space)
        seconds.append(time.process_time() - began)
        study.tell(trial, task.loss(params))
    return fmean(seconds[-IN_A_ROW:])


def _for_optuna(space: Space, params: Params) -> dict[str, Any]:
    """Ordered choices by their index, as the driver asks for them."""
    return {
        name: parameter.options.index(params[name]) if isinstance(parameter, Choice) and parameter.ordered else value
        for name, value in params.items()
        for parameter in [space.parameters[name]]
    }


def botorchs(task: Task, drawn: Sequence[Params]) -> float:
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    encoder = task.space.encoder
    rows, losses = encoder.encode(drawn), np.array([task.loss(params) for params in drawn])
    seconds = []
    for _ in range(1 + BOTORCH_IN_A_ROW):
        began = time.process_time()
        row = BoTorch("botorch").suggest(rows, losses)
        seconds.append(time.process_time() - began)
        [params] = encoder.decode(row[None, :])
        rows, losses = np.vstack([rows, row]), np.append(losses, task.loss(params))
    return fmean(seconds[1:])


# --------------------------------------------------------------------------------------------------- measuring


def _compare(task: Task, contenders: dict[str, Callable[..., float]], n: int, *, seed: int) -> Seconds:
    drawn = task.drawn(n - 1, seed=seed)
    return {name: contenders[name](task, drawn) for name in sorted(contenders, reverse=bool(seed % 2))}


def _row(task: Task, n: int, found: list[Seconds]) -> dict[str, Any]:
    names = sorted(found[0], key=["ours", "optuna", "botorch"].index)
    times = {f"{name}, CPU ms": str(Spread.of(1000 * seconds[name] for seconds in found)) for name in names}
    shares = {f"ours / {name}": str(_share(found, name)) for name in names if name != "ours"}
    return {"space": task.name, "n": n, **times, **shares, "histories": len(found)}


def _share(found: list[Seconds], peer: str) -> Spread:
    return Spread.of(seconds["ours"] / seconds[peer] for seconds in found)


def _bars(task: Task, seconds: dict[int, list[Seconds]]) -> list[Bar]:
    peers = [name for name in next(iter(seconds.values()))[0] if name != "ours"]
    shares = [
        at_most(
            f"{task.name}, n = {n}, ours / GPSampler", limit=SHARE, measured=_share(found, "optuna").median, unit="CPU"
        )
        for n, found in seconds.items()
        if "optuna" in peers
    ]
    if not set(GROWTH) <= seconds.keys():
        return shares
    return shares + [
        at_most(
            f"{task.name}, growth from n = {GROWTH[0]} to {GROWTH[1]}, beside {peer}",
            limit=round(_growth(seconds, peer), 3),
            measured=_growth(seconds, "ours"),
            unit="times",
        )
        for peer in sorted(peers)
    ]


def _growth(seconds: dict[int, list[Seconds]], name: str) -> float:
    first, last = (Spread.of(found[name] for found in seconds[n]).median for n in GROWTH)
    return last / first
