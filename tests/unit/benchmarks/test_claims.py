"""Counts and means in README and docs are those of the records; `test_counts` has the counts of whole pages."""

import math
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

from benchmarks.records import read_records, results_path
from benchmarks.tuning import branch_rules
from farthing.strategies.plain import bayesian

ROOT = Path(__file__).parents[3]
README = " ".join((ROOT / "README.md").read_text().split())
BAYESIAN = (ROOT / "docs" / "systems" / "bayesian.md").read_text()
MULTIFIDELITY = (ROOT / "docs" / "systems" / "multifidelity.md").read_text()
SAID = {
    "live": "mean error {}, random search {}, BOHB {}, ASHA {} (36 studies",
    "live code": "mean loss {}, BOHB {}, ASHA {}, random search {} (8 studies",
    "costs": "off by a factor of {}, the median of seven studies",
    "three": "with three trainings' worth the regret is {}, random search with ten has {}, both of the median "
    "configuration's ({} studies",
    "ten": "With ten it is {}, BOHB {}, ASHA {};",
    "full": "`LogEI` has the lowest median regret on {} of {} problems",
}
"""The sentences of the README that have results; each is filled in from the records."""
MARKS = (5, 10, 25, 50)
CONTESTS = {
    "over orders of magnitude": "costs over orders of magnitude",
    "within ten times": "costs within a factor of ten or so",
    "good runs expensive": "good runs are expensive ones",
}
Record = Mapping[str, Any]


@cache
def cost_aware() -> dict[tuple[str, str], dict[tuple[str, int], Record]]:
    found: dict[tuple[str, str], dict[tuple[str, int], Record]] = {}
    for row in read_records(results_path("cost-aware")):
        found.setdefault((row["method"], row["contest"]), {})[row["problem"], row["seed"]] = row
    return found


def regret(row: Record, spent: float) -> float:
    """The regret after so many median runs; infinite where nothing could be recommended."""
    return next((step["regret"] for step in reversed(row["steps"]) if step["spent"] <= spent), math.inf)


def pairs(method: str, other: str, contest: str, spent: float) -> tuple[int, int, int]:
    """Wins, ties and losses."""
    ours, theirs = cost_aware()[method, contest], cost_aware()[other, contest]
    gaps = [(regret(ours[key], spent), regret(theirs[key], spent)) for key in ours.keys() & theirs.keys()]
    return sum(a < b for a, b in gaps), sum(a == b for a, b in gaps), sum(a > b for a, b in gaps)


def rows_after(heading: str) -> list[list[str]]:
    """The cells of the rows of the first table after that line."""
    lines = BAYESIAN.partition(heading)[2].splitlines()
    table = [line for line in lines[: lines.index("", 3)] if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]


def test_what_the_text_says_of_random_search_is_recorded() -> None:
    wins = [sum(pairs("ei-per-cost", "random", contest, mark)[0] for contest in CONTESTS.values()) for mark in (25, 50)]
    count = sum(len(cost_aware()["ei-per-cost", contest]) for contest in CONTESTS.values())
    assert f"in {wins[0]} of {count} pairs there and {wins[1]} of {count} at 50" in BAYESIAN
    wide = CONTESTS["over orders of magnitude"]
    none = {
        method: sum(regret(row, 5) == math.inf for row in cost_aware()[method, wide].values())
        for method in ("ei-per-cost", "random", "optuna-tpe")
    }
    assert f"in {none['ei-per-cost']} of {len(cost_aware()['random', wide])} runs" in BAYESIAN
    assert f"(random search {none['random']}, TPE {none['optuna-tpe']})" in BAYESIAN


def test_the_share_of_suggesting_is_the_one_recorded() -> None:
    shares = {
        contest: [row["suggest_cpu_seconds"] / row["cost"] for row in cost_aware()["ei-per-cost", contest].values()]
        for contest in CONTESTS.values()
    }
    every, short = (
        median([one for found in shares.values() for one in found]),
        median(shares[CONTESTS["good runs expensive"]]),
    )
    assert f"it took {every:.1%}".replace("%", " %") + " of them in the median" in BAYESIAN
    assert f"and {short:.1%}".replace("%", " %") + " on the recorded trainings" in BAYESIAN


