"""Times suggestions of one contender after n trials of d numbers, in a process of its own; prints one JSON object.

A history is n uniform draws of a bowl. The first suggestion, which fits hyperparameters and loads what is needed, is
given by itself; of those after it the mean counts, each told its result before the next. Memory is what the peak of the
process grows by from the history on, packages that a suggestion loads among it.
"""

import json
import resource
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.drivers.botorch import BoTorch
from farthing.costs import Remaining
from farthing.space import Fidelity, Float, Parameter, Space
from farthing.strategies import Randomness, Strategy
from farthing.strategies.multifidelity.bohb import BOHB
from farthing.strategies.multifidelity.halving import ASHA, Hyperband
from farthing.strategies.multifidelity.handover import suggest_in_haste
from farthing.strategies.multifidelity.takg import TraceKG
from farthing.strategies.pipeline.prefix_ei import PrefixEI
from farthing.strategies.plain.bayesian import EIPerCost, LogEI
from farthing.strategies.population import PB2
from farthing.strategies.population.pbt import Clone
from farthing.trials import History, Measurement, Params, Problem, State, Suggestion, Trial

EPOCHS = 32
SHORTEST = (4, 8, 16, 32)
"""Runs of `TraceKG` end at these epochs, half of them at the first, a quarter at the second, and so on."""
POPULATION = 8


