"""What the results of a suite of bandits say."""

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import log, sqrt
from typing import Any

import numpy as np

from benchmarks.markdown import section, table
from benchmarks.online.suites import OnlineSuite
from benchmarks.records import Record
from farthing.models.linalg import Array

CONTEXT = {
    "online-sensors": "Sensors are the same for every seed; seeds differ in the coins and draws of the strategies.",
}


def report(suite: OnlineSuite, records: Sequence[Record]) -> dict[str, Any]:
    """For each world the mean and standard error of every strategy, and ours against the curves at equal C_T."""
    worlds = [_world_report(suite, name, own) for name, own in _by(records, "problem").items()]
    return {"suite": suite.name, "measure": suite.measure, "worlds": worlds, "commits": _commits(records)}


def _world_report(suite: OnlineSuite, name: str, records: Sequence[Record]) -> dict[str, Any]:
    by_method = _by(records, "method")
    rows = {method: _row(suite, by_method[method]) for method in suite.contenders if method in by_method}
    curves = {label: [m for m in members if m in rows] for label, members in suite.curves.items()}
    against = [
        _against(suite, by_method, ours=ours, label=label, members=members)
        for ours in suite.ours
        for label, members in curves.items()
        if ours in rows and len(members) > 1
    ]
    return {"world": name, "bounds": records[0].get("bounds"), "rows": rows, "at_equal_cost": against}


def _row(suite: OnlineSuite, records: Sequence[Record]) -> dict[str, float]:
    values, queries = _column(records, suite.measure), _column(records, "queries")
    return {
        "n": len(records),
        suite.measure: float(np.mean(values)),
        "standard_error": _standard_error(values),
        "queries": float(np.mean(queries)),
        "queries_deviation": float(np.std(queries)),
        "cpu_ms_a_round": float(np.median(_column(records, "cpu_ms_a_round"))),
    }


def _against(
    suite: OnlineSuite, by_method: Mapping[str, Sequence[Record]], *, ours: str, label: str, members: Sequence[str]
) -> dict[str, Any]:
    """Our mean against the curve's, interpolated in log C_T at ours, over the seeds that all have; with its error.

    The error is of the paired difference: the curve is a weighted mean of its two neighbouring members, seed by seed.
    """
    own = by_method[ours]
    queries = float(np.mean(_column(own, "queries")))
    points = sorted((float(np.mean(_column(by_method[m], "queries"))), m) for m in members)
    (low, below), (high, above), weight = _bracket(points, queries)
    pairs = [_by_seed(by_method[name], suite.measure) for name in (ours, below, above)]
    seeds = sorted(set.intersection(*(set(part) for part in pairs)))
    mine, left, right = (np.array([part[seed] for seed in seeds]) for part in pairs)
    theirs = (1.0 - weight) * left + weight * right
    return {
        "ours": ours,
        "queries": queries,
        "against": label,
        "between": [below, above],
        "is_extrapolated": not low <= queries <= high,
        "their_value": float(np.mean(theirs)),
        "our_value": float(np.mean(mine)),
        "below_by": 1.0 - float(np.mean(mine) / np.mean(theirs)),
        "below_by_error": _standard_error(mine - theirs) / float(np.mean(theirs)),
        "n": len(seeds),
    }


def _bracket(points: list[tuple[float, str]], at: float) -> tuple[tuple[float, str], tuple[float, str], float]:
    """The two points around `at`, and the weight of the second in log C_T; beyond the ends the nearest end alone."""
    for low, high in pairwise(points):
        if low[0] <= at <= high[0]:
            return low, high, (log(at) - log(low[0])) / max(log(high[0]) - log(low[0]), 1e-12)
    nearest = points[0] if at < points[0][0] else points[-1]
    return nearest, nearest, 0.0


def _by(records: Sequence[Record], key: str) -> dict[str, list[Record]]:
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(record[key], []).append(record)
    return groups


def _by_seed(records: Sequence[Record], measure: str) -> dict[int, float]:
    return {record["seed"]: record[measure] for record in records}


def _column(records: Sequence[Record], name: str) -> Array:
    return np.array([record[name] for record in records], dtype=float)


def _standard_error(values: Array) -> float:
    return float(np.std(values, ddof=1) / sqrt(values.size)) if values.size > 1 else 0.0


def _commits(records: Sequence[Record]) -> list[str]:
    return sorted({f"{record['commit']}{' with changes' if record['dirty'] else ''}" for record in records})


def as_text(result: Mapping[str, Any], *, as_json: bool) -> str:
    return json.dumps(result, indent=1) if as_json else _markdown(result)


def _markdown(result: Mapping[str, Any]) -> str:
    parts = [_world_section(world, measure=result["measure"]) for world in result["worlds"]]
    notes = [CONTEXT[result["suite"]]] if result["suite"] in CONTEXT else []
    return section(result["suite"], *notes, *parts, f"Commits: {', '.join(result['commits'])}.", level=1)


def _world_section(world: Mapping[str, Any], *, measure: str) -> str:
    rows = [["strategy", measure, "standard error", "C_T", "± deviation", "n", "CPU ms a round"]]
    for name, row in world["rows"].items():
        numbers = [f"{row[measure]:.4g}", f"{row['standard_error']:.2g}", f"{row['queries']:.0f}"]
        rows.append([name, *numbers, f"{row['queries_deviation']:.0f}", str(row["n"]), f"{row['cpu_ms_a_round']:.2g}"])
    parts = [table(rows)]
    if world["bounds"]:
        parts.insert(0, ", ".join(f"{name}: {value:.4g}" for name, value in world["bounds"].items()))
    if world["at_equal_cost"]:
        parts.append(table([["at equal C_T", "C_T", "against", "theirs", "ours", "lower by"], *_equal_rows(world)]))
    return section(world["world"], *parts, level=2)


def _equal_rows(world: Mapping[str, Any]) -> list[list[str]]:
    return [
        [
            each["ours"],
            f"{each['queries']:.0f}",
            each["against"] + (" (nearest)" if each["is_extrapolated"] else ""),
            f"{each['their_value']:.3f}",
            f"{each['our_value']:.3f}",
            f"{each['below_by']:.0%} ± {each['below_by_error']:.0%}",
        ]
        for each in world["at_equal_cost"]
    ]
