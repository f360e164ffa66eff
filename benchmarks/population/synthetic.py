"""Populations on made-up tasks: `python -m benchmarks.run population-synthetic`.

Every method trains a population of B agents on the same tasks with the same seeds, random search as many whole runs. A
run that the file of results has is not repeated. Ray's PB2 takes up to a minute a run, so it is given fewer seeds.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.plan import matches
from benchmarks.population.playing import play
from benchmarks.population.ray_pb2 import PACKAGES as RAY_PACKAGES
from benchmarks.population.ray_pb2 import RayPB2
from benchmarks.population.ray_pb2 import missing as ray_is_missing
from benchmarks.population.report import as_text, report
from benchmarks.population.tasks import TASKS, Task
from benchmarks.provenance import commit, versions
from benchmarks.records import Record, read_records, results_path
from benchmarks.resuming import make_missing, suite_options
from farthing.strategies import Strategy
from farthing.strategies.plain.random import Random
from farthing.strategies.population import PB2
from farthing.strategies.population.pbt import PBT, Clone

SUITE = "population-synthetic"
SEEDS, QUICK_SEEDS = 20, 2
SIZES = (4, 8, 16)
PACKAGES = ("numpy", "scipy")

METHODS: Mapping[str, Callable[[int], Strategy]] = {
    "random search": lambda B: Random(),
    "Clone": lambda B: Clone(population=B, interval=1),
    "PBT": lambda B: PBT(population=B, interval=1),
    "PB2.paper()": lambda B: PB2.paper(population=B, interval=1),
    "PB2": lambda B: PB2(population=B, interval=1),
    "Ray PB2": lambda B: RayPB2(population=B, interval=1),
}

RAY_SEEDS = {("toy", 4): 5, ("drift", 4): 20, ("drift", 8): 5, ("drift4", 4): 5, ("cliff", 4): 10}
"""How many seeds Ray's PB2 is run with; elsewhere not at all, for the time it takes."""


@dataclass(frozen=True)
class Game:
    """One method on one task with one seed."""

    task: Task
    population: int
    method: str
    seed: int

    @property
    def title(self) -> str:
        return f"{self.task.name}, B = {self.population} · {self.method} · seed {self.seed}"

    @property
    def strategy(self) -> Strategy:
        return METHODS[self.method](self.population)

    @property
    def identity(self) -> dict[str, Any]:
        return {
            "problem": f"{self.task.name}, B = {self.population}",
            "method": self.method,
            "seed": self.seed,
            "settings": {"strategy": _settings(self.strategy), "task": repr(self.task)},
        }

    def missing(self) -> str | None:
        if self.method != "Ray PB2":
            return None
        if self.seed >= RAY_SEEDS.get((self.task.name, self.population), 0):
            return "Ray's PB2 takes too long for more"
        return ray_is_missing(self.task.space())


def main(arguments: Sequence[str] | None = None) -> int:
    options = suite_options([SUITE], description=__doc__).parse_args(arguments)
    name = f"{SUITE}-quick" if options.quick else SUITE
    path = options.output or results_path(name)
    seeds = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    sizes = SIZES[:1] if options.quick else SIZES
    chosen = games(seeds=seeds, sizes=sizes, problems=options.problems or (), methods=options.methods or ())
    can_be_run = [game for game in chosen if game.missing() is None]
    make_missing(path, can_be_run, result_of=lambda game: result_of(game, suite=name))
    records = read_records(path)
    if not records:
        sys.stderr.write(f"Nothing of {name} can be run: the patterns match nothing, or all of it is left out.\n")
        return 1
    print(as_text(report(name, records, ours="PB2", order=tuple(METHODS)), as_json=options.json))
    return 0


def games(
    *, seeds: int, sizes: Sequence[int], problems: Sequence[str] = (), methods: Sequence[str] = ()
) -> Iterator[Game]:
    """For each task, size and seed all methods, one after another, so that none has a quieter machine."""
    for task in TASKS:
        for population in sizes:
            for seed in range(seeds):
                for method in METHODS:
                    game = Game(task, population, method, seed)
                    if matches(game.identity["problem"], problems) and matches(method, methods):
                        yield game


def result_of(game: Game, *, suite: str) -> Record:
    outcome = play(game.strategy, game.task, population=game.population, seed=game.seed)
    return {
        "suite": suite,
        **game.identity,
        "regret": outcome.regret,
        "best_regret": outcome.best_regret,
        "trials": outcome.trials,
        "suggest_cpu_seconds": outcome.suggest_cpu_seconds,
        "versions": versions((*PACKAGES, *(RAY_PACKAGES if game.method == "Ray PB2" else ()))),
        **commit(),
    }


def _settings(strategy: Strategy) -> dict[str, Any]:
    form = strategy.to_json()
    return {"name": type(strategy).__name__, "arguments": form["arguments"]}


if __name__ == "__main__":
    sys.exit(main())
