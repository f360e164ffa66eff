"""python -m benchmarks.pipelines.summary: what the results of `pipeline-synthetic` say over all problems.

Geometric means of the regret and average ranks over the pairs (problem, seed) that all methods have, and the movement
regret (Eq. 7 of LaMBO) in its two parts: the regret added up over all evaluations, and the movement cost in full runs.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from benchmarks.comparing import average_ranks, complete_pairs, paired_wins, scores_at
from benchmarks.markdown import section, table
from benchmarks.records import Record, read_records, results_path
from benchmarks.report import current_records
from benchmarks.suites import SUITES, Contest

SUITE = "pipeline-synthetic"
LEAST = 1e-6
"""Regrets below this count as this: a geometric mean would be ruled by luck otherwise."""


def main() -> int:
    records = read_records(results_path(SUITE))
    if not records:
        sys.stderr.write(f"There are no results yet. Make some: python -m benchmarks.run {SUITE}\n")
        return 1
    for contest in SUITES[SUITE].contests:
        if own := current_records(contest, records):
            print(summary(contest, own))
    return 0


def summary(contest: Contest, records: Sequence[Record]) -> str:
    present = {record["method"] for record in records}
    methods = [method for method in contest.methods if method in present]
    if not complete_pairs(scores_at(records, contest.judged_at[-1]), methods):
        return section(contest.name.capitalize(), "No pair that all methods have.", level=2)
    parts = [_standing(contest, records, methods), _movement(contest, records, methods)]
    if contest.name == "centred":
        parts.append(_by_problem(contest, records, methods))
    return section(contest.name.capitalize(), *parts, level=2)


def _standing(contest: Contest, records: Sequence[Record], methods: Sequence[str]) -> str:
    rows: dict[str, list[str]] = {method: [method] for method in methods}
    heading, pairs = ["method"], 0
    for at in contest.judged_at:
        scores = scores_at(records, at)
        complete = complete_pairs(scores, methods)
        ranks, wins, pairs = average_ranks(scores, methods), paired_wins(scores, methods), len(complete)
        heading += [f"@{at:g} geometric mean", f"@{at:g} rank", f"@{at:g} wins of {methods[0]}"]
        for method in methods:
            mean = geometric_mean([scores[pair][method] for pair in complete])
            against = "" if method == methods[0] else str(wins[methods[0], method])
            rows[method] += [f"{mean:.4f}", f"{ranks[method]:.2f}", against]
    return f"Over {pairs} pairs.\n\n" + table([heading, *rows.values()])


def geometric_mean(regrets: Sequence[float]) -> float:
    """Of regrets within [LEAST, 1]: a method that has nothing yet counts as 1, the scale of the functions."""
    return math.exp(fmean(math.log(min(1.0, max(LEAST, regret))) for regret in regrets))


def _movement(contest: Contest, records: Sequence[Record], methods: Sequence[str]) -> str:
    at = f"{contest.judged_at[-1]:g}"
    rows = [[f"means at {at} full runs", "evaluations", "Σ regret", "Σ movement cost, full runs"]]
    for method in methods:
        own = [record for record in records if record["method"] == method and at in record.get("tallies", {})]
        tallies: list[Mapping[str, Any]] = [record["tallies"][at] for record in own]
        moved = [tally["movement"] / record["full_cost"] for tally, record in zip(tallies, own, strict=True)]
        evaluations, regret = (fmean(tally[name] for tally in tallies) for name in ("evaluations", "regret"))
        rows.append([method, f"{evaluations:.0f}", f"{regret:.2f}", f"{fmean(moved):.2f}"])
    return table(rows)


def _by_problem(contest: Contest, records: Sequence[Record], methods: Sequence[str]) -> str:
    """Mean regret at the end, as the paper's table has it."""
    scores = scores_at(records, contest.judged_at[-1])
    rows = [["mean regret", *contest.problems]]
    for method in methods:
        own = [
            [found[method] for (name, _), found in scores.items() if name == problem and method in found]
            for problem in contest.problems
        ]
        rows.append([method, *(f"{fmean(regrets):.3f}" if regrets else "" for regrets in own)])
    return table(rows)


if __name__ == "__main__":
    sys.exit(main())
