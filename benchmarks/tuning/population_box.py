"""python -m benchmarks.tuning.population_box RULE TASK …: how far `PB2` may go from the donor, in real training.

Each rule is `PB2` with one change, on seeds that `population-real` does not have, 40 of each task, on a GPU where there
is one. `--images` and `--output` are as there. Without a name, prints who wins how many pairs of each task. A run that
is on record is not made again.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.population import real
from benchmarks.records import read_records, results_path
from farthing.models.linalg import Array
from farthing.space import Float, Int
from farthing.strategies.population import PB2
from farthing.strategies.population.model import Picking
from farthing.strategies.population.pbt import PBT, Clone
from farthing.strategies.population.strategy import PopulationStrategy

SUITE, DEFAULT = "tuning-population-box", "PB2"
FIRST_SEED, SEEDS, SIZE = 24, 40, 8
FACTOR = 2.0
"""The most by which a parameter on a logarithmic scale may change at once."""

Kind = Callable[..., PopulationStrategy]


def a_factor_of_two() -> Kind:
    """Parameters on a logarithmic scale change by this factor at most, the others as with the default's box."""
    Picking.side = property(natural_sides)  # type: ignore[assignment,method-assign]
    return PB2


def natural_sides(self: Picking) -> Array:
    assert self.box is not None
    declared = self.members.history.problem.space.parameters.values()
    return np.array([min(self.box, _side(one)) for one in declared])


def _side(declared: object) -> float:
    if isinstance(declared, Float | Int) and declared.log:
        return 2.0 * float(np.log(FACTOR) / np.log(declared.high / declared.low))
    return 2.0


RULES: Mapping[str, Callable[[], Kind]] = {
    DEFAULT: lambda: PB2,
    "PB2, a box of .1": lambda: partial(PB2, box=0.1),
    "PB2, a box of .2": lambda: partial(PB2, box=0.2),
    "PB2, a factor of two": a_factor_of_two,
    "PBT": lambda: PBT,
    "Clone": lambda: Clone,
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m benchmarks.tuning.population_box", description=__doc__)
    parser.add_argument("rule", nargs="?", choices=RULES)
    parser.add_argument("tasks", nargs="*", choices=(*real.REPORTED, []))
    parser.add_argument("--images", type=Path, metavar="FILE")
    parser.add_argument("--commit")
    parser.add_argument("--output", type=Path, default=results_path(SUITE), metavar="FILE")
    options = parser.parse_args(arguments)
    if options.rule is None:
        print(pairs(options.output))
        return 0
    real.SUITE = SUITE
    real.METHODS = {options.rule: real.population(RULES[options.rule]())}
    named = [("--images", options.images), ("--commit", options.commit)]
    return real.main(
        [
            *("--problems", *(options.tasks or real.REPORTED), "--output", str(options.output), "--sizes", str(SIZE)),
            *("--seeds", str(SEEDS), "--first-seed", str(FIRST_SEED)),
            *(text for name, value in named if value is not None for text in (name, str(value))),
        ]
    )


def pairs(path: Path) -> str:
    """Wins and losses of every rule against the default and against PBT, by task and in all."""
    regret = {(row["method"], row["problem"], row["seed"]): row["regret"] for row in read_records(path)}
    tasks = sorted({task for _, task, _ in regret})
    lines = []
    for other in (DEFAULT, "PBT"):
        for rule in RULES:
            won, lost = Counter[str](), Counter[str]()
            for name, task, seed in regret:
                if name == rule and rule != other and (other, task, seed) in regret:
                    gap = regret[rule, task, seed] - regret[other, task, seed]
                    won[task] += gap < 0
                    lost[task] += gap > 0
            if won:
                counts = ", ".join(f"{task} {won[task]}-{lost[task]}" for task in tasks)
                lines.append(f"{rule} against {other}: {counts}; in all {won.total()}-{lost.total()}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