class Timed:
    """CPU seconds of suggestions, one after the other."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, suggest: Callable[[], Any]) -> Any:
        began = time.process_time()
        found = suggest()
        self.seconds.append(time.process_time() - began)
        return found


Step = Callable[[Timed], None]
"""Makes one suggestion, timed, and tells its result."""


def main(name: str, n: int, d: int, in_a_row: int, seed: int) -> None:
    timed = Timed()
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        step = CONTENDERS[name](n, d, seed)
        before = _peak()
        for _ in range(1 + in_a_row):
            step(timed)
    first, *others = timed.seconds
    print(json.dumps({"first": first, "seconds": fmean(others), "megabytes": _peak() - before}))


def _peak() -> float:
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) / 1024


def names(d: int) -> list[str]:
    return [f"x{i}" for i in range(d)]


def bowl(params: Params) -> float:
    return float(sum((value - 0.3) ** 2 for value in params.values())) / len(params)


def drawn(space: Space, n: int, seed: int) -> list[Params]:
    return list(space.encoder.decode_unit(np.random.default_rng([seed, n]).random((n, space.encoder.dimension))))


# -------------------------------------------------------------------------------------------------------------- ours


def told(strategy: Strategy, space: Space, trials: Sequence[Trial], evaluate: Callable[..., Trial], seed: int) -> Step:
    """Suggestions of a strategy on a history that grows by them."""
    history = History(Problem(space, seed=seed), trials)

    def step(timed: Timed) -> None:
        nonlocal history
        [suggestion] = timed(lambda: strategy.suggest(history, Remaining(), 1, Randomness(seed)))
        history = history.updated([evaluate(len(history), suggestion, history)], version=len(history))

    return step


def plain(strategy: Strategy, n: int, d: int, seed: int) -> Step:
    space = Space({name: Float(0, 1) for name in names(d)})
    trials = [_plain_trial(i, Suggestion(params)) for i, params in enumerate(drawn(space, n, seed))]
    return told(strategy, space, trials, _plain_trial, seed)


def _plain_trial(number: int, suggestion: Suggestion, history: History | None = None) -> Trial:
    """Costs differ by a factor of seven along the first parameter, so that those who learn costs have some to learn."""
    paid = Measurement(cost={"training": float(np.exp(2.0 * suggestion.params["x0"]))}, charged=True)
    return Trial(number, suggestion, State.DONE, value=bowl(suggestion.params), measurements=(paid,))


def curves(strategy: Strategy, n: int, d: int, seed: int) -> Step:
    epochs = Fidelity(1, EPOCHS, integer=True, trace=True)
    space = Space({name: Float(0, 1) for name in names(d)}, fidelities={"epochs": epochs})
    ends = np.random.default_rng([seed, n]).choice(SHORTEST, n, p=(0.5, 0.25, 0.125, 0.125)).tolist()
    asked = [Suggestion(params, {"epochs": end}) for params, end in zip(drawn(space, n, seed), ends, strict=True)]
    return told(strategy, space, [_curve(i, one) for i, one in enumerate(asked)], _curve, seed)


class Haste(TraceKG):
    """`TraceKG` where its model would take too long for every trial."""

    def suggest(self, history: History, budget: Remaining, count: int, rng: Randomness) -> Sequence[Suggestion]:
        return suggest_in_haste(history, budget, count, rng)


def _curve(number: int, suggestion: Suggestion, history: History | None = None) -> Trial:
    source = None if history is None or suggestion.resume_from is None else history[suggestion.resume_from]
    before = 0.0 if source is None else source.fidelity["epochs"]
    points = [
        Measurement(value=bowl(suggestion.params) + 0.5 / epoch, fidelity={"epochs": epoch}, cost={"training": 1.0})
        for epoch in range(int(before) + 1, int(suggestion.fidelity["epochs"]) + 1)
    ]
    return Trial(number, suggestion, State.DONE, value=points[-1].value, measurements=tuple(points))


def pipeline(n: int, d: int, seed: int) -> Step:
    """Two stages, half of the parameters each, the first ten times as expensive; nothing drawn shares its prefix."""
    half = d // 2
    parts: list[dict[str, Parameter]] = [
        {name: Float(0, 1) for name in part} for part in (names(d)[:half], names(d)[half:])
    ]
    space = Space(stages=dict(zip(("prepare", "train"), parts, strict=True)))
    trials = [_staged(i, Suggestion(params)) for i, params in enumerate(drawn(space, n, seed))]
    return told(PrefixEI(), space, trials, _staged, seed)


def _staged(number: int, suggestion: Suggestion, history: History | None = None) -> Trial:
    value = bowl(suggestion.params)
    stages = (Measurement(step=0, cost={"stage": 10.0}), Measurement(step=1, cost={"stage": 1.0}))
    return Trial(number, suggestion, State.DONE, value=value, measurements=(*stages, Measurement(value=value)))


def population(n: int, d: int, seed: int) -> Step:
    """All decisions of one interval of eight members that have trained for n/8 intervals; a step is one interval."""
    strategy, rng = PB2(population=POPULATION, interval=1), np.random.default_rng(seed)
    steps = Fidelity(1, n // POPULATION + 100, integer=True, trace=True)
    space = Space({name: Float(0, 1) for name in names(d)}, fidelities={"steps": steps})
    history = History(Problem(space, seed=seed))

    def trained(asked: Sequence[Suggestion]) -> History:
        done = [_member_trial(len(history) + i, one) for i, one in enumerate(asked)]
        return history.updated(done, version=len(history) + len(done))

    def interval(of: Strategy) -> list[Suggestion]:
        return list(of.suggest(history, Remaining(), POPULATION, Randomness(seed)))

    for _ in range(max(1, n // POPULATION)):
        asked = interval(Clone(population=POPULATION, interval=1))
        history = trained([_redrawn(one, space, rng) for one in asked])

    def step(timed: Timed) -> None:
        nonlocal history
        history = trained(timed(lambda: interval(strategy)))

    return step


def _redrawn(suggestion: Suggestion, space: Space, rng: np.random.Generator) -> Suggestion:
    return replace(suggestion, params=space.encoder.decode_unit(rng.random((1, space.encoder.dimension)))[0])


def _member_trial(number: int, suggestion: Suggestion) -> Trial:
    value = bowl(suggestion.params) + 1.0 / (1 + number // POPULATION)
    point = Measurement(value=value, fidelity=dict(suggestion.fidelity), cost={"training": 1.0})
    return Trial(number, suggestion, State.DONE, value=value, measurements=(point,), checkpoint=f"trial-{number}")


# ------------------------------------------------------------------------------------------------------------- peers


def optunas(sampler: str, n: int, d: int, seed: int) -> Step:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=getattr(optuna.samplers, sampler)(seed=seed))
    ranges: dict[str, optuna.distributions.BaseDistribution] = {
        name: optuna.distributions.FloatDistribution(0.0, 1.0) for name in names(d)
    }
    rows = np.random.default_rng([seed, n]).random((n, d)).tolist()
    for row in rows:
        params = dict(zip(names(d), row, strict=True))
        study.add_trial(optuna.create_trial(params=params, distributions=ranges, value=bowl(params)))

    def step(timed: Timed) -> None:
        def asked() -> tuple[Any, Params]:
            trial = study.ask()
            return trial, {name: trial.suggest_float(name, 0.0, 1.0) for name in names(d)}

        trial, params = timed(asked)
        study.tell(trial, bowl(params))

    return step


def botorchs(n: int, d: int, seed: int) -> Step:
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    rows = np.random.default_rng([seed, n]).random((n, d))
    losses = np.mean((rows - 0.3) ** 2, axis=1)

    def step(timed: Timed) -> None:
        nonlocal rows, losses
        row = timed(lambda: BoTorch("botorch").suggest(rows, losses))
        rows, losses = np.vstack([rows, row]), np.append(losses, np.mean((row - 0.3) ** 2))

    return step


CONTENDERS: dict[str, Callable[[int, int, int], Step]] = {
    "LogEI": partial(plain, LogEI()),
    "EIPerCost": partial(plain, EIPerCost()),
    "TraceKG": partial(curves, TraceKG()),
    "TraceKG in haste": partial(curves, Haste()),
    "ASHA": partial(curves, ASHA()),
    "Hyperband": partial(curves, Hyperband()),
    "BOHB": partial(curves, BOHB()),
    "PrefixEI": pipeline,
    "PB2": population,
    "Optuna TPE": partial(optunas, "TPESampler"),
    "Optuna GPSampler": partial(optunas, "GPSampler"),
    "BoTorch": botorchs,
}


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
