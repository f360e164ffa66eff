"""The sections of suites in which methods spend an allowance: standing, means, regrets, and one figure each."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.comparing import by_best_touched, complete_pairs, in_mean_runs, judge, score_at
from benchmarks.evidence.figures import Line, Panel, draw
from benchmarks.markdown import section, table
from benchmarks.problems.mean_costs import mean_costs
from benchmarks.records import Record
from benchmarks.report import ContestReport, Report, current_records, means_table, regrets_table
from benchmarks.spread import Spread
from benchmarks.suites import Contest, Suite

GRID = 24
"""Amounts at which the curves of a figure are drawn, evenly spaced in the logarithm."""


def suite_section(suite: Suite, records: Sequence[Record], *, images: Path) -> str:
    """Everything that the records of a suite say. The figures are written beside."""
    report = Report.of(suite, records)
    parts = [
        _contest_section(suite, contest, current_records(contest.contest, records), images=images)
        for contest in report.contests
    ]
    return section(suite.name, *parts, *_facts(report), level=2)


def suite_of(name: str, records: Sequence[Record]) -> Suite:
    """The suite that records say they are of, for those that are run differently now."""
    contests: dict[str, list[Record]] = {}
    for record in records:
        contests.setdefault(record["contest"], []).append(record)
    return Suite(name, tuple(_contest_of(contest, own) for contest, own in contests.items()))


def _contest_of(name: str, records: Sequence[Record]) -> Contest:
    latest = records[-1]
    return Contest(
        name,
        problems=tuple(dict.fromkeys(record["problem"] for record in records)),
        methods=tuple(dict.fromkeys(record["method"] for record in records)),
        judged_at=tuple(latest["judged_at"]),
        unit=latest["settings"]["allowance"]["unit"],
    )


def _contest_section(suite: Suite, report: ContestReport, records: Sequence[Record], *, images: Path) -> str:
    contest = report.contest
    name = f"{suite.name}-{_slug(contest.name)}.svg"
    draw(panels(contest, report.methods, records), images / name)
    regrets = [
        f"After {judgement.at:g} {contest.unit}:\n\n{regrets_table(judgement)}" for judgement in report.judgements
    ]
    means = _means(report, records) if contest.normalised else []
    figure = f"![{_caption(contest)}](images/benchmarks/{name})"
    branches = [part for part in (report.branches, report.infeasible) if part]
    return section(f"{suite.name}: {contest.name}", _standing(report, records), *branches, *means, figure, *regrets)


def _caption(contest: Contest) -> str:
    scale = "normalised regret" if contest.normalised else "regret, or the loss where the best is not known,"
    return f"Median {scale} against what was spent, in {contest.unit}; bands are quartiles"


def _slug(name: str) -> str:
    """Of letters that every file system and address takes."""
    return "-".join("".join(letter if letter.isascii() and letter.isalnum() else " " for letter in name).split())


# ---------------------------------------------------------------------------------------------------------- tables


def _standing(report: ContestReport, records: Sequence[Record]) -> str:
    """For each method its seeds, its overhead, its average rank, and the first method's wins against it."""
    first = report.methods[0]
    amounts = [f"{judgement.at:g}" for judgement in report.judgements]
    heading = [
        "method",
        "seeds",
        "CPU ms a suggestion",
        f"average rank at {' / '.join(amounts)}",
        *(f"{first} wins–ties–losses at {amount}" for amount in amounts),
    ]
    rows = [heading]
    for method in report.methods:
        wins = ["" if method == first else str(judged.wins[first, method]) for judged in report.judgements]
        ranks = " / ".join(f"{judged.average_rank.get(method, math.nan):.2f}" for judged in report.judgements)
        rows.append([method, _seeds(records, method), f"{report.suggest_ms[method]:.3g}", ranks, *wins])
    pairs = " / ".join(str(judged.pairs) for judged in report.judgements[:1])
    return f"Ranks are over the {pairs} pairs (problem, seed) that all methods have.\n\n{table(rows)}"


def _seeds(records: Sequence[Record], method: str) -> str:
    """How many seeds each problem has: a range where they differ."""
    counts: dict[str, int] = {}
    for record in records:
        if record["method"] == method:
            counts[record["problem"]] = counts.get(record["problem"], 0) + 1
    return "–".join(str(count) for count in sorted({min(counts.values()), max(counts.values())}))


