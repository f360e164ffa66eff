"""python -m benchmarks.tuning.guess_parts PARTS: which parts of a `guess=` of parameters earn something.

`all` is in use: the first start is the guess, every second start after it is near, and the acquisition has the guess as
a factor. `first start` is that alone, `starts` are all of them without the factor, and `factor` is it with the first
start. Studies of seeds that are not reported, with a good guess, any, and the worst of 200. A run on record is not made
again. Without parts, prints how each does.
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
PARTS = ("all", "first start", "starts", "factor")
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


def beaten(records: Sequence[Record], parts: str, method: str, budget: str) -> tuple[int, int, int]:
    """In how many studies all parts have less, the same and more regret than these alone."""
    found = {(one["problem"], one["seed"], one["settings"]["parts"]): one["regrets"][budget]
             for one in records if one["method"] == method}  # fmt: skip
    pairs = [(found[*key, "all"], regret) for (*key, of), regret in found.items() if of == parts]
    known = [(usual, alone) for usual, alone in pairs if usual is not None and alone is not None]
    won, lost = sum(usual < alone for usual, alone in known), sum(usual > alone for usual, alone in known)
    return won, len(known) - won - lost, lost


def main(rules: Sequence[str]) -> int:
    if not rules:
        records = read_records(results_path(SUITE))
        for strategy, _, _, budgets in CONTESTS:
            for quality in QUALITIES:
                for budget in budgets:
                    method = f"{strategy}-guess-{quality}"
                    counts = {parts: beaten(records, parts, method, f"{budget:g}") for parts in PARTS[1:]}
                    print(f"{method} at {budget:g}: all parts win, tie and lose {counts}")
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
