"""Times a round of online tuning: the CPU time of a decision and of an observation, and how both grow.

A fifth of the rounds is measured, with ε = 0.03. The rounds around a mark are timed one by one, silent and measured
ones apart. The textbook GP factorises all observations again in every round, as published code does.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import mean, median
from typing import Any

import numpy as np

from benchmarks.bars import Bar, Result, at_most
from benchmarks.spread import Spread
from farthing.models.kernels import Matern32
from farthing.models.linalg import Array, one_thread
from farthing.online import CEGPUCB, OnlineProblem, Player
from farthing.online.context import Query, RoundContext
from farthing.online.strategy import Observation
from farthing.rules import Every, ValueOfInformation
from farthing.space import Float, Space

EPSILON, NOISE, LENGTHSCALE = 0.03, 0.01, 0.2
MARKS, QUICK_MARKS = (100, 1000, 2000, 10_000), (100, 1000, 2000)
SIZES, QUICK_SIZES = (50, 1000, 5000), (50, 1000)
DIMENSION = 4
AROUND = 50
"""Rounds timed at each mark."""

GROWTH, SILENT_MS, TEXTBOOK = 1.5, 1.0, 100.0


@dataclass(frozen=True)
class FifthAtDefaultPrice:
    """The default rule is evaluated in every round, as in use, and every fifth round is measured."""

    rule: ValueOfInformation = field(default_factory=ValueOfInformation)

    def ask(self, context: RoundContext) -> Query | None:
        self.rule.ask(context)
        return Every(5).ask(context)


@dataclass(frozen=True)
class Mark:
    """CPU milliseconds of a round around a mark, and the bytes the player has taken by then."""

    round: int
    silent: float
    measured: float
    mixed: float
    """The mean over all rounds: the work after a measurement is done in the next round."""
    bytes: int


def run(*, seeds: int, quick: bool) -> Result:
    marks = QUICK_MARKS if quick else MARKS
    with one_thread():
        by_name = {
            **{f"{m} candidates": [_timed(_grid_player(m, s), marks) for s in range(seeds)] for m in _sizes(quick)},
            f"{DIMENSION}-d space": [_timed(_space_player(s), marks) for s in range(min(seeds, 2))],
        }
        textbook = _textbook_ms(2000)
    rows = [_row(name, runs, place) for name, runs in by_name.items() for place in range(len(marks))]
    ours = median(runs[marks.index(2000)].mixed for runs in by_name["1000 candidates"])
    return Result(
        figures={
            "rounds": rows,
            "textbook GP at round 2000, CPU ms a round": textbook,
            "textbook / ours at round 2000, 1000 candidates": textbook / ours,
        },
        bars=[*_growth_bars(by_name, marks), _silent_bar(by_name["1000 candidates"]), _textbook_bar(textbook / ours)],
        left_out=[],
    )


def _sizes(quick: bool) -> tuple[int, ...]:
    return QUICK_SIZES if quick else SIZES


def _row(name: str, runs: list[list[Mark]], place: int) -> dict[str, Any]:
    marks = [run[place] for run in runs]
    return {
        "where": name,
        "round": marks[0].round,
        "silent, CPU ms": str(Spread.of(mark.silent for mark in marks)),
        "measured, CPU ms": str(Spread.of(mark.measured for mark in marks)),
        "memory, MiB": round(median(mark.bytes for mark in marks) / 2**20, 2),
        "n": len(marks),
    }


def _growth_bars(by_name: dict[str, list[list[Mark]]], marks: tuple[int, ...]) -> list[Bar]:
    """The last mark against round 2000, in time and in memory."""
    middle, last = marks.index(2000), len(marks) - 1
    bars: list[Bar] = []
    for name, runs in by_name.items():
        slower = median(run[last].mixed / run[middle].mixed for run in runs)
        larger = median(run[last].bytes / run[middle].bytes for run in runs)
        label = f"round {marks[last]} / round 2000, {name}"
        bars.append(at_most(f"time: {label}", limit=GROWTH, measured=slower, unit="×"))
        bars.append(at_most(f"memory: {label}", limit=GROWTH, measured=larger, unit="×"))
    return bars


def _silent_bar(runs: list[list[Mark]]) -> Bar:
    worst = median(max(mark.silent for mark in run) for run in runs)
    return at_most("a silent round, 1000 candidates", limit=SILENT_MS, measured=worst, unit="CPU ms")


def _textbook_bar(ratio: float) -> Bar:
    what = "textbook GP / ours at round 2000"
    return Bar(what=what, bar=f"≥ {TEXTBOOK:g} ×", measured=ratio, holds=ratio >= TEXTBOOK)


def _grid_player(m: int, seed: int) -> tuple[Player, Callable[[Any], float]]:
    space = Space({"x": Float(0.0, 1.0)})
    problem = OnlineProblem(space.encoder, 20_000, seed, candidates=[{"x": float(x)} for x in np.linspace(0.0, 1.0, m)])
    strategy = CEGPUCB(
        kernel="matern32",
        lengthscale=LENGTHSCALE,
        noise=NOISE,
        forgetting=EPSILON,
        scale=1.0,
        rule=FifthAtDefaultPrice(),
    )
    return strategy.begin(problem), lambda place: float(np.sin(12.0 * place / m))


def _space_player(seed: int) -> tuple[Player, Callable[[Any], float]]:
    space = Space({f"x{j}": Float(0.0, 1.0) for j in range(DIMENSION)})
    strategy = CEGPUCB(lengthscale=0.5, noise=NOISE, forgetting=EPSILON, scale=1.0, rule=FifthAtDefaultPrice())
    return strategy.begin(OnlineProblem(space.encoder, 20_000, seed)), lambda row: float(np.sum(np.sin(5.0 * row)))


def _timed(player_and_function: tuple[Player, Callable[[Any], float]], marks: tuple[int, ...]) -> list[Mark]:
    player, function = player_and_function
    noise = np.random.default_rng(0)
    found: list[Mark] = []
    round = 0
    for mark in marks:
        spent: dict[bool, list[float]] = {False: [], True: []}
        while round < mark + AROUND:
            round += 1
            began = time.process_time()
            choice = player.decide(round)
            if choice.measure:
                player.observe(Observation(round, choice.place, function(choice.place) + 0.1 * noise.standard_normal()))
            if round > mark - AROUND:
                spent[choice.measure].append(1000.0 * (time.process_time() - began))
        silent, measured = median(spent[False]), median(spent[True])
        found.append(Mark(mark, silent, measured, _trimmed_mean([*spent[False], *spent[True]]), _size(player)))
    return found


def _trimmed_mean(times: list[float]) -> float:
    """Leaves out the slowest twentieth, which other work on the machine makes slow."""
    return mean(sorted(times)[: -max(1, len(times) // 20)])


def _size(thing: Any, seen: set[int] | None = None) -> int:
    """Bytes of all arrays that a player holds, each counted once, and of its list of observations."""
    seen = set() if seen is None else seen
    if id(thing) in seen:
        return 0
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        return int(thing.nbytes)
    if isinstance(thing, (list, tuple)):
        return 8 * len(thing) + sum(_size(part, seen) for part in thing)
    if isinstance(thing, dict):
        return sum(_size(part, seen) for part in thing.values())
    parts = getattr(thing, "__dict__", None)
    return 64 + _size(parts, seen) if parts else 64


def _textbook_ms(n: int) -> float:
    """One round of the textbook: the GP of n observations factorised and predicted at 1000 points, timed once."""
    rng = np.random.default_rng(0)
    X, grid = rng.random((n, 1)), np.linspace(0.0, 1.0, 1000)[:, None]
    kernel, theta = Matern32((0,)), np.log([LENGTHSCALE])
    t = np.arange(n, dtype=float)
    y: Array = rng.standard_normal(n)
    began = time.process_time()
    K = kernel.evaluate(theta, X).K * (1 - EPSILON) ** (np.abs(t[:, None] - t[None, :]) / 2)
    C = kernel.evaluate(theta, grid, X).K * (1 - EPSILON) ** ((n - t) / 2)
    L = np.linalg.cholesky(K + NOISE * np.eye(n))
    V = np.linalg.solve(L, C.T)
    _mean = V.T @ np.linalg.solve(L, y)
    _variance = 1.0 - np.sum(V * V, axis=0)
    return 1000.0 * (time.process_time() - began)
