"""What the page on multi-fidelity search counts."""

import json
from collections.abc import Sequence
from statistics import median

from scipy.stats import binomtest

from benchmarks.evidence.counts.counting import (
    Said,
    Table,
    after,
    ends,
    gaps,
    percent,
    wl,
    wtl,
)
from benchmarks.evidence.papers import records, regret_at, runs
from benchmarks.first_hour import SHARED
from benchmarks.records import results_path

CURVES = {
    "BOHB": "bohb",
    "ASHA": "asha",
    "Hyperband": "hyperband",
    "Optuna 5.0, TPE and Hyperband pruner": "optuna-tpe-hyperband",
    "SMAC 2.4.1, multi-fidelity": "smac-multi-fidelity",
    "NePS 0.17, its own choice (Hyperband)": "neps",
    "NePS 0.17, ASHA": "neps-asha",
    "random, full trainings": "random",
}
GRADIENTS = ("mf-gradients", "with and without gradients")


def curves() -> Said:
    def one_at_a_time(at: float) -> str:
        return wl(gaps("mf-synthetic", "one at a time", "TraceKG", "boca", at))

    def mean(contest: str, other: str, *at: float) -> list[str]:
        return [wtl(gaps("mf-curves-mean", contest, "TraceKG", other, one)) for one in at]

    def demo(other: str, measure: str) -> str:
        return wtl(ends("demo-digits", "default", other, "digits", f"-{measure}"))

    eight = [wl(gaps("mf-synthetic", "batches of eight", "TraceKG-8", "log-ei-8", at)) for at in (8, 10)]
    long = "learning curves and training sizes"
    lcbench, rows, sizes = "learning curves", "recorded rows", "training sizes"
    with_asha = mean(lcbench, "asha", 1, 2, 5, 10)
    bohb, hyperband = mean(lcbench, "bohb", 5, 10), mean(lcbench, "hyperband", 5, 10)
    by_rows, by_sizes = mean(rows, "asha", 2, 5, 10), mean(sizes, "bohb", 1, 2, 5, 10)
    better, _, worse = demo("BOHB", "validation_error").split("–")
    shares = [row["suggesting_share"] for row in records("demo-digits") if row["method"] == "default"]
    without = [sum(gap > 0 for gap in gaps(*GRADIENTS, "TraceKG-gradients", "TraceKG", at)) for at in (0.5, 1, 2)]
    paper = [sum(gap < 0 for gap in gaps(*GRADIENTS, "TraceKG-paper-gradients", "TraceKG-paper", at))
             for at in (0.5, 1, 2)]  # fmt: skip
    as_many = {count: _at_evaluations(count) for count in (8, 10, 12)}
    free = {at: wtl(_as_if_free(at)).split("–") for at in (0.5, 0.8)}
    speed = json.loads(results_path("speed-takg").with_suffix(".json").read_text(encoding="utf-8"))
    failed = [row["botorch failed on"] for row in speed["figures"]["one suggestion"]]
    return Said(
        lines=[*_recommended(), *_calibrated()],
        tables=[
            Table("TraceKG wins–ties–losses at 5 |", [
                (label, [wtl(gaps("mf-curves", long, "TraceKG", method, at)) for at in (5, 10)])
                for label, method in CURVES.items()]),
        ],
        sentences=[
            f"Against BOCA TraceKG has {one_at_a_time(2)}, {one_at_a_time(4)}, {one_at_a_time(8)} and "
            f"{one_at_a_time(10)} of 40 pairs",
            f"{eight[0]} and {eight[1]} pairs):",
            f"TraceKG wins–ties–loses {with_asha[0]}, {with_asha[1]}, {with_asha[2]} and {with_asha[3]} of",
            f"Against BOHB {bohb[0]} and {bohb[1]} at 5 and 10",
            f"against Hyperband {hyperband[0]} and {hyperband[1]} (",
            f"({by_rows[0]}, {by_rows[1]}, {by_rows[2]}). At 5 BOHB",
            f"against BOHB {by_sizes[0]}, {by_sizes[1]}, {by_sizes[2]} and {by_sizes[3]}.",
            f"The default is better than BOHB in {better} pairs and worse in {worse} (on the test "
            f"{demo('BOHB', 'test_error')}), than Hyperband {demo('Hyperband', 'validation_error')} "
            f"({demo('Hyperband', 'test_error')}).",
            f"It suggests for {percent(median(shares))} of the trials' seconds in the median and "
            f"{percent(max(shares))} at most.",
            *_first_hour(),
            f"on {sum(failed)} of {2 * len(failed)} histories it failed",
            f"without them is better in {without[0]}, {without[1]} and {without[2]} of 10.",
            f"better with them in {paper[0]}, {paper[1]} and {paper[2]} of 3.",
            f"(better in {_won(as_many[8])}, {_won(as_many[10])} and {_won(as_many[12])} pairs, worse in "
            f"{', '.join(_lost(as_many[count]) for count in (8, 10))} and {_lost(as_many[12])})",
            f"{free[0.5][0]} of {int(free[0.5][0]) + int(free[0.5][2])} better) and behind at 0.8 (0.39 beside 0.17, "
            f"{free[0.8][0]} of {int(free[0.8][0]) + int(free[0.8][2])}):",
        ],
    )  # fmt: skip


