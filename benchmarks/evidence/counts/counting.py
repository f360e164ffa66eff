"""Wins, ties and losses, and what a page says of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from benchmarks.evidence.papers import NOTHING, records, regret_at, runs
from benchmarks.records import Record

Gaps: TypeAlias = Iterable[float]
Rows: TypeAlias = Sequence[tuple[str, Sequence[str]]]


@dataclass(frozen=True)
class Table:
    """The first table after these words: what each row with counts begins with, up to a number, and its counts."""

    after: str
    rows: Sequence[tuple[str, Sequence[str]]]


@dataclass(frozen=True)
class Said:
    """A page's tables, sentences and whole rows; bold marks and line breaks do not count."""

    tables: Sequence[Table] = ()
    sentences: Sequence[str] = ()
    lines: Sequence[str] = ()


def wtl(gaps: Gaps) -> str:
    """Wins, ties and losses of what should be small."""
    found = list(gaps)
    assert found, "nothing to count"
    return f"{sum(gap < 0 for gap in found)}–{sum(gap == 0 for gap in found)}–{sum(gap > 0 for gap in found)}"


def wl(gaps: Gaps) -> str:
    won, _, lost = wtl(gaps).split("–")
    return f"{won}–{lost}"


def of(gaps: Gaps) -> str:
    found = list(gaps)
    return f"{sum(gap < 0 for gap in found)} of {len(found)}"


def gaps(suite: str, contest: str, one: str, other: str, at: float) -> list[float]:
    """By the regret at that cost, over the problems and seeds of both."""
    mine, theirs = runs(suite, contest, one), runs(suite, contest, other)
    return [regret_at(mine[key], at) - regret_at(theirs[key], at) for key in mine.keys() & theirs.keys()]


def ends(
    suite: str, one: str, other: str, problem: str, measure: str = "regret", seeds: Sequence[int] = range(10**6)
) -> list[float]:
    """By the regret at the end, on one problem; more of another measure is better, unless it has a minus before it."""
    sign, measure = (1.0 if measure == "regret" or measure.startswith("-") else -1.0), measure.removeprefix("-")
    found = {
        (row["seed"], row["method"]): sign * row[measure]
        for row in records(suite)
        if row["problem"] == problem and measure in row
    }
    return [
        worth - found[seed, other]
        for (seed, method), worth in found.items()
        if method == one and seed in seeds and (seed, other) in found
    ]


def percent(share: float, digits: int = 0) -> str:
    return f"{100.0 * share:.{digits}f} %"


def after(row: Record, evaluations: int) -> float:
    return next((step["regret"] for step in reversed(row["steps"]) if step["evaluations"] <= evaluations), NOTHING)