def test_live_errors_are_those_recorded() -> None:
    """Of the default as it recommends today; the others recommend as they did."""
    rows = [row for row in read_records(results_path("real-live")) if row["code"].startswith("now")]
    by_method: dict[str, list[float]] = {}
    for row in rows:
        if row["method"] != "default" or row["code"] != "now":
            by_method.setdefault(row["method"], []).append(row["verified_error"])
    assert {len(errors) for errors in by_method.values()} == {36}
    shown = [f"{mean(by_method[method]):.3f}"[1:] for method in ("default", "random", "bohb", "asha")]
    assert SAID["live"].format(*shown) in README
    assert "mean error of {}, random search {}, BOHB {} and ASHA {}.".format(*shown) in MULTIFIDELITY


def test_live_losses_of_the_second_task_are_those_recorded() -> None:
    by_seed: dict[int, dict[str, float]] = {}
    for row in read_records(results_path("real-live")):
        if row["task"] == "code":
            by_seed.setdefault(row["seed"], {})[row["method"]] = row["verified_error"]
    pairs = [found for found in by_seed.values() if len(found) == 4]
    assert len(pairs) == 8
    shown = [f"{mean(found[method] for found in pairs):.3f}" for method in ("default", "bohb", "asha", "random")]
    assert SAID["live code"].format(*shown) in README
    assert "the default {}, BOHB {}, ASHA {}, random search {}.".format(*shown) in MULTIFIDELITY
    for method, name in (("bohb", "BOHB"), ("asha", "ASHA"), ("random", "random search")):
        gaps = [found["default"] - found[method] for found in pairs]
        error = stdev(gaps) / math.sqrt(len(gaps))
        said = f"{mean(gaps):+.3f} ± {error:.3f} ({name})".replace("0.", ".").replace("-", "−")
        assert said in MULTIFIDELITY


def test_errors_of_predicted_costs_are_those_recorded() -> None:
    rows = [row for row in read_records(results_path("predictions")) if row["kind"] == "continued"]
    by_method: dict[str, list[float]] = {}
    for row in rows:
        by_method.setdefault(row["method"], []).append(row["rms"])
    _, now = (math.exp(median(found)) for found in by_method.values())
    assert len(rows) == 2 * 7
    assert SAID["costs"].format(f"{now:.2f}") in README


@cache
def arena() -> dict[tuple[str, int], dict[tuple[str, int], float]]:
    """The regrets of each method with so many trainings, by problem and seed: of real trainings, not of sizes."""
    found: dict[tuple[str, int], dict[tuple[str, int], float]] = {}
    for row in read_records(results_path("real-curves")):
        if not row["problem"].startswith(("rbv2", "iaml")):
            key = (row["method"], row["settings"]["allowance"]["amount"])
            found.setdefault(key, {})[row["problem"], row["seed"]] = row["regret"]
    return found


def recorded_regrets(method: str, trainings: int) -> list[float]:
    """In the studies that all methods have with three trainings and with ten."""
    compared = [found for (name, _), found in arena().items() if name in ("TraceKG", "asha", "bohb", "random")]
    return [arena()[method, trainings][key] for key in set.intersection(*map(set, compared))]


def test_what_ten_full_trainings_reach_is_reached_for_the_price_of_three() -> None:
    ours, theirs = recorded_regrets("TraceKG", 3), recorded_regrets("random", 10)
    assert mean(ours) < mean(theirs)
    assert median(ours) < median(theirs)
    assert "The accuracy of ten full trainings for the price of three." in README
    shown = [f"{mean(found):.2f}"[1:] for found in (ours, theirs)]
    assert SAID["three"].format(*shown, len(ours)) in README


def test_regrets_with_ten_trainings_are_those_recorded() -> None:
    shown = [f"{mean(recorded_regrets(method, 10)):.2f}"[1:] for method in ("TraceKG", "bohb", "asha")]
    assert SAID["ten"].format(*shown) in README


