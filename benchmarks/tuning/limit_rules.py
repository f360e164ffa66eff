"""python -m benchmarks.tuning.limit_rules RULE: what `ParetoHalving` takes for the limits of a run on a rung.

`expected` is the rule in use: a run counts with what is expected at full fidelity. `followed` goes only as far as
enough runs went, and `measured` takes what was measured on the rung. On learning curves that are not reported. A run on
record is not made again. Without a rule, prints a row for each.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmarks.methods import METHODS
from benchmarks.problems.vector_tables import LIMITED_CURVES_FOR_TUNING, VectorCurves
from benchmarks.provenance import commit
from benchmarks.records import Record, read_records, results_path
from benchmarks.resuming import make_missing
from benchmarks.suites import Allowance
from benchmarks.trajectory import trajectory
from benchmarks.tuning.ruled import Ruled
from farthing.strategies.multifidelity import limits

SUITE = "tuning-limit-rules"
SEEDS, FULL_RUNS = 6, (5, 10, 20)


def set_rule(rule: str) -> None:
    if rule == "followed":
        steps_of = limits._steps
        limits._steps = lambda rungs, measured: [
            replace(step, ratio=np.ones_like(step.ratio), shift=np.zeros_like(step.shift)) if step.is_guess else step
            for step in steps_of(rungs, measured)
        ]
    elif rule == "measured":
        limits._steps = lambda rungs, measured: []


def result_of(ruled: Ruled[VectorCurves]) -> Record:
    """Regrets of the best that keeps the limits; None where nothing does."""
    allowance = Allowance(FULL_RUNS[-1], "full runs")
    standings = list(trajectory(METHODS["pareto-halving"], ruled.problem, allowance=allowance, seed=ruled.seed))
    regrets = {}
    for most in FULL_RUNS:
        reached = [one.regret for one in standings if one.spent <= most and one.regret is not None]
        regrets[f"regret_{most}"] = reached[-1] if reached and np.isfinite(reached[-1]) else None
    return {**ruled.identity, **regrets, **commit()}


def row_of(rule: str, records: Sequence[Record]) -> str:
    """In how many studies something keeps the limits after each number of full runs."""
    here = [one for one in records if one["method"] == rule]
    return " / ".join(str(sum(one[f"regret_{most}"] is not None for one in here)) for most in FULL_RUNS)


def main(rules: Sequence[str]) -> int:
    if not rules:
        records = read_records(results_path(SUITE))
        for rule in dict.fromkeys(str(record["method"]) for record in records):
            print(f"| {rule} | {row_of(rule, records)} |")
        return 0
    [rule] = rules
    set_rule(rule)
    runs = [Ruled(SUITE, rule, problem, seed) for seed in range(SEEDS) for problem in LIMITED_CURVES_FOR_TUNING]
    make_missing(results_path(SUITE), runs, result_of=result_of)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
