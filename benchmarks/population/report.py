"""What runs of populations say: the spread of every method, and ours against each on the same seeds."""

import json
from collections.abc import Mapping, Sequence
from math import comb
from typing import Any

from benchmarks.markdown import section, table
from benchmarks.records import Record
from benchmarks.spread import Spread


def report(suite: str, records: Sequence[Record], *, ours: str, order: Sequence[str]) -> dict[str, Any]:
    """Regrets, small ones good; wins of ours over each other method, seed by seed, and how likely by chance alone."""
    problems = list(dict.fromkeys(record["problem"] for record in records))
    return {
        "suite": suite,
        "ours": ours,
        "problems": {problem: _problem_report(records, problem, ours=ours, order=order) for problem in problems},
        "commits": sorted({f"{r['commit']}{' with changes' if r['dirty'] else ''}" for r in records}),
        "versions": {name: v for record in records for name, v in record["versions"].items()},
    }


def _problem_report(
    records: Sequence[Record], problem: str, *, ours: str, order: Sequence[str]
) -> dict[str, dict[str, Any]]:
    by_method: dict[str, dict[int, Record]] = {}
    for record in records:
        if record["problem"] == problem:
            by_method.setdefault(record["method"], {})[record["seed"]] = record
    return {
        method: {
            "regret": Spread.of(record["regret"] for record in own.values()).to_json(),
            "against": None if method == ours or ours not in by_method else _against(by_method[ours], own),
            "cpu_seconds": Spread.of(record["suggest_cpu_seconds"] for record in own.values()).median,
        }
        for method in order
        if (own := by_method.get(method))
    }


def _against(ours: Mapping[int, Record], theirs: Mapping[int, Record]) -> dict[str, Any]:
    seeds = sorted(ours.keys() & theirs.keys())
    pairs = [(ours[seed]["regret"], theirs[seed]["regret"]) for seed in seeds]
    wins, losses = sum(a < b for a, b in pairs), sum(a > b for a, b in pairs)
    return {
        "our_median": Spread.of(a for a, _ in pairs).median if pairs else None,
        "wins": wins,
        "losses": losses,
        "n": len(pairs),
        "p": sign_test(wins, losses),
    }


def sign_test(wins: int, losses: int) -> float:
    """How likely a coin gives a difference as large, in either direction; ties say nothing."""
    n, fewer = wins + losses, min(wins, losses)
    return min(1.0, 2.0 * sum(comb(n, k) for k in range(fewer + 1)) / 2.0**n)


def as_text(result: Mapping[str, Any], *, as_json: bool) -> str:
    return json.dumps(result, indent=1) if as_json else _markdown(result)


def _markdown(result: Mapping[str, Any]) -> str:
    parts = [section(problem, table(_lines(result["ours"], rows))) for problem, rows in result["problems"].items()]
    used = ", ".join(f"{name} {v or 'absent'}" for name, v in result["versions"].items())
    return section(result["suite"], *parts, f"Versions: {used}. Commits: {', '.join(result['commits'])}.", level=1)


def _lines(ours: str, rows: Mapping[str, Mapping[str, Any]]) -> list[list[str]]:
    heading = ["method", "regret", "n", f"{ours}: wins", "losses", "p", "CPU s deciding"]
    lines = [heading]
    for method, row in rows.items():
        against = row["against"]
        compared = ["", "", ""] if against is None else [f"{against[key]:.2g}" for key in ("wins", "losses", "p")]
        spread = Spread.from_json(row["regret"])
        lines.append([method, str(spread), str(spread.n), *compared, f"{row['cpu_seconds']:.2g}"])
    return lines
