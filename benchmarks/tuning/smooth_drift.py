"""python -m benchmarks.tuning.smooth_drift: whether a smooth drift is better than forgetting, at equal measurements.

Three models of arms play the same worlds: an RBF in time, exponential forgetting, and the likelier of both at each fit.
All else is equal: nothing is given but what arms give on average and their covariance; amplitude, rate and noise are
learnt during the play, and there is no level. `CEGPUCB` stands beside them. Each plays by the default's rule at several
prices, and by coins, which ask in the same rounds whatever the model. Regrets are compared play by play at as many
measurements, for the rule on the curve over its prices. Nothing was chosen on these plays. A run on record is not made
again.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from math import log, sqrt
from statistics import fmean, stdev
from typing import Any, Literal, TypeAlias

import numpy as np

from benchmarks.baselines.smooth_arms import SmoothArms
from benchmarks.markdown import table
from benchmarks.online.playing import play
from benchmarks.online.worlds import (
    ARM_ROUNDS,
    ARMS,
    READINGS,
    SENSORS,
    Readings,
    Truth,
    World,
    fitted_facts,
    three_arms,
)
from benchmarks.provenance import commit
from benchmarks.records import Record, read_records, results_path
from benchmarks.resuming import make_missing
from farthing.models.linalg import Array
from farthing.online import CEGPUCB, OnlineStrategy
from farthing.online.ce_gp_ucb import FLOOR
from farthing.online.context import QueryRule
from farthing.rules import Bernoulli, Floor, ValueOfInformation

SUITE = "tuning-smooth-drift"
PRICES = (0.003, 0.03, 0.3, 3.0)
"""Of a measurement, in prior standard deviations summed over rounds; the default's is 0.3."""
COINS = (0.03, 0.1)
MODELS = ("smooth", "exponential", "likelier", "CEGPUCB")
OF_EQUAL_START = MODELS[:3]
"""With a coin `CEGPUCB` asks more often, because its first observations are a design."""
SEEDS = range(6000, 6008)
PLAYS = {"metr-la": 7, "intel": 5, "cmu-light": 8}
"""Into how many plays the readings of each set of sensors are cut: those of metr-la are days."""


# ------------------------------------------------------------
# Worlds: arms on new seeds and of new kinds, and days of sensors.


def walk(t: Array, rng: np.random.Generator) -> Array:
    """f_{t+1} = √(1−ε) f_t + √ε g, ε = 0.005: what exponential forgetting supposes, of deviation ¼."""
    F = 0.25 * rng.standard_normal((t.size, 3))
    for row in range(1, t.size):
        F[row] = sqrt(1.0 - 0.005) * F[row - 1] + sqrt(0.005) * F[row]
    return np.asarray(0.5 + F)


def waves(t: Array, rng: np.random.Generator) -> Array:
    """Three sines for each arm, with periods between 300 and 1500 rounds."""
    period, phase = rng.uniform(300.0, 1500.0, (3, 3)), 2.0 * np.pi * rng.random((3, 3))
    return np.asarray(0.5 + np.mean(np.sin(2.0 * np.pi * t[:, None, None] / period + phase), axis=2) / 2.0)


