"""What must hold of the default in `online-training`, checked against its results."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, TypeAlias

from benchmarks.records import Record

MOST_LOST = 0.02
OVERHEAD = 0.1
CALIBRATED = (0.5, 2.0)
METHODS = ("default", "default, with save and restore")
USUAL_PRICE = "price 0.1"

Rows: TypeAlias = Mapping[str, Mapping[str, Mapping[str, float]]]
"""By problem, method and figure."""


@dataclass(frozen=True)
class Bar:
    """A claim, where it was checked, the figure that decides, and whether it holds."""

    claim: str
    where: str
    figure: float
    holds: bool


def bars(rows: Rows, calibrations: Mapping[str, Mapping[str, float]]) -> list[dict[str, Any]]:
    """`calibrations` are those of tasks, over both starts and all runs of the default."""
    found = [
        *_of_starts(
            rows, "plausible", "worst_gain", "no run more than .02 below keeping it", lambda x: x >= -MOST_LOST
        ),
        *_of_starts(rows, "poor", "median_gain", "median above keeping it", lambda x: x > 0.0),
        *_of_prices(rows),
        *(_calibrated(task, own) for task, own in calibrations.items() if own),
    ]
    return [asdict(bar) for bar in found]


def _of_starts(rows: Rows, start: str, key: str, claim: str, holds: Callable[[float], bool]) -> list[Bar]:
    """On every task, for the default with and without taking back."""
    return [
        Bar(f"from a {start} start: {claim}", f"{_task(problem)}, {method}", own[method][key], holds(own[method][key]))
        for problem, own in rows.items()
        if f"{start} start, {USUAL_PRICE}" in problem
        for method in METHODS
        if key in own.get(method, {})
    ]


def _of_prices(rows: Rows) -> list[Bar]:
    """Where one start was played at several prices of a validation."""
    found = []
    for start in dict.fromkeys(problem.rpartition(", price ")[0] for problem in rows):
        priced = sorted((float(problem.rpartition(" ")[2]), own["default"]) for problem, own in rows.items()
                        if problem.startswith(f"{start}, price ") and "default" in own)  # fmt: skip
        if len(priced) < 2:
            continue
        prices = ", ".join(f"{price:g}" for price, _ in priced)
        most = max(row["most_spent"] for _, row in priced)
        rise = max(after["validations"] - before["validations"] for (_, before), (_, after) in pairwise(priced))
        where = f"{start}, prices {prices}"
        found += [
            Bar("share of time within the overhead of 0.1", where, most, most <= OVERHEAD + 1e-9),
            Bar("validations fall with their price; the largest rise", where, rise, rise <= 0.0),
        ]
    return found


def _calibrated(task: str, own: Mapping[str, float]) -> Bar:
    least, most = CALIBRATED
    return Bar("mean z² of predictions from 0.5 to 2", task, own["z2_mean"], least <= own["z2_mean"] <= most)


def _task(problem: str) -> str:
    """Its name may have a comma."""
    return problem.partition(" start, ")[0].rpartition(", ")[0]


def of_default(records: Sequence[Record]) -> dict[str, list[Record]]:
    """By task, the runs of the default at the usual price."""
    found: dict[str, list[Record]] = {}
    for record in records:
        if record["method"] in METHODS and record["problem"].endswith(USUAL_PRICE):
            found.setdefault(_task(record["problem"]), []).append(record)
    return found
