"""What the results of `online-training` say: each method against keeping the start, seed by seed."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.markdown import section, table
from benchmarks.online.training_bars import bars, of_default
from benchmarks.records import Record, label_of

KEPT = "keep the start"
HEADINGS = [
    "method", "accuracy", "median gain", "worst", "best", "validations", "taken back", "share of time", "z²",
    "z² cut off", "n",
]  # fmt: skip


def report(suite: str, records: Sequence[Record], *, order: Sequence[str]) -> dict[str, Any]:
    problems = list(dict.fromkeys(record["problem"] for record in records))
    told = [_problem_report(name, records, order=order) for name in problems]
    return {
        "suite": suite,
        "problems": told,
        "bars": bars(
            {each["problem"]: each["rows"] for each in told},
            {task: calibration(own) for task, own in of_default(records).items()},
        ),
        "commits": sorted({f"{each['commit']}{' with changes' if each['dirty'] else ''}" for each in records}),
    }


def _problem_report(name: str, records: Sequence[Record], *, order: Sequence[str]) -> dict[str, Any]:
    own = [record for record in records if record["problem"] == name]
    kept = {record["seed"]: record["accuracy"] for record in records if _is_kept_beside(record, name)}
    by_method = {method: [record for record in own if record["method"] == method] for method in order}
    return {"problem": name, "rows": {method: _row(each, kept) for method, each in by_method.items() if each}}


def _is_kept_beside(record: Record, problem: str) -> bool:
    """Whether it is the start kept in that problem, whatever a validation costs there."""
    return bool(record["method"] == KEPT and record["problem"].rpartition(",")[0] == problem.rpartition(",")[0])


def _row(records: Sequence[Record], kept: Mapping[int, float]) -> dict[str, float]:
    gains = [record["accuracy"] - kept[record["seed"]] for record in records if record["seed"] in kept]
    spread = {"median_gain": np.median(gains), "worst_gain": min(gains), "best_gain": max(gains)} if gains else {}
    means = {key: np.mean([record[key] for record in records]) for key in ("accuracy", "validations", "undone")}
    most = max(record["spent"] for record in records)
    rest = {"most_spent": most, "n": len(records), **calibration(records)}
    return {key: float(value) for key, value in {**means, **spread, **rest}.items()}


def calibration(records: Sequence[Record]) -> dict[str, float]:
    """The mean z² of all one-step predictions after ten observations, as it is and cut off at four deviations."""
    known = [record["calibration"] for record in records if record.get("calibration")]
    n = sum(each["n"] for each in known)
    if not n:
        return {}
    return {f"z2_{key}": sum(each["n"] * each[key] for each in known) / n for key in ("mean", "cut_off")}


def as_text(result: Mapping[str, Any], *, as_json: bool) -> str:
    if as_json:
        return json.dumps(result, indent=1)
    parts = [section(each["problem"], _table(each["rows"]), level=2) for each in result["problems"]]
    parts.append(section("What must hold", _bar_table(result["bars"]), level=2))
    note = (
        "Gains are over keeping the start with the same seed; the share of time is the most of any seed. z² is the "
        "mean square of one-step predictions in deviations, after ten observations, as it is and with those beyond "
        "four cut off."
    )
    return section(result["suite"], note, *parts, f"Commits: {', '.join(result['commits'])}.", level=1)


def _bar_table(bars: Sequence[Mapping[str, Any]]) -> str:
    cells = [[bar["claim"], bar["where"], f"{bar['figure']:.3f}", "yes" if bar["holds"] else "no"] for bar in bars]
    return table([["claim", "where", "figure", "holds"], *cells])


def _table(rows: Mapping[str, Mapping[str, float]]) -> str:
    return table([HEADINGS, *(_cells(method, row) for method, row in rows.items())])


def _cells(method: str, row: Mapping[str, float]) -> list[str]:
    gains = [f"{row[key]:+.3f}" if key in row else "" for key in ("median_gain", "worst_gain", "best_gain")]
    counts = [f"{row['validations']:.0f}", f"{row['undone']:.0f}", f"{row['most_spent']:.1%}"]
    squares = [f"{row[key]:.2f}" if key in row else "" for key in ("z2_mean", "z2_cut_off")]
    return [label_of(method), f"{row['accuracy']:.3f}", *gains, *counts, *squares, f"{row['n']:.0f}"]


FROM_A_GUESS = (
    "default",
    "default, from a guess",
    "default, with save and restore",
    "default, from a guess, with save and restore",
    "best fixed of a grid",
)


def guess_table(records: Sequence[Record], problems: Callable[[str], bool], *, price: float) -> str:
    """Gains over keeping the start, over all tasks that count: how many runs, mean, median, worst, and harmed ones."""
    kept = {(one["problem"], one["seed"]): one["accuracy"] for one in records if one["method"] == KEPT}
    rows = [["start, method", "runs", "mean gain", "median", "worst", "more than .02 below"]]
    for start in ("poor", "plausible"):
        for method in FROM_A_GUESS:
            gains = [
                one["accuracy"] - kept[one["problem"], one["seed"]]
                for one in records
                if one["method"] == method
                and problems(one["problem"])
                and one["problem"].endswith(f", {start} start, price {price:g}")
            ]
            figures = [f"{figure:+.3f}".replace("-", "−") for figure in (np.mean(gains), np.median(gains), min(gains))]
            rows.append([f"{start}, {method}", str(len(gains)), *figures, str(sum(gain < -0.02 for gain in gains))])
    return table(rows)