def _means(report: ContestReport, records: Sequence[Record]) -> list[str]:
    """Each family of problems apart, by both ends of the scale."""
    touched = by_best_touched(records)
    again = [judge(touched, report.methods, at=judged.at, normalised=True) for judged in report.judgements]
    amounts = ", ".join(f"{judged.at:g}" for judged in report.judgements)
    after = f"after {amounts} {report.contest.unit}, each family of problems apart"
    return [
        *_in_mean_runs(report, records),
        f"Mean normalised regret {after}; 0 is the best of 20 000 random configurations:\n\n"
        + means_table(report.judgements),
        f"The same {after}; 0 is the best that any method recommended:\n\n{means_table(again)}",
    ]


MEAN_RUNS = (1.0, 2.0, 5.0)
"""Amounts at which records of usual full runs are judged in mean ones too."""


def _in_mean_runs(report: ContestReport, records: Sequence[Record]) -> list[str]:
    """Where the allowance counts runs of median cost: the same in mean ones, as trainings cost on average."""
    costs = mean_costs()
    if report.contest.unit != "full runs":
        return []
    fitting = [record for record in records if _fits(record, costs, amount=report.contest.allowance.amount)]
    if not fitting:
        return []
    converted = in_mean_runs(fitting, costs)
    amounts = ", ".join(f"{amount:g}" for amount in MEAN_RUNS)
    scales = {
        "the best of 20 000 random configurations": converted,
        "the best that any method recommended": by_best_touched(converted),
    }
    parts = []
    for zero, own in scales.items():
        judged = [judge(own, report.methods, at=amount, normalised=True) for amount in MEAN_RUNS]
        parts.append(f"After {amounts} *mean* full runs; 0 is {zero}:\n\n{means_table(judged)}")
    ranks = [judge(converted, report.methods, at=amount).average_rank for amount in MEAN_RUNS]
    rows = [[f"average rank after {amounts} mean full runs", *report.methods]]
    rows.append(["all", *(" / ".join(f"{rank[method]:.2f}" for rank in ranks) for method in report.methods)])
    left_out = sorted({record["problem"] for record in records} - {record["problem"] for record in fitting})
    note = f"Without {', '.join(left_out)}, where the allowance is less than that." if left_out else ""
    return [*parts, table(rows), *([note] if note else [])]


def _fits(record: Record, costs: Mapping[str, float], *, amount: float) -> bool:
    """Whether the allowance of a record is as much as the most mean runs that are judged."""
    return MEAN_RUNS[-1] * costs.get(record["problem"], math.inf) <= amount * float(record["full_cost"])


def _facts(report: Report) -> Iterator[str]:
    if report.without_results:
        yield f"No results of: {', '.join(report.without_results)}."
    versions = ", ".join(f"{package} {' and '.join(found)}" for package, found in report.versions.items())
    yield f"Versions: {versions}. Commits: {', '.join(short(commit) for commit in report.commits)}."


def short(commit: str) -> str:
    """Seven digits of a commit, and whether the tree had changes."""
    digits, _, changes = commit.partition(" ")
    return f"{digits[:7]} {changes}".strip()


# --------------------------------------------------------------------------------------------------------- figures


def panels(contest: Contest, methods: Sequence[str], records: Sequence[Record]) -> list[Panel]:
    """A panel for each problem; for each family of them where all regrets have one scale."""
    by_title: dict[str, list[Record]] = {}
    for record in records:
        title = record["problem"].partition("/")[0] if contest.has_one_scale else record["problem"]
        by_title.setdefault(title, []).append(record)
    return [_panel(title, contest, methods, own) for title, own in by_title.items()]


def _panel(title: str, contest: Contest, methods: Sequence[str], records: Sequence[Record]) -> Panel:
    """Over the runs that all methods of the panel have, so that every curve is of the same problems and seeds."""
    present = [method for method in methods if any(record["method"] == method for record in records)]
    runs: dict[tuple[str, int], dict[str, Record]] = {}
    for record in records:
        runs.setdefault((record["problem"], record["seed"]), {})[record["method"]] = record
    scores = {pair: dict.fromkeys(found, 0.0) for pair, found in runs.items()}
    complete = complete_pairs(scores, present)
    amounts = _grid(contest)
    lines = tuple(
        Line(method, amounts, tuple(Spread.of(score_at(runs[pair][method], at) for pair in complete) for at in amounts))
        for method in present
        if complete
    )
    label = "normalised regret" if contest.normalised else "regret"
    is_log = not contest.normalised and all(_is_regret(record) for record in records)
    shown = f"{title}, n = {len(complete)}"
    return Panel(shown, contest.unit, label if is_log or contest.normalised else "loss", lines, log_y=is_log)


def _is_regret(record: Record) -> bool:
    return record["best_value"] is not None


def _grid(contest: Contest) -> tuple[float, ...]:
    """From a twentieth of the allowance to all of it."""
    end = contest.judged_at[-1]
    return tuple(end * 20.0 ** (step / (GRID - 1) - 1.0) for step in range(GRID))
