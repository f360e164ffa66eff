"""Many cheap trials at equal CPU time: what the default finds beside TPE and CMA-ES, by the seconds of a trial.

The seconds of a trial are not slept: they are added to the CPU time of this process, so a busy machine changes nothing
but the time that the benchmark takes. The default knows the budget, as in `study.run(budget=Budget(seconds=…))`. Each
run is a line of `benchmarks/results/cheap-trials.jsonl.xz`; runs that are there are not repeated.

The first step of the default's evolution was chosen on `TUNING_FUNCTIONS`; the functions here are others.
"""

import json
import math
import time
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bars import Bar, Result
from benchmarks.problems.data import missing_package
from benchmarks.problems.synthetic import FUNCTIONS
from benchmarks.provenance import commit
from benchmarks.records import RESULTS, read_records
from benchmarks.spread import Spread
from farthing import CMAES, Budget, Choice, Float, Int, RunningTrial, Space, Study
from farthing.extending import Strategy

PATH = RESULTS / "cheap-trials.jsonl"
BUDGETS: Mapping[float, float] = {0.0: 1.0, 0.003: 3.0, 0.03: 6.0, 0.3: 18.0}
"""From the seconds of a trial to those of a run, suggesting included."""
QUICK_SEEDS = 2
FEWEST_PAIRS = 10
"""With fewer nothing is beyond error: the bar then counts as not measured."""
EQUAL = 1e-4
"""Regrets that differ by less count as equal: the functions range over units, and nobody tunes for the digits after."""
NAMES = ("hartmann-6", "ackley-5", "rosenbrock-4")
FLAT = np.array([0.0, 0.0, 0.5 / 12, 0.01])
"""Half of the width of a whole number's part of its axis: the bottom of a bowl is reached between two of them too."""
ACTIVATIONS, OPTIMIZERS = ("relu", "tanh", "gelu", "elu"), ("sgd", "adam", "rmsprop")
MIXED = Space(
    {
        "rate": Float(1e-5, 1.0, log=True),
        "momentum": Float(0.0, 1.0),
        "layers": Int(1, 12),
        "units": Int(8, 512, log=True),
        "activation": Choice(*ACTIVATIONS),
        "optimizer": Choice(*OPTIMIZERS),
    }
)


class Clock:
    """CPU time of this process, and the seconds of trials, which pass at once."""

    def __init__(self) -> None:
        self.worked = 0.0

    def now(self) -> float:
        return time.time()

    def elapsed(self) -> float:
        return time.process_time() + self.worked


def mixed(params: Mapping[str, Any]) -> float:
    """Zero at its best: a bowl in the numbers, whose place depends on the categories."""
    place = {"relu": 0.0, "tanh": 0.5, "gelu": -0.3, "elu": 0.2}[params["activation"]]
    penalty = {"sgd": 0.3, "adam": 0.0, "rmsprop": 0.1}[params["optimizer"]] + {"gelu": 0.0}.get(
        params["activation"], 0.2
    )
    rate = (math.log10(params["rate"]) + 3.0 - place) / 2.5
    bowl = (params["momentum"] - 0.9) ** 2 + rate**2 + 0.5 * rate * (params["momentum"] - 0.9)
    return float(bowl + (params["layers"] - 7) ** 2 / 50 + (math.log2(params["units"]) - 7.0) ** 2 / 20 + penalty)


def shifted(seed: int) -> Callable[[Mapping[str, Any]], float]:
    """A bowl for each pair of categories, at a random place and with a random floor; that of the best is zero."""
    rng = np.random.default_rng(seed)
    shape = (len(ACTIVATIONS), len(OPTIMIZERS))
    places, floors = rng.random((*shape, 4)), rng.uniform(0.05, 0.4, shape)
    floors[rng.integers(shape[0]), rng.integers(shape[1])] = 0.0

    def value(params: Mapping[str, Any]) -> float:
        pair = ACTIVATIONS.index(params["activation"]), OPTIMIZERS.index(params["optimizer"])
        numbers = MIXED.encoder.encode([params])[0, :4]
        away = np.maximum(np.abs(numbers - places[pair]) - FLAT, 0.0)
        return float(away @ away + floors[pair])

    return value


def problems(seed: int = 0) -> dict[str, tuple[Space, Callable[[Mapping[str, Any]], float], float]]:
    """Space, value and least value by name; `shifted` is another function with each seed."""
    found = {problem.name: problem for problem in FUNCTIONS if problem.name in NAMES}
    plain = {name: (found[name].space(), found[name].full_value, found[name].best_value or 0.0) for name in NAMES}
    return {**plain, "mixed": (MIXED, mixed, 0.0), "shifted": (MIXED, shifted(seed), 0.0)}


def ours(strategy: Strategy | None) -> Callable[..., tuple[float, int]]:
    def run(
        space: Space, value: Callable[..., float], *, seconds: float, budget: float, seed: int
    ) -> tuple[float, int]:
        clock = Clock()
        study = Study(space, minimize="value", strategy=strategy, seed=seed, clock=clock)

        def work(trial: RunningTrial) -> float:
            clock.worked += seconds
            return value(trial.params)

        study.run(work, budget=Budget(seconds=budget), executor="inline", progress=False)
        return min(trial.value for trial in study.history.done if trial.value is not None), len(study.trials)

    return run