def test_the_mean_regret_of_the_default_is_the_lowest_with_every_budget() -> None:
    """In the studies that all four methods have with that budget."""
    methods, budgets = ("TraceKG", "asha", "bohb", "random"), (1, 2, 3, 5, 10)
    for trainings in budgets:
        pairs = set.intersection(*(set(arena()[method, trainings]) for method in methods))
        means = {method: mean(arena()[method, trainings][pair] for pair in pairs) for method in methods}
        assert min(means, key=lambda method: means[method]) == "TraceKG", trainings
    assert "its mean is the lowest with 1, 2, 3, 5 and 10." in README


def test_the_count_of_problems_that_full_evaluations_lead_is_recorded() -> None:
    found: dict[str, dict[str, list[float]]] = {}
    for row in read_records(results_path("sequential")):
        if row["contest"] in ("functions", "tables"):
            last = next(step["regret"] for step in reversed(row["steps"]) if step["evaluations"] <= 60)
            found.setdefault(row["problem"], {}).setdefault(row["method"], []).append(last)
    leads = sum(min(by, key=lambda method: median(by[method])) == "log-ei" for by in found.values())
    assert SAID["full"].format(leads, len(found)) in README


def test_the_readme_has_no_other_result() -> None:
    """A decimal number or a count that none of these sentences has was typed and is in no record."""
    rest = re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)|Python [\d.]+|Apache-[\d.]+", "", README)
    for sentence in SAID.values():
        shape = re.sub(r"`[^`]*`", "", sentence)
        rest, count = re.subn(re.escape(shape).replace(r"\{\}", r"[^\s,;]+"), "", rest)
        assert count == 1, sentence
    assert re.findall(r"\d*\.\d+|\d+ of \d+|\d+–\d+|\d+ ?%|\d+ times", rest) == []


def test_the_readme_is_one_screen_of_words_and_its_code_fits_a_window() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.split()) <= 900
    code = [
        line for block in re.findall(r"^```\w*.*?^```$", text, re.DOTALL | re.MULTILINE) for line in block.splitlines()
    ]
    assert len(code) > 40
    assert [line for line in code if len(line) > 88] == []


@cache
def conditional() -> dict[str, dict[tuple[str, int], Record]]:
    found: dict[str, dict[tuple[str, int], Record]] = {}
    for row in read_records(results_path("conditional")):
        found.setdefault(row["method"], {})[row["problem"], row["seed"]] = row
    return found


def conditional_pairs(other: str, spent: float) -> str:
    ours, theirs = conditional()["log-ei"], conditional()[other]
    gaps = [regret(ours[key], spent) - regret(theirs[key], spent) for key in ours.keys() & theirs.keys()]
    return f"{sum(gap < 0 for gap in gaps)}–{sum(gap == 0 for gap in gaps)}–{sum(gap > 0 for gap in gaps)}"


def test_what_the_page_says_of_branches_is_recorded() -> None:
    table = rows_after("the second half of a run brings less than 1 %:")
    assert [row[0] for row in table] == ["log-ei", "optuna-tpe", "random"]
    for method, *cells in table:
        runs = list(conditional()[method].values())
        ends = [[step for step in run["steps"] if step["spent"] <= mark][-1] for mark in (30, 60) for run in runs]
        wrong = [sum(not step["right"] for step in half) for half in (ends[: len(runs)], ends[len(runs) :])]
        gains = [(regret(run, 30), regret(run, 60)) for run in runs]
        stalled = sum(first - last < 0.01 * abs(first) for first, last in gains)
        assert cells == [f"{count} of {len(runs)}" for count in (*wrong, stalled)], method
    for other in ("optuna-tpe", "random"):
        assert f"{other} {conditional_pairs(other, 30)} and {conditional_pairs(other, 60)}" in BAYESIAN


def test_the_rules_for_branches_have_the_counts_that_were_recorded() -> None:
    table = rows_after("(`benchmarks/results/tuning-conditional.jsonl.xz`):")
    said = {rule.strip("*"): cells for rule, *cells in table}
    recorded = {rule.removeprefix("stalled at "): branch_rules.row_of(rule) for rule in branch_rules.rows_by_rule()}
    assert said == recorded
    assert f"**{bayesian.STALLED}**" in [rule for rule, *_ in table], "the one that the default has"
