"""Runs a suite of bandits, continues one that was interrupted, and reports: `python -m benchmarks.run online-…`."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.online.playing import play
from benchmarks.online.report import as_text, report
from benchmarks.online.suites import ONLINE_SUITES, OnlineSuite
from benchmarks.online.worlds import World
from benchmarks.plan import matches
from benchmarks.provenance import commit, versions
from benchmarks.records import Record, read_records, results_path
from benchmarks.resuming import make_missing, suite_options
from farthing.fields.serialization import to_json
from farthing.online import OnlineStrategy

PACKAGES = ("numpy", "scipy")

LATER = {"climbs": 0, "needs_skill": None, "rewards": "any", "covariance": None, "time": None, "drift": "smooth"}
"""Arguments that earlier results were recorded without, at their defaults: the same runs."""
LATER_OF_SMOOTH_ARMS = {"silent": "mean", "priors": True}
"""Those of `SmoothArms` alone; others were recorded with what silent rounds play."""


@dataclass(frozen=True)
class Game:
    """One strategy in one world with one seed."""

    suite: OnlineSuite
    world: World
    method: str
    seed: int

    @property
    def title(self) -> str:
        return f"{self.world.name} · {self.method} · seed {self.seed}"

    @property
    def strategy(self) -> OnlineStrategy:
        return self.suite.contenders[self.method](self.world.facts())

    @property
    def identity(self) -> dict[str, Any]:
        settings = to_json(self.strategy)
        arguments = settings["arguments"]
        arguments |= {
            key: "fitted" for key in ("kernel", "covariance", "offset") if isinstance(arguments.get(key), list)
        }
        return {
            "problem": self.world.name,
            "method": self.method,
            "seed": self.seed,
            "settings": without_later(settings),
        }


def without_later(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings as they were recorded before some arguments came, where these are at their defaults."""
    arguments = settings["arguments"]
    later = LATER | (LATER_OF_SMOOTH_ARMS if settings["name"].endswith("SmoothArms") else {})
    known = {key: value for key, value in arguments.items() if key not in later or value != later[key]}
    return {**settings, "arguments": known}


def main(arguments: Sequence[str] | None = None) -> int:
    options = suite_options(ONLINE_SUITES, description=__doc__).parse_args(arguments)
    suite = ONLINE_SUITES[options.name].quick() if options.quick else ONLINE_SUITES[options.name]
    path = options.output or results_path(suite.name)
    games = list(_games(suite, seeds=options.seeds, problems=options.problems or (), methods=options.methods or ()))
    make_missing(path, games, result_of=result_of)
    records = [record for record in read_records(path) if _belongs(record, suite)]
    if not records:
        sys.stderr.write(f"Nothing of {suite.name} can be run: the patterns match nothing, or all of it is left out.\n")
        return 1
    print(as_text(report(suite, records), as_json=options.json))
    return 0


def _games(suite: OnlineSuite, *, seeds: int | None, problems: Sequence[str], methods: Sequence[str]) -> Iterator[Game]:
    """For each world and seed all strategies, one after another."""
    for world in suite.worlds:
        if not matches(world.name, problems):
            continue
        if reason := world.missing():
            sys.stderr.write(f"left out: {world.name}: {reason}\n")
            continue
        for seed in suite.all_seeds(seeds):
            for name in suite.contenders:
                if matches(name, methods):
                    yield Game(suite, world, name, seed)


def _belongs(record: Record, suite: OnlineSuite) -> bool:
    """Whether a result is of this suite; one with a lower seed is of a time when things were chosen on it."""
    return bool(record["suite"] == suite.name and record["seed"] >= suite.first_seed)


def result_of(game: Game) -> Record:
    score = play(game.strategy, game.world, seed=game.seed)
    return {
        "suite": game.suite.name,
        **game.identity,
        "rounds": game.world.rounds,
        **score.to_json(),
        "bounds": _bounds(game.world) if game.suite.measure == "reward" else None,
        "versions": versions(PACKAGES),
        **commit(),
    }


def _bounds(world: World) -> dict[str, float]:
    F = world.truth(0).F
    return {
        "a random arm": float(np.mean(F)),
        "the arm that was best before": float(np.mean(F[:, int(np.argmax(world.facts()["offset"]))])),
        "the best fixed arm": float(np.max(np.mean(F, axis=0))),
        "the best arm of each step": float(np.mean(np.max(F, axis=1))),
    }


if __name__ == "__main__":
    sys.exit(main())