def optunas(
    space: Space, value: Callable[..., float], *, seconds: float, budget: float, seed: int
) -> tuple[float, int]:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    clock, best, count = Clock(), math.inf, 0
    began, axes = clock.elapsed(), {name: _distribution(parameter) for name, parameter in space.parameters.items()}
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    while clock.elapsed() - began < budget:
        trial = study.ask(axes)
        found = value(trial.params)
        clock.worked += seconds
        study.tell(trial, found)
        best, count = min(best, found), count + 1
    return best, count


def _distribution(parameter: object) -> Any:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    match parameter:
        case Float(low=low, high=high, log=log):
            return FloatDistribution(low, high, log=log)
        case Int(low=low, high=high, log=log):
            return IntDistribution(low, high, log=log)
        case Choice():
            options: Any = parameter.options
            return CategoricalDistribution(options)
    raise TypeError(f"no distribution for {parameter!r}")


METHODS: Mapping[str, Callable[..., tuple[float, int]]] = {
    "default": ours(None),
    "CMAES": ours(CMAES()),
    "optuna-tpe": optunas,
}


def run(*, seeds: int, quick: bool) -> Result:
    missing = missing_package("optuna")
    methods = [name for name in METHODS if not (missing and name.startswith("optuna"))]
    wanted = list(product(range(QUICK_SEEDS if quick else seeds), BUDGETS, problems(), methods))
    records = read(PATH)
    for seed, seconds, problem, method in wanted:
        key = (problem, seconds, method, seed)
        if key not in records:
            records[key] = _measured(*key)
            _write(PATH, key, records[key])
    rows = [_row(records, problem, seconds, methods) for problem, seconds in product(problems(), BUDGETS)]
    return Result(
        figures={"regret at equal CPU time": rows}, bars=_bars(records), left_out=[missing] if missing else []
    )


Key = tuple[str, float, str, int]


def _measured(problem: str, seconds: float, method: str, seed: int) -> dict[str, float]:
    space, value, least = problems(seed)[problem]
    best, trials = METHODS[method](space, value, seconds=seconds, budget=BUDGETS[seconds], seed=seed)
    return {"regret": best - least, "trials": trials}


def read(path: Path) -> dict[Key, dict[str, float]]:
    forms = read_records(path)
    return {
        (form["problem"], form["seconds"], form["method"], form["seed"]): {
            "regret": form["regret"],
            "trials": form["trials"],
        }
        for form in forms
    }


def _write(path: Path, key: Key, found: Mapping[str, float]) -> None:
    form = (
        dict(zip(("problem", "seconds", "method", "seed"), key, strict=True))
        | {"budget": BUDGETS[key[1]]}
        | dict(found)
        | commit()
    )
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(form) + "\n")


def _regrets(records: Mapping[Key, Mapping[str, float]], problem: str, seconds: float, method: str) -> dict[int, float]:
    return {key[3]: one["regret"] for key, one in records.items() if key[:3] == (problem, seconds, method)}


def _row(
    records: Mapping[Key, Mapping[str, float]], problem: str, seconds: float, methods: list[str]
) -> dict[str, Any]:
    row: dict[str, Any] = {"problem": problem, "seconds a trial": seconds, "seconds a run": BUDGETS[seconds]}
    for method in methods:
        regrets = _regrets(records, problem, seconds, method)
        counts = [one["trials"] for key, one in records.items() if key[:3] == (problem, seconds, method)]
        row[method] = (
            f"{Spread.of(regrets.values())}, {Spread.of(counts).median:.0f} trials" if regrets else "not measured"
        )
    row["default against CMAES, TPE"] = ", ".join(_wins(records, problem, seconds, other) for other in methods[1:])
    row["n"] = len(_regrets(records, problem, seconds, "default"))
    return row


def _wins(records: Mapping[Key, Mapping[str, float]], problem: str, seconds: float, other: str) -> str:
    own, theirs = (_regrets(records, problem, seconds, method) for method in ("default", other))
    pairs = [(own[seed], theirs[seed]) for seed in own if seed in theirs]
    return f"{sum(a < b - EQUAL for a, b in pairs)}–{sum(a > b + EQUAL for a, b in pairs)}"


def _is_behind(records: Mapping[Key, Mapping[str, float]], problem: str, seconds: float, other: str) -> bool:
    """Beyond error: by a sign test of the pairs at 5 %, one-sided."""
    own, theirs = (_regrets(records, problem, seconds, method) for method in ("default", other))
    pairs = [(own[seed], theirs[seed]) for seed in own if seed in theirs and abs(own[seed] - theirs[seed]) > EQUAL]
    lost = sum(a > b for a, b in pairs)
    chance = sum(math.comb(len(pairs), k) for k in range(lost, len(pairs) + 1)) / 2 ** len(pairs)
    return bool(pairs) and chance < 0.05


def _bars(records: Mapping[Key, Mapping[str, float]]) -> list[Bar]:
    behind = [
        f"{problem} at {seconds:g} s"
        for problem, seconds in product(problems(), BUDGETS)
        if all(_is_behind(records, problem, seconds, other) for other in ("CMAES", "optuna-tpe"))
    ]
    cells = product(problems(), BUDGETS)
    fewest = min(len(_regrets(records, problem, seconds, "default")) for problem, seconds in cells)
    is_enough = fewest >= FEWEST_PAIRS
    return [
        Bar(
            what="the default is behind both TPE and CMA-ES, beyond error",
            bar="nowhere",
            measured=", ".join(behind) or ("nowhere" if is_enough else None),
            holds=is_enough and not behind,
        )
    ]
