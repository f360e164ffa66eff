"""python -m benchmarks.pipelines.near_best: after how many seconds methods of `pipeline-real` were near the best."""

import math
import sys
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.markdown import table
from benchmarks.records import read_records, results_path

SUITE = "pipeline-real"
PROBLEMS = ("nuclei", "nuclei, two modules", "fashion-mnist")
SHARE = 0.05


def within(records: list[dict[str, Any]], share: float, best: float) -> dict[str, dict[int, float]]:
    """For each method and seed the seconds of work after which 1 − loss was within that share of the best known.

    A run that never got there counts as infinite.
    """
    target = (1.0 - best) * (1.0 - share)
    found: dict[str, dict[int, float]] = {}
    for record in records:
        reached = [step["cost"] for step in record["steps"] if 1.0 - step["value"] >= target]
        found.setdefault(record["method"], {})[record["seed"]] = min(reached, default=math.inf)
    return found


def report(path: Path, problem: str) -> str:
    """The median, every seed that all methods have, and how often the first method was there before another."""
    records = [record for record in read_records(path) if record["problem"] == problem]
    if not records:
        return f"{problem}: no results yet. Make some: python -m benchmarks.run {SUITE} --problems {problem}\n"
    best = min(step["value"] for record in records for step in record["steps"])
    seconds = within(records, SHARE, best)
    seeds = sorted(set.intersection(*(set(own) for own in seconds.values())))
    first = next(iter(seconds))
    rows = [["method", "median seconds", "by seed", f"{first} was first"]]
    for method, own in seconds.items():
        wins = sum(seconds[first][seed] < own[seed] for seed in seeds)
        each = ", ".join(_shown(own[seed]) for seed in seeds)
        rows.append([method, _shown(median(own[seed] for seed in seeds)), each, f"{wins} of {len(seeds)}"])
    return f"{problem}, within {SHARE:.0%} of the best known score, {1.0 - best:.3f}:\n\n{table(rows)}\n"


def _shown(seconds: float) -> str:
    return "–" if math.isinf(seconds) else f"{seconds:.1f}"


if __name__ == "__main__":
    for name in PROBLEMS:
        sys.stdout.write(report(results_path(SUITE), name) + "\n")
