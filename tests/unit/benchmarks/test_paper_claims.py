"""Counts in `docs/papers.md` are those of the committed records."""

from collections.abc import Mapping
from pathlib import Path
from statistics import fmean, median
from typing import Any

from benchmarks.records import read_records, results_path

PAGE = (Path(__file__).parents[3] / "docs" / "papers.md").read_text()
AT = 20
"""Full evaluations, at which the centred functions are judged."""


def regret(row: Mapping[str, Any]) -> float:
    return float(next(step["regret"] for step in reversed(row["steps"]) if step["spent"] <= AT + 1e-9))


def centred(method: str) -> dict[tuple[str, int], float]:
    """The regrets of a method; of what was run again, the later one."""
    rows = [row for row in read_records(results_path("pipeline-synthetic")) if row["contest"] == "centred"]
    return {(row["problem"], row["seed"]): regret(row) for row in rows if row["method"] == method}


def wins(one: Mapping[Any, float], other: Mapping[Any, float]) -> tuple[int, int]:
    """Wins and pairs, but for Ackley-8 [6,2], which has a row of its own."""
    pairs = [key for key in one.keys() & other.keys() if "[6,2]" not in key[0]]
    return sum(one[key] < other[key] for key in pairs), len(pairs)


def test_lambo_as_printed_and_ours_have_the_pairs_that_are_recorded() -> None:
    ours, printed = centred("lambo"), centred("lambo-paper")
    blind, cooled = centred("staged-ei"), centred("staged-ei-cooled")
    assert "`LaMBO.paper()` is ahead of cost-blind EI in {} of {} pairs".format(*wins(printed, blind)) in PAGE
    won, pairs = wins(ours, blind)
    assert f"Our `LaMBO()` is in {won} of {pairs}" in PAGE
    won, pairs = wins(ours, cooled)
    assert f"stages kept, {won}–{pairs - won}" in PAGE


def test_mean_regrets_of_ackley_in_parts_are_those_recorded() -> None:
    ours, printed, blind = centred("lambo"), centred("lambo-paper"), centred("staged-ei")
    shown = [
        " / ".join(
            f"{fmean(value for key, value in of.items() if parts in key[0]):.3f}"[1:]
            for parts in ("[2,6]", "[4,4]", "[6,2]")
        )
        for of in (ours, printed, blind)
    ]
    assert "{}, `LaMBO.paper()` {}, EI {}".format(*shown) in PAGE


def test_accuracies_of_populations_on_cifar_are_those_recorded() -> None:
    by_method: dict[str, list[float]] = {}
    for row in read_records(results_path("population-cifar")):
        by_method.setdefault(row["method"], []).append(100 * row["test_accuracy"])
    shown = {method: f"{median(found):.1f}" for method, found in by_method.items()}
    assert (
        f"{shown['random']}, {shown['asha']}, {shown['pbt']}, and {shown['pb2-paper']} for `PB2.paper()`, "
        f"{shown['pb2']} for `PB2()`" in PAGE
    )


def test_rewards_of_populations_on_the_lander_are_those_recorded() -> None:
    rows = read_records(results_path("population-rl"))

    def middle(task: str, method: str, measure: str = "reward") -> str:
        return f"{median(row[measure] for row in rows if (row['problem'], row['method']) == (task, method)):.0f}"

    assert ", ".join(middle("lander", method) for method in ("random", "pbt", "pb2")) + ". In fresh play" in PAGE
    judged = ", ".join(middle("lander", method, "judged") for method in ("random", "pbt", "pb2"))
    assert f"the lead is gone: {judged} |" in PAGE
    wide = {method: middle("lander-misspecified", method) for method in ("pbt", "pb2", "pb2.paper")}
    assert f"PBT {wide['pbt']}, `PB2()` {wide['pb2']}." in PAGE
    assert f"`PB2.paper()` {wide['pb2.paper']}, " in PAGE
