"""python -m benchmarks.tuning.branch_rules RULE …: when to look into other branches, beside the rule `LogEI` has.

Each rule is `LogEI` with one change, on the problems of `conditional-tuning`, 60 evaluations. A run on record is
not made again. Without a name, prints a row for each rule.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from benchmarks.problems.conditional import CONDITIONAL_FOR_TUNING, OnBranches
from benchmarks.provenance import commit
from benchmarks.records import Record, read_records, results_path
from benchmarks.resuming import make_missing
from benchmarks.tuning.ruled import Ruled
from farthing import LogEI, Study
from farthing.strategies.plain import bayesian
from farthing.strategies.shared.modelling import Observations
from farthing.trials import History

SUITE = "tuning-conditional"
SEEDS, EVALUATIONS = 8, 60
PROGRESS = (0.01, 0.03, 0.1, 0.3)
NEVER = "never"

looks_elsewhere = bayesian.looks_elsewhere


def never() -> None:
    bayesian.looks_elsewhere = lambda history, seen: False


def stalled(progress: float, *, every: int = 1) -> None:
    """Stalled is less progress than this, and only one in so many trials looks elsewhere."""

    def rule(history: History, seen: Observations) -> bool:
        return len(history) % every == 0 and looks_elsewhere(history, seen)

    bayesian.STALLED = progress
    bayesian.looks_elsewhere = rule


RULES: Mapping[str, Callable[[], None]] = {
    NEVER: never,
    **{f"stalled at {progress:g}": partial(stalled, progress) for progress in PROGRESS},
    **{f"stalled at {progress:g}, every second trial": partial(stalled, progress, every=2) for progress in PROGRESS},
}


def result_of(ruled: Ruled[OnBranches]) -> Record:
    problem = ruled.problem
    study = Study(problem.space(), minimize="loss", strategy=LogEI(), seed=ruled.seed)
    values = list[float]()
    for _ in range(EVALUATIONS):
        trial = study.ask()
        values.append(problem.full_value(trial.params))
        study.tell(trial, values[-1])
    ended = study.trials[int(np.argmin(values))]
    return {
        **ruled.identity,
        "regret_30": min(values[:30]) - problem.best_value,
        "regret_60": min(values) - problem.best_value,
        "right": problem.branch(ended.params) == problem.best_branch,
        **commit(),
    }


def rows_by_rule() -> dict[str, dict[tuple[str, int], Record]]:
    found: dict[str, dict[tuple[str, int], Record]] = {}
    for row in read_records(results_path(SUITE)):
        found.setdefault(row["method"], {})[row["problem"], row["seed"]] = row
    return found


def row_of(rule: str) -> list[str]:
    """Runs, wrong branches, mean regret after 30 and 60, and wins–ties–losses against no rule (ties within .001)."""
    rows = rows_by_rule()
    mine, none = rows[rule], rows[NEVER]
    gaps = [row["regret_60"] - none[key]["regret_60"] for key, row in mine.items()]
    better, worse = sum(gap < -0.001 for gap in gaps), sum(gap > 0.001 for gap in gaps)
    means = [float(np.mean([row[key] for row in mine.values()])) for key in ("regret_30", "regret_60")]
    wrong = sum(not row["right"] for row in mine.values())
    return [
        str(len(mine)),
        str(wrong),
        *(f"{mean:.3f}".lstrip("0") for mean in means),
        f"{better}–{len(gaps) - better - worse}–{worse}",
    ]


def main(names: Sequence[str]) -> int:
    if not names:
        for rule in rows_by_rule():
            print(f"| {rule} | " + " | ".join(row_of(rule)) + " |")
        return 0
    for name in names:
        RULES[name]()
        runs = [Ruled(SUITE, name, problem, seed) for seed in range(SEEDS) for problem in CONDITIONAL_FOR_TUNING]
        make_missing(results_path(SUITE), runs, result_of=result_of)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