def ramps(t: Array, rng: np.random.Generator) -> Array:
    """Straight lines between levels that are uniform in [0, 1], 250 rounds apart."""
    levels = rng.random((ARM_ROUNDS // 250 + 1, 3))
    return np.stack([np.interp(t, 250.0 * np.arange(len(levels)), level) for level in levels.T], axis=1)


NEW_ARMS = (three_arms("walk", walk), three_arms("waves", waves), three_arms("ramps", ramps))


def part_of(world: World, part: int) -> World:
    """One of the plays that the readings are cut into; what is known before comes from all others."""

    @lru_cache
    def cut() -> Readings:
        whole = READINGS[world.name]()
        parts = np.array_split(np.concatenate([whole.train, whole.test]), PLAYS[world.name])
        return Readings(np.concatenate([one for at, one in enumerate(parts) if at != part]), parts[part])

    whole = READINGS[world.name]()
    lengths = [len(one) for one in np.array_split(np.zeros(len(whole.train) + len(whole.test)), PLAYS[world.name])]
    return World(
        world.name,
        world.space,
        world.candidates,
        lambda seed: Truth(cut().test, np.zeros(lengths[part])),
        facts=cache(lambda: fitted_facts(cut().train)),
        file=world.file,
        rounds=lengths[part],
    )


# ------------------------------------------------------------
# Runs.


@dataclass(frozen=True)
class Trial:
    """One model with one price, or one coin, in one world; the seed of a world of sensors is its part."""

    world: str
    model: str
    asks: Literal["price", "coin"]
    amount: float
    seed: int

    @property
    def identity(self) -> dict[str, Any]:
        settings = {self.asks: self.amount}
        return {"suite": SUITE, "problem": self.world, "method": self.model, "seed": self.seed, "settings": settings}

    @property
    def title(self) -> str:
        return f"{self.world}, {self.model}, {self.asks} {self.amount:g}, seed {self.seed}"


OF_ARMS = {world.name: world for world in (*ARMS, *NEW_ARMS)}
OF_SENSORS = {world.name: world for world in SENSORS}


@lru_cache
def part_named(name: str, part: int) -> World:
    return part_of(OF_SENSORS[name], part)


def result_of(trial: Trial) -> Record:
    world = OF_ARMS.get(trial.world) or part_named(trial.world, trial.seed)
    facts = world.facts()
    scale = facts.get("scale", 1.0)
    score = play(strategy(trial, facts), world, seed=trial.seed)
    asked = {"queries": score.queries, "rounds": world.rounds, "cpu_ms_a_round": score.cpu_ms}
    return {**trial.identity, "regret": score.regret / scale, **asked, **commit()}


def strategy(trial: Trial, facts: dict[str, Any]) -> OnlineStrategy:
    rule: QueryRule = (
        Floor(ValueOfInformation(trial.amount), FLOOR) if trial.asks == "price" else Bernoulli(trial.amount)
    )
    known = {key: facts[key] for key in ("scale", "offset") if key in facts}
    if trial.model == "CEGPUCB":
        return CEGPUCB(kernel=facts.get("kernel", "independent"), rule=rule, floor=0.0, **known)
    drift: Any = trial.model
    return SmoothArms(rule=rule, beta=2.0, covariance=facts.get("kernel"), drift=drift, **known)


def trials(most: int) -> Iterable[Trial]:
    """All plays of sensors, the fewest arms first, and of each world of arms so many."""
    for world in (*reversed(OF_SENSORS), *OF_ARMS):
        for seed in SEEDS[:most] if world in OF_ARMS else range(PLAYS[world]):
            for model in MODELS:
                yield from (Trial(world, model, "price", price, seed) for price in PRICES)
                if model in OF_EQUAL_START:
                    yield from (Trial(world, model, "coin", coin, seed) for coin in COINS)


# ------------------------------------------------------------
# Comparing at equal measurements.


GRID = 21
"""Numbers of measurements, evenly on a logarithmic scale, at which two curves are compared."""


def curves_at_equal(one: str, other: str, world: str, seed: int) -> tuple[float, float] | None:
    """Mean regrets of both at the same numbers of measurements; None where their curves do not overlap.

    Each curve goes through the regrets at the prices, over the logarithm of the measurements.
    """
    curves = [_curve(by_play()[world, model, seed]) for model in (one, other)]
    low, high = max(curve[0][0] for curve in curves), min(curve[-1][0] for curve in curves)
    if low >= high:
        return None
    at = np.linspace(low, high, GRID)
    mine, theirs = (
        float(np.mean(np.interp(at, [asked for asked, _ in curve], [regret for _, regret in curve])))
        for curve in curves
    )
    return mine, theirs


def _curve(rows: Iterable[Record]) -> list[tuple[float, float]]:
    """(log measurements, regret) by measurements; prices with as many measurements are one point."""
    found: dict[int, list[float]] = {}
    for row in rows:
        if "price" in row["settings"]:
            found.setdefault(int(row["queries"]), []).append(float(row["regret"]))
    return [(log(1 + asked), fmean(found[asked])) for asked in sorted(found)]


def by_coin(one: str, other: str, world: str, seed: int) -> tuple[float, float] | None:
    """Mean regrets of both over the coins, which ask in the same rounds."""
    found = [
        [float(row["regret"]) for row in by_play()[world, model, seed] if "coin" in row["settings"]]
        for model in (one, other)
    ]
    return fmean(found[0]), fmean(found[1])


@cache
def by_play() -> dict[tuple[str, str, int], list[Record]]:
    """By world, model and seed; of plays that all models made at all prices and coins."""
    found: dict[tuple[str, str, int], list[Record]] = {}
    runs = Counter[tuple[str, int]]()
    for row in read_records(results_path(SUITE)):
        found.setdefault((row["problem"], row["method"], row["seed"]), []).append(row)
        runs[row["problem"], row["seed"]] += 1
    whole = len(MODELS) * len(PRICES) + len(OF_EQUAL_START) * len(COINS)
    return {key: rows for key, rows in found.items() if runs[key[0], key[2]] == whole}


def plays(world: str) -> list[int]:
    """The seeds of its plays that are whole."""
    return sorted({seed for name, _, seed in by_play() if name == world})


Equal: TypeAlias = Callable[[str, str, str, int], tuple[float, float] | None]


@dataclass(frozen=True)
class Comparison:
    """The change of the mean regret over plays, its standard error, both as shares of the other's, and won and lost."""

    change: float
    error: float
    won: int
    lost: int

    def __str__(self) -> str:
        change = f"{100.0 * self.change:+.0f} %".replace("-", "−")
        return f"{change} ± {100.0 * self.error:.0f}, {self.won}–{self.lost}"


def compared(one: str, other: str, world: str, *, at: Equal = curves_at_equal) -> Comparison | None:
    """None where fewer than two plays have curves that overlap."""
    both = [found for seed in plays(world) if (found := at(one, other, world, seed)) is not None]
    if len(both) < 2:
        return None
    gaps, level = [mine - theirs for mine, theirs in both], fmean(theirs for _, theirs in both)
    won = sum(gap < 0.0 for gap in gaps)
    return Comparison(fmean(gaps) / level, stdev(gaps) / sqrt(len(gaps)) / level, won, len(gaps) - won)


COLUMNS: tuple[tuple[str, str, Equal], ...] = (
    ("by the rule, against exponential", "exponential", curves_at_equal),
    ("by coins, against exponential", "exponential", by_coin),
    ("by the rule, against `CEGPUCB`", "CEGPUCB", curves_at_equal),
)


def report(world: str) -> list[list[str]]:
    """A row for each model but `CEGPUCB`."""
    return [
        [f"{world}, {model}", *("–" if other == model else _cell(model, other, world, at) for _, other, at in COLUMNS)]
        for model in OF_EQUAL_START
    ]


def _cell(one: str, other: str, world: str, at: Equal) -> str:
    return str(compared(one, other, world, at=at) or "no overlap")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plays", type=int, default=len(SEEDS), help="of each world of arms")
    make_missing(results_path(SUITE), list(trials(parser.parse_args(arguments).plays)), result_of=result_of)
    heading = ["change of the regret, plays won–lost", *(name for name, _, _ in COLUMNS)]
    played = [world for world in (*OF_ARMS, *OF_SENSORS) if plays(world)]
    print(table([heading, *(row for world in played for row in report(world))]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
