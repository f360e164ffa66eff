"""How the time and the memory of one suggestion grow with the trials, n, and with the parameters, d.

Each figure is of a fresh process (`_growth_worker`), the median over seeds. A contender is not asked for more once a
suggestion took longer than `PATIENCE`, or the process longer than `LIMIT`. An exponent is the slope of log time over
log n, or log d, from the first size to the last.
"""

import json
import math
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import median
from typing import Any

from benchmarks.bars import Bar, at_most
from benchmarks.problems.data import missing_package

SIZES, QUICK_SIZES = (10, 100, 1000, 10_000), (10, 100)
DIMENSIONS, QUICK_DIMENSIONS = (2, 6, 20, 100), (2, 20)
SIZES_BETWEEN = {"PrefixEI": (3000, 6000)}
"""It searches a bounded number of prefixes: memory is level from some size on, and time grows by lists of trials."""
USUAL_SIZE, USUAL_DIMENSION = 100, 6
IN_A_ROW = {"Optuna GPSampler": 2, "BoTorch": 1}
USUAL_IN_A_ROW = 4
NEEDS = {"Optuna TPE": "optuna", "Optuna GPSampler": "optuna", "BoTorch": "botorch"}
HALVING = ("TraceKG in haste", "ASHA", "Hyperband", "BOHB")
CONTENDERS = ("LogEI", "EIPerCost", "TraceKG", *HALVING, "PrefixEI", "PB2", *NEEDS)
PATIENCE, LIMIT = 1.0, 600.0
"""CPU seconds of a suggestion, and seconds of a process."""

DEFAULT, PEER = "EIPerCost", "Optuna GPSampler"
SHARE, MOST_COMPARED = 0.5, 1000
LARGEST_SECONDS = 0.2
BOUNDED_SECONDS, BOUNDED_MEGABYTES, CURVES_RUNS = 0.3, 200.0, 1000


@dataclass(frozen=True)
class Cell:
    """One contender at one size: CPU seconds of the first suggestion and of those after it, and megabytes."""

    name: str
    n: int
    d: int
    first: float
    seconds: float
    megabytes: float

    def row(self) -> dict[str, Any]:
        times = {"CPU ms": round(1000 * self.seconds, 1), "first, CPU ms": round(1000 * self.first)}
        return {"contender": self.name, "n": self.n, "d": self.d, **times, "MB": round(self.megabytes)}


def measure(*, seeds: int, quick: bool) -> tuple[dict[str, Any], list[Bar], list[str]]:
    """Figures, bars, and what was left out and why."""
    sizes, dimensions = (QUICK_SIZES, QUICK_DIMENSIONS) if quick else (SIZES, DIMENSIONS)
    by_n: list[Cell] = []
    by_d: list[Cell] = []
    left_out: list[str] = []
    for name in CONTENDERS:
        if missing := missing_package(NEEDS[name]) if name in NEEDS else None:
            left_out.append(f"{name}: {missing}")
            continue
        for along, found in (
            ([(n, USUAL_DIMENSION) for n in _sizes_of(name, sizes)], by_n),
            ([(USUAL_SIZE, d) for d in dimensions], by_d),
        ):
            cells, why = _cells(name, along, seeds=seeds)
            found += cells
            left_out += why
    figures = {
        f"with the trials, {USUAL_DIMENSION} parameters": [cell.row() for cell in by_n],
        f"with the parameters, {USUAL_SIZE} trials": [cell.row() for cell in by_d],
        "exponents": exponents(by_n, by_d),
    }
    return figures, bars(by_n), left_out


def _sizes_of(name: str, sizes: Sequence[int]) -> list[int]:
    between = [n for n in SIZES_BETWEEN.get(name, ()) if n < max(sizes)]
    return sorted({*sizes, *between})


def _cells(name: str, along: Sequence[tuple[int, int]], *, seeds: int) -> tuple[list[Cell], list[str]]:
    """The cells of a contender from small to large, as far as it is asked, and why no further."""
    cells: list[Cell] = []
    for n, d in along:
        found = [_timed(name, n, d, seed) for seed in range(seeds)]
        timed = [one for one in found if one is not None]
        if len(timed) < len(found):
            return cells, [f"{name} at n = {n}, d = {d} and beyond: it did not end within {LIMIT:g} seconds"]
        cells.append(
            Cell(name, n, d, *(median(one[key] for one in timed) for key in ("first", "seconds", "megabytes")))
        )
        if cells[-1].seconds > PATIENCE and (n, d) != along[-1]:
            return cells, [f"{name} beyond n = {n}, d = {d}: a suggestion took {cells[-1].seconds:.1f} CPU seconds"]
    return cells, []


@cache
def _timed(name: str, n: int, d: int, seed: int) -> dict[str, float] | None:
    """None where it takes too long."""
    numbers = [str(number) for number in (n, d, IN_A_ROW.get(name, USUAL_IN_A_ROW), seed)]
    command = [sys.executable, "-m", "benchmarks.speed._growth_worker", name, *numbers]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return None
    found: dict[str, float] = json.loads(ended.stdout.splitlines()[-1])
    return found


def exponents(by_n: Iterable[Cell], by_d: Iterable[Cell]) -> list[dict[str, Any]]:
    over_n, over_d = list(by_n), list(by_d)
    names = dict.fromkeys(cell.name for cell in (*over_n, *over_d))
    return [
        {
            "contender": name,
            "time over n": _slope([(cell.n, cell.seconds) for cell in over_n if cell.name == name]),
            "time over d": _slope([(cell.d, cell.seconds) for cell in over_d if cell.name == name]),
        }
        for name in names
    ]


def _slope(points: Sequence[tuple[int, float]]) -> str:
    """With the range that it is of."""
    if len(points) < 2:
        return ""
    (first, before), (last, after) = points[0], points[-1]
    return f"{math.log(after / before) / math.log(last / first):.2f} ({first} to {last})"


def bars(cells: Iterable[Cell]) -> list[Bar]:
    at = {(cell.name, cell.n): cell for cell in cells}
    shares = [
        at_most(f"n = {n}, {DEFAULT} / {PEER}", limit=SHARE, measured=at[DEFAULT, n].seconds / cell.seconds, unit="CPU")
        for (name, n), cell in at.items()
        if name == PEER and n <= MOST_COMPARED and (DEFAULT, n) in at
    ]
    largest = [
        at_most(f"{name}, n = {SIZES[-1]}", limit=LARGEST_SECONDS, measured=cell.seconds, unit="CPU s")
        for (name, n), cell in at.items()
        if name in ("LogEI", DEFAULT) and n == SIZES[-1]
    ]
    bounded = [
        bar
        for name, n in (("TraceKG", CURVES_RUNS), *((name, sizes[-1]) for name, sizes in SIZES_BETWEEN.items()))
        if (cell := at.get((name, n))) is not None
        for bar in (
            at_most(f"{name}, {n} runs", limit=BOUNDED_SECONDS, measured=cell.seconds, unit="CPU s"),
            at_most(f"{name}, {n} runs", limit=BOUNDED_MEGABYTES, measured=cell.megabytes, unit="MB"),
        )
    ]
    return [*shares, *largest, *bounded]
