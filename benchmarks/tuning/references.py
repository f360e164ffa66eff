"""python -m benchmarks.tuning.references RULE: on which scale `LogEHVI` sees losses, and where its reference is.

A number takes the place of the shares in `several.LEAST_EXTENT`; `median` draws together the worse half of each loss,
as of one loss; `kept` makes the reference of what keeps the limits alone, beside `seen`, which is in use. On functions
that are not reported, 40 evaluations. A run on record is not made again. Without a rule, prints a row for each.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmarks.methods import METHODS
from benchmarks.problems.vector_functions import VECTOR_FUNCTIONS_FOR_TUNING, VectorFunction
from benchmarks.provenance import commit
from benchmarks.records import Record, read_records, results_path
from benchmarks.resuming import make_missing
from benchmarks.suites import Allowance
from benchmarks.trajectory import trajectory
from benchmarks.tuning.ruled import Ruled
from farthing.strategies.shared import several
from farthing.strategies.shared.several import Models
from farthing.strategies.shared.surrogate import Compression

SUITE = "tuning-references"
SEEDS, EVALUATIONS = 2, 40
MEDIAN, KEPT, SEEN = "median", "kept", "seen"


def only_kept(models: Models) -> Models:
    """As if only what keeps the limits had been seen."""
    return replace(models, X=models.X[models.keeps]) if models.keeps.any() else models


def set_rule(rule: str) -> None:
    if rule == MEDIAN:
        several.compression_beyond = lambda loss, worst: Compression.of(loss)
    elif rule == KEPT:
        improvement = Models.improvement
        setattr(Models, "improvement", lambda models: improvement(only_kept(models)))  # noqa: B010
    elif rule != SEEN:
        several.LEAST_EXTENT = dict.fromkeys((2, 3), float(rule))


def result_of(ruled: Ruled[VectorFunction]) -> Record:
    allowance = Allowance(EVALUATIONS, "evaluations")
    standings = list(trajectory(METHODS["log-ehvi"], ruled.problem, allowance=allowance, seed=ruled.seed))
    regrets = {f"regret_{n}": standings[n - 1].regret for n in (EVALUATIONS // 2, EVALUATIONS)}
    return {**ruled.identity, **regrets, **commit()}


def row_of(rule: str, records: Sequence[Record]) -> list[str]:
    """The mean regret of each problem after half of the evaluations, and after all."""
    cells = []
    for problem in VECTOR_FUNCTIONS_FOR_TUNING:
        here = [one for one in records if (one["method"], one["problem"]) == (rule, problem.name)]
        means = [np.mean([one[f"regret_{n}"] for one in here]) for n in (EVALUATIONS // 2, EVALUATIONS) if here]
        cells.append(" / ".join(f"{mean:.3f}" for mean in means))
    return cells


def main(rules: Sequence[str]) -> int:
    if not rules:
        records = read_records(results_path(SUITE))
        print("| | " + " | ".join(problem.name for problem in VECTOR_FUNCTIONS_FOR_TUNING) + " |")
        for rule in dict.fromkeys(str(record["method"]) for record in records):
            print(f"| {rule} | " + " | ".join(row_of(rule, records)) + " |")
        return 0
    [rule] = rules  # each changes the module for the rest of the process
    set_rule(rule)
    runs = [Ruled(SUITE, rule, problem, seed) for seed in range(SEEDS) for problem in VECTOR_FUNCTIONS_FOR_TUNING]
    make_missing(results_path(SUITE), runs, result_of=result_of)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
