"""python -m benchmarks.tuning.guess_parts PARTS: which parts of a `guess=` of parameters earn something.

`all` is in use: the first start is the guess, every second start after it is near, and the acquisition has the guess as
a factor. `first start` is that alone, `starts` are all of them without the factor, and `factor` is it with the first
start. Studies of seeds that are not reported, with a good guess, any, and the worst of 200. A run on record is not made
again. Without parts, prints a row for each.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.drivers.guessing import QUALITIES
from benchmarks.method import Method
from benchmarks.methods import METHODS
from benchmarks.problems import PROBLEMS, Problem
from benchmarks.problems.synthetic import FUNCTIONS
from benchmarks.provenance import commit
from benchmarks.records import Record, read_records, results_path
from benchmarks.resuming import make_missing
from benchmarks.suites import LEARNING_CURVES, Allowance
from benchmarks.trajectory import trajectory
from farthing.acquisition import belief
from farthing.strategies.shared import guessing, starts

SUITE = "tuning-guess-parts"
SEEDS = range(100, 104)
CONTESTS: Sequence[tuple[str, Sequence[str], Allowance, tuple[float, ...]]] = (
    ("log-ei", tuple(one.name for one in FUNCTIONS), Allowance(20, "evaluations"), (10.0, 20.0)),
    ("TraceKG", LEARNING_CURVES[:4], Allowance(2, "full runs"), (1.0, 2.0)),
)


@dataclass(frozen=True)
class Guessed:
    """One study under one rule."""

    parts: str
    method: Method
    problem: Problem
    allowance: Allowance
    budgets: tuple[float, ...]
    seed: int

    @property
    def identity(self) -> dict[str, Any]:
        settings = {"parts": self.parts}
        return {
            "suite": SUITE,
            "problem": self.problem.name,
            "method": self.method.name,
            "seed": self.seed,
            "settings": settings,
        }

    @property
    def title(self) -> str:
        return f"{self.parts}: {self.problem.name} · {self.method.name} · seed {self.seed}"


def use(parts: str) -> None:
    if parts in ("first start", "factor"):
        for module in (guessing, starts):
            vars(module)["is_near"] = lambda history, place, rng: False
    if parts in ("first start", "starts"):
        vars(belief)["Believed"] = lambda acquisition, belief, weight: acquisition


def result_of(guessed: Guessed) -> Record:
    standings = list(trajectory(guessed.method, guessed.problem, allowance=guessed.allowance, seed=guessed.seed))
    regrets = {}
    for most in guessed.budgets:
        reached = [one.regret for one in standings if one.spent <= most and one.regret is not None]
        regrets[f"{most:g}"] = reached[-1] if reached else None
    return {**guessed.identity, "regrets": regrets, **commit()}


def row_of(parts: str, records: Sequence[Record]) -> list[str]:
    """For each method and budget the pairs won, equal and lost against all parts."""
    found = {(one["method"], one["problem"], one["seed"], one["settings"]["parts"]): one["regrets"] for one in records}
    cells = []
    for strategy, _, _, budgets in CONTESTS:
        for quality in QUALITIES:
            for budget in budgets:
                gaps = []
                for (method, *key, of), regrets in found.items():
                    if (method, of) == (f"{strategy}-guess-{quality}", parts):
                        mine, usual = regrets[f"{budget:g}"], found[method, *key, "all"][f"{budget:g}"]
                        gaps += [] if None in (mine, usual) else [mine - usual]
                if gaps:
                    won, lost = sum(gap < 0 for gap in gaps), sum(gap > 0 for gap in gaps)
                    cells.append(f"{strategy} {quality} at {budget:g}: {won}–{len(gaps) - won - lost}–{lost}")
    return cells


def main(rules: Sequence[str]) -> int:
    if not rules:
        records = read_records(results_path(SUITE))
        for parts in dict.fromkeys(str(record["settings"]["parts"]) for record in records):
            print(f"{parts}\n  " + "\n  ".join(row_of(parts, records)))
        return 0
    [parts] = rules
    use(parts)
    runs = [
        Guessed(parts, METHODS[f"{strategy}-guess-{quality}"], PROBLEMS[name], allowance, budgets, seed)
        for strategy, problems, allowance, budgets in CONTESTS
        for name in problems
        for seed in SEEDS
        for quality in QUALITIES
    ]
    make_missing(results_path(SUITE), runs, result_of=result_of)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
