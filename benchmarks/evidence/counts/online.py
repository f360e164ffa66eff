"""What the page on online tuning counts."""

from statistics import fmean, median

from benchmarks.evidence.counts.counting import (
    Said,
    Table,
    percent,
)
from benchmarks.evidence.papers import ARMS, EPSILONS, by_method, records
from benchmarks.online.report import report as online_report
from benchmarks.online.suites import ONLINE_SUITES
from benchmarks.online.trainings import TO_REPORT
from benchmarks.records import read_records
from benchmarks.tuning import probe_rules, races

TASKS = ("digits", "stream", "letters", "few digits")
CURVES_OF_RULES = {
    "the paper's rule": "paper's rule",
    "Bernoulli, exploiting in silent rounds": "Bernoulli",
    "the same with the paper's β_t": "Bernoulli, paper's β",
    "Every, exploiting in silent rounds": "Every",
    "TV-GP-EI with a coin": "TV-GP-EI, Bernoulli",
    "TV-GP-PI with a coin": "TV-GP-PI, Bernoulli",
    "R-GP-UCB with a coin": "R-GP-UCB, Bernoulli",
}


def online() -> Said:
    def gains(method: str, start: str, *tasks: str, over: str = "keep the start") -> list[float]:
        found = {(row["problem"], row["seed"], row["method"]): row["accuracy"] for row in records("online-training")}
        problems = [f"{task}, {start} start, price 0.1" for task in tasks]
        return [worth - found[problem, seed, over] for (problem, seed, name), worth in found.items()
                if name == method and problem in problems]  # fmt: skip

    suite = ONLINE_SUITES["online-synthetic"]
    own = [row for row in records(suite.name) if row["seed"] >= suite.first_seed]
    worlds = {one["world"]: {each["against"]: each["below_by"] for each in one["at_equal_cost"]
                             if each["ours"] == "default"} for one in online_report(suite, own)["worlds"]}  # fmt: skip
    unseen = [task.name for task in TO_REPORT]
    trusted, guessed = gains("default", "plausible", *unseen), gains("default, from a guess", "poor", *unseen)
    best = gains("default, from a guess", "poor", *unseen, over="best fixed of a grid")
    restoring = "default, with save and restore"
    learnt = {
        method: sum(gain > 0.1 for gain in gains(method, "poor", "few digits")) for method in (restoring, "default")
    }
    fifth = "CE-GP-UCB, every fifth round"
    won = {start: [gain > 0 for gain in gains(restoring, start, *TASKS, over=fifth)] for start in ("plausible", "poor")}
    asked = {(arm, method): fmean(row["queries"] for row in by_method("online-arms", arm, method))
             for arm in ARMS for method in ("default", "EXP3.S")}  # fmt: skip
    share = {arm: percent(asked[arm, "default"] / asked[arm, "EXP3.S"]) for arm in ARMS}
    prices = [_validated(price) for price in ("0.01", "0.1", "1", "10")]
    return Said(
        [
            Table("± the error of the paired difference) the default's regret is lower", [
                (label, [percent(worlds[f"ε = {epsilon}"][name]) for epsilon in EPSILONS])
                for label, name in CURVES_OF_RULES.items()]),
        ],
        [
            f"{sum(gain < -0.02 for gain in guessed)} of {len(guessed)} runs ended more than .02 below",
            f"{sum(gain < -0.02 for gain in trusted)} of {len(trusted)} runs ended more than .02 below",
            f"better than the best of its eight settings in {sum(gain > 0 for gain in best)} of {len(best)}",
            f"{learnt[restoring]} of 8 did with save and restore, {learnt['default']} of 8 without.",
            f"plausible starts ({sum(won['plausible'])} of {len(won['plausible'])} runs) and worse from poor ones "
            f"({sum(won['poor'])} of {len(won['poor'])})",
            f"at most {prices[0]:.1f}, {prices[1]:.1f}, {prices[2]:.0f} and {prices[3]:.0f} % of the time of training",
            f"with {share['sine']} and {share['gaussian']} of the queries, and is level with TV-GP-UCB on piecewise, "
            f"with {share['piecewise']}:",
        ],
        [
            " ".join(row.split())
            for summary in (probe_rules.summary(read_records(probe_rules.PATH)), races.summary())
            for row in summary.splitlines()[2:]
        ],
    )  # fmt: skip


def _validated(price: str) -> float:
    """The most that the default's validations take of the time of training, in the median run of either start."""
    found: list[float] = []
    for one in ("plausible", "poor"):
        rows = [
            row
            for row in records("online-training")
            if row["problem"] == f"digits, {one} start, price {price}" and row["method"] == "default"
        ]
        found.append(100.0 * median(row["spent"] for row in rows))
    return max(found)
