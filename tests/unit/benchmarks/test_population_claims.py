"""The sentence on when to take `Clone`, from the records of real training."""

from collections.abc import Iterator
from pathlib import Path

from scipy.stats import binomtest

from benchmarks.records import read_records, results_path

PAGE = Path(__file__).parents[3] / "docs" / "systems" / "population.md"


def of_clone_against(other: str) -> tuple[int, int]:
    """Wins and losses with eight members on a GPU, over all seeds of both suites."""
    better = [ours < theirs for ours, theirs in _pairs(other) if ours != theirs]
    return sum(better), len(better) - sum(better)


def _pairs(other: str) -> Iterator[tuple[float, float]]:
    for suite in ("population-real", "tuning-population-box"):
        rows = [row for row in read_records(results_path(suite)) if row["problem"].endswith(", B = 8")]
        found = {(row["problem"], row["seed"], row["method"]): row["regret"] for row in rows}
        for problem, seed, method in found:
            if method == "Clone" and (problem, seed, other) in found:
                yield found[problem, seed, "Clone"], found[problem, seed, other]


def test_the_page_says_how_clone_stands_against_the_others() -> None:
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    won, lost = of_clone_against("PB2")
    assert f"it is level with `PB2` ({won} wins, {lost} losses)" in text
    won, lost = of_clone_against("PBT")
    p = f"{binomtest(won, won + lost).pvalue:.2f}".lstrip("0")
    assert f"rather behind `PBT` ({won}–{lost}, p = {p})" in text
