"""Compares the CPU time of all choices of a population at the end of an interval with that of Ray Tune's PB2.

A population has trained for some intervals on a 4-d task with noise. Its params were drawn at random, except at the
last interval but one, where the model chose them: the timed fit starts from that fit. Reading the history is timed too.
Ray's PB2 refits everything for each replaced member: one of its choices is timed and multiplied by their number. It is
not measured at B = 64.
"""

import time
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.bars import Bar, Result, at_most
from benchmarks.population.playing import trained
from benchmarks.population.ray_pb2 import RayPB2, missing
from benchmarks.population.tasks import Drifting
from benchmarks.spread import Spread
from farthing.costs import Remaining
from farthing.models.linalg import one_thread
from farthing.strategies import Randomness, Strategy
from farthing.strategies.population import PB2
from farthing.strategies.population.members import Members
from farthing.strategies.population.pbt import Clone
from farthing.strategies.population.strategy import PopulationStrategy, Replacement, Replacements, replaced_count
from farthing.trials import History, Problem

TASK = Drifting("speed", dimension=4, intervals=60, width=0.3, drift=0.1, noise=0.1)
SIZES, QUICK_SIZES = (4, 8, 16, 32, 64), (4, 8)
AFTER, QUICK_AFTER = (5, 20, 50), (5, 20)
RAY_SEEDS = {4: 5, 8: 5, 16: 3, 32: 1}
"""Repeats for Ray. Its time varies much with the end point of its fits, but a choice at B = 32 takes minutes."""

EVERYWHERE, LARGE, SECONDS, GROWTH = 0.25, 0.1, 1.0, 1.5


@dataclass(frozen=True)
class Point:
    """CPU seconds of one interval's decisions, ours and Ray's, by population and number of intervals."""

    population: int
    after: int
    ours: Spread
    ray: float | None

    @property
    def ratio(self) -> float | None:
        return None if self.ray is None else self.ours.median / self.ray

    def row(self) -> dict[str, Any]:
        return {
            "B": self.population,
            "after intervals": self.after,
            "ours, CPU ms": str(Spread.of([1000.0 * part for part in self.ours[:3]])),
            "Ray PB2, CPU s": self.ray,
            "ours / Ray": self.ratio,
            "n": self.ours.n,
        }


def run(*, seeds: int, quick: bool) -> Result:
    has_ray = missing(TASK.space()) is None
    with one_thread():
        points = [
            Point(B, after, _ours(B, after, seeds), _ray(B, after) if has_ray and B in RAY_SEEDS else None)
            for B in (QUICK_SIZES if quick else SIZES)
            for after in (QUICK_AFTER if quick else AFTER)
        ]
    return Result(
        figures={"decisions of one interval": [point.row() for point in points]},
        bars=_bars(points),
        left_out=[] if has_ray else [missing(TASK.space()) or ""],
    )


def _bars(points: list[Point]) -> list[Bar]:
    compared = [point for point in points if point.ratio is not None]
    large = [point.ratio or 0.0 for point in compared if point.population >= 16 and point.after >= 20]
    every = max((point.ratio or 0.0 for point in compared), default=None)
    bars = [at_most("ours / Ray's PB2, the largest", limit=EVERYWHERE, measured=every, unit="×")]
    if large:
        what = "ours / Ray's PB2 from B = 16 after 20 intervals, the largest"
        bars.append(at_most(what, limit=LARGE, measured=max(large), unit="×"))
    if most := [point.ours.median for point in points if point.population == 64]:
        bars.append(at_most("ours at B = 64, the largest", limit=SECONDS, measured=max(most), unit="CPU s"))
    for B in dict.fromkeys(point.population for point in points):
        at = {point.after: point.ours.median for point in points if point.population == B}
        if {20, 50} <= at.keys() and B >= 8:
            what = f"ours after 50 / after 20 intervals, B = {B}"
            bars.append(at_most(what, limit=GROWTH, measured=at[50] / at[20], unit="×"))
    return bars


def _ours(population: int, after: int, seeds: int) -> Spread:
    return Spread.of(_timed(PB2(population=population, interval=1), population, after, seed) for seed in range(seeds))


def _timed(strategy: Strategy, population: int, after: int, seed: int) -> float:
    """The median of three calls, each with a history that has not been read before."""
    history = _history(population, after, seed)
    spent: list[float] = []
    for _ in range(3):
        unread = History(history.problem, list(history))
        began = time.process_time()
        strategy.suggest(unread, Remaining(), population, Randomness(seed))
        spent.append(time.process_time() - began)
    return median(spent)


def _ray(population: int, after: int) -> float:
    """One choice of Ray's, times the number of members that are replaced."""
    strategy = RayPB2(population=population, interval=1)
    strategy.explore(_one_replaced(4, 3), Randomness(0))  # loads what it needs
    spent = [_ray_choice(strategy, population, after, seed) for seed in range(RAY_SEEDS[population])]
    return replaced_count(population, strategy.quantile) * median(spent)


def _ray_choice(strategy: PopulationStrategy, population: int, after: int, seed: int) -> float:
    replacements = _one_replaced(population, after, seed)
    began = time.process_time()
    strategy.explore(replacements, Randomness(seed))
    return time.process_time() - began


def _one_replaced(population: int, after: int, seed: int = 0) -> Replacements:
    members = Members(_history(population, after, seed), population)
    before = members.successes[after]
    best = min(before, key=lambda member: members.loss(before[member]))
    worst = max(before, key=lambda member: members.loss(before[member]))
    return Replacements(members, [Replacement(worst, best, before[best])], interval=after + 1)


def _history(population: int, after: int, seed: int) -> History:
    """A population that has trained for `after` intervals."""
    history = History(Problem(TASK.space(), value="score", minimize=False, seed=seed, cost_unit="intervals"))
    states: dict[int | None, tuple[float, ...]] = {None: TASK.start(seed)}
    for interval in range(1, after + 1):
        strategy = (PB2 if interval == after else Clone)(population=population, interval=1)
        suggestions = list(strategy.suggest(history, Remaining(), population, Randomness(seed)))
        history = history.updated(list(trained(suggestions, history, states, TASK, seed)), version=interval)
    return history