def _first_hour() -> list[str]:
    own = records("first-hour")
    forced = ends("first-hour", "default", "model forced", "fashion-mnist", "-verified_error")
    shares = [median(row["suggesting_share"] for row in own if (row["problem"], row["method"]) == (problem, "default"))
              for problem in ("digits", "script", "fashion-mnist")]  # fmt: skip
    shared = [row for row in own if row["method"] == SHARED]
    return [
        f"in {sum(gap > 0 for gap in forced)} of {len(forced)} pairs and behind in {sum(gap < 0 for gap in forced)} "
        f"(sign test p = {binomtest(sum(gap > 0 for gap in forced), sum(gap != 0 for gap in forced)).pvalue:.2f}",
        f"spends {percent(shares[0], 1)}, {percent(shares[1], 1)} and {percent(shares[2], 1)} on suggesting",
        f"spend {percent(median(row['suggesting_share'] for row in shared), 1)} in the median of {len(shared)} seeds",
    ]


def _at_evaluations(count: int) -> list[float]:
    """With gradients less without, of the studies that came so far."""
    mine, theirs = runs(*GRADIENTS, "TraceKG-gradients"), runs(*GRADIENTS, "TraceKG")
    both = [key for key in mine.keys() & theirs.keys() if min(mine[key]["evaluations"], theirs[key]["evaluations"])
            >= count]  # fmt: skip
    return [after(mine[key], count) - after(theirs[key], count) for key in both]


def _as_if_free(at: float) -> list[float]:
    mine, theirs = runs(*GRADIENTS, "TraceKG-gradients"), runs(*GRADIENTS, "TraceKG")
    return [regret_at(mine[key], 2.5 * at) - regret_at(theirs[key], at) for key in mine.keys() & theirs.keys()]


def _won(gaps: Sequence[float]) -> str:
    return f"{sum(gap < 0 for gap in gaps)} of {len(gaps)}"


def _lost(gaps: Sequence[float]) -> str:
    return str(sum(gap > 0 for gap in gaps))


RULES = {
    "lowest measured": "lowest measured: the rule now",
    "lowest measured of those that came furthest": "lowest measured of those that came furthest",
    "best finished, else lowest measured": "best finished, else lowest measured",
    "predicted": "predicted",
    "predicted, not where another measured less with less training":
        "predicted, not where another measured less with less training",
    "halfway": "halfway, the model fitted again",
    "halfway, not where another measured less with less training":
        "the same, not where another measured less with less training",
}  # fmt: skip


def _recommended() -> list[str]:
    """Rows of what rules would have recommended: the changes at each budget and the numbers of studies."""
    lines = []
    for rule, label in RULES.items():
        cells = [label]
        for name in ("tuning-recommending", "real-curves"):
            own = [row for row in records("tuning-recommended") if row.get("rule") == rule and row["records"] == name]
            by_budget = sorted(own, key=lambda row: float(row["budget"]))
            cells.append(", ".join(f"{signed(row['difference'])} ± {short(row['error'])}" for row in by_budget))
            cells.append(", ".join(str(row["n"]) for row in by_budget))
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _calibrated() -> list[str]:
    """Rows of how well the ends of runs are foreseen."""
    lines = []
    for row in records("tuning-recommended"):
        if row["records"] == "real-curves" and "trained to" in row:
            cells = [
                row["trained to"].replace("0% to", "0 to").replace("%", " %"),
                row["runs"],
                signed(float(row["bias"]), 2),
                f"{float(row['rms']):.1f}",
                row["within 80 %"].replace("%", " %"),
                short(float(row["order, predicted"]), 2),
                short(float(row["order, measured"]), 2),
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def short(number: float, digits: int = 3) -> str:
    return f"{number:.{digits}f}".removeprefix("0")


def signed(number: float, digits: int = 3) -> str:
    """Without a sign where it rounds to zero."""
    found = f"{number:+.{digits}f}".replace("0.", ".", 1).replace("-", "−")
    return found if float(f"{number:.{digits}f}") else found[1:]
