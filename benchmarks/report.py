"""python -m benchmarks.report NAME: what the results of a suite say, as Markdown or as one JSON object.

Without a name it writes docs/benchmarks, a page of the committed results of each suite, with their figures.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.comparing import Judgement, judge
from benchmarks.markdown import section, table
from benchmarks.records import Record, read_records, results_path
from benchmarks.suites import SUITES, Contest, Suite


@dataclass(frozen=True)
class ContestReport:
    """`suggest_ms` is the CPU time of suggesting one evaluation, the median over the runs."""

    contest: Contest
    methods: tuple[str, ...]
    judgements: tuple[Judgement, ...]
    suggest_ms: Mapping[str, float]
    branches: str | None = None
    infeasible: str | None = None

    @classmethod
    def of(cls, contest: Contest, records: Sequence[Record]) -> "ContestReport":
        present = {record["method"] for record in records}
        methods = tuple(method for method in contest.methods if method in present)
        judgements = tuple(
            judge(records, methods, at=spent, normalised=contest.normalised) for spent in contest.judged_at
        )
        return cls(
            contest,
            methods,
            judgements,
            {method: _suggest_ms(records, method) for method in methods},
            branches_table(contest, methods, records),
            infeasible_table(contest, methods, records),
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "contest": self.contest.name,
            "unit": self.contest.unit,
            "methods": list(self.methods),
            "suggest_cpu_ms": dict(self.suggest_ms),
            "judged": [judgement.to_json() for judgement in self.judgements],
        }

    def to_markdown(self) -> str:
        parts = [
            section(f"After {judgement.at:g} {self.contest.unit}", *_tables(judgement)) for judgement in self.judgements
        ]
        cost = table(
            [["method", "CPU ms a suggestion"], *([name, f"{ms:.3g}"] for name, ms in self.suggest_ms.items())]
        )
        branches = [part for part in (self.branches, self.infeasible) if part]
        return section(self.contest.name.capitalize(), *branches, *parts, cost, level=2)


@dataclass(frozen=True)
class Report:
    """`without_results` is what the suite names and the file lacks; `left_out` says why, where it was just run."""

    suite: str
    contests: tuple[ContestReport, ...]
    without_results: tuple[str, ...]
    left_out: tuple[str, ...]
    versions: Mapping[str, Sequence[str]]
    commits: tuple[str, ...]

    @classmethod
    def of(cls, suite: Suite, records: Sequence[Record], *, left_out: Sequence[str] = ()) -> "Report":
        """Results with another allowance than the suite's do not count."""
        by_contest = [(contest, current_records(contest, records)) for contest in suite.contests]
        used = [record for _, own in by_contest for record in own]
        return cls(
            suite.name,
            tuple(ContestReport.of(contest, own) for contest, own in by_contest if own),
            without_results=_without_results(suite, used),
            left_out=tuple(left_out),
            versions=_versions(used),
            commits=tuple(
                sorted({f"{record['commit']}{' with changes' if record['dirty'] else ''}" for record in used})
            ),
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "suite": self.suite,
            "contests": [contest.to_json() for contest in self.contests],
            "without_results": list(self.without_results),
            "left_out": list(self.left_out),
            "versions": {package: list(found) for package, found in self.versions.items()},
            "commits": list(self.commits),
        }

    def to_markdown(self) -> str:
        versions = ", ".join(f"{package} {' and '.join(found)}" for package, found in self.versions.items())
        absent = [f"No results of: {', '.join(self.without_results)}."] if self.without_results else []
        facts = [f"Versions: {versions}. Commit: {', '.join(self.commits)}.", *absent, *self.left_out]
        return section(self.suite, *(contest.to_markdown() for contest in self.contests), *facts, level=1)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    if options.name is None:
        return _write_pages()
    suite = SUITES[options.name].quick() if options.quick else SUITES[options.name]
    path = options.input or results_path(suite.name)
    records = read_records(path)
    if not records:
        sys.stderr.write(f"{path} has no results. Make some: python -m benchmarks.run {options.name}\n")
        return 1
    print_report(Report.of(suite, records), as_json=options.json)
    return 0


def _write_pages() -> int:
    from benchmarks.evidence.page import write_pages

    print(f"Wrote {write_pages()} and its figures.")
    return 0


def print_report(report: Report, *, as_json: bool) -> None:
    print(json.dumps(report.to_json(), indent=1) if as_json else report.to_markdown())


def current_records(contest: Contest, records: Iterable[Record]) -> list[Record]:
    """The records of what a contest compares, under its present allowance, the last one of each run.

    Contests of one suite may share runs, which are made once.
    """
    latest = {
        (record["problem"], record["method"], record["seed"]): record
        for record in records
        if record["problem"] in contest.problems
        and record["method"] in contest.methods
        and record["settings"]["allowance"] == contest.allowance.to_json()
    }
    return list(latest.values())


STALLED = 0.01
"""A second half that brings less than this part of the regret at its beginning brings nothing."""


def branches_table(contest: Contest, methods: Sequence[str], records: Sequence[Record]) -> str | None:
    """How often a method ends in another branch than the best, and how often its second half brings nothing.

    None where the space has no branches.
    """
    if not any("right" in step for record in records for step in record["steps"]):
        return None
    amounts = contest.judged_at
    rows = [["", *(f"wrong branch after {amount:g}" for amount in amounts), f"from {amounts[0]:g} on less than 1 %"]]
    for method in methods:
        own = [record for record in records if record["method"] == method]
        wrong = [sum(not _step_at(record, amount)["right"] for record in own) for amount in amounts]
        regrets = [[_step_at(record, amount)["regret"] for amount in (amounts[0], amounts[-1])] for record in own]
        stalled = sum(first - last < STALLED * abs(first) for first, last in regrets)
        rows.append([method, *(f"{count} of {len(own)}" for count in (*wrong, stalled))])
    return table(rows)


def infeasible_table(contest: Contest, methods: Sequence[str], records: Sequence[Record]) -> str | None:
    """The share of evaluations beyond a limit, all seeds together, at every amount judged at; None without limits."""
    amounts = [f"{amount:g}" for amount in contest.judged_at]
    rows = [[f"share of evaluations beyond a limit after {' / '.join(amounts)}", *methods]]
    for problem in contest.problems:
        here = [record for record in records if record["problem"] == problem and _counts_infeasible(record)]
        if here:
            own = [[record for record in here if record["method"] == method] for method in methods]
            shares = [[_infeasible(found, amount) for amount in amounts] if found else [] for found in own]
            rows.append([problem, *map(" / ".join, shares)])
    return table(rows) if len(rows) > 1 else None


def _counts_infeasible(record: Record) -> bool:
    return any("infeasible" in tallies for tallies in record.get("tallies", {}).values())


def _infeasible(records: Sequence[Record], amount: str) -> str:
    tallies = [record["tallies"][amount] for record in records if amount in record["tallies"]]
    made = sum(one["evaluations"] for one in tallies)
    return f"{sum(one['infeasible'] for one in tallies) / made:.0%}" if made else ""


def _step_at(record: Record, spent: float) -> Record:
    """What was recommended then."""
    found: Record = [step for step in record["steps"] if step["spent"] <= spent][-1]
    return found


def _tables(judgement: Judgement) -> list[str]:
    means = [means_table([judgement])] if judgement.means else []
    return [regrets_table(judgement), _standings(judgement), *means]


def means_table(judgements: Sequence[Judgement]) -> str:
    """Means of each family of problems, in a cell those of one method at every amount judged at."""
    methods = judgements[0].methods
    rows = [["mean normalised regret", *methods]]
    for family in judgements[-1].means:
        cells = (" / ".join(f"{judged.means[family][method]:.3f}" for judged in judgements) for method in methods)
        rows.append([family, *cells])
    return table(rows)


def regrets_table(judgement: Judgement) -> str:
    """Medians with quartiles, the best median of each problem in bold, and the number of seeds."""
    rows = [["regret: median [quartiles]", *judgement.methods, "n"]]
    for problem, by_method in judgement.spreads.items():
        best = min(spread.median for spread in by_method.values())
        cells = {
            method: f"**{spread}**" if spread.median == best else str(spread) for method, spread in by_method.items()
        }
        counts = sorted({spread.n for spread in by_method.values()})
        rows.append([problem, *(cells.get(method, "") for method in judgement.methods), "–".join(map(str, counts))])
    return table(rows)


def _standings(judgement: Judgement) -> str:
    """Average ranks, and how often each method won, tied and lost against each other."""
    against = [f"against {method}" for method in judgement.methods]
    rows = [[f"wins–ties–losses over {judgement.pairs} pairs", "average rank", *against]]
    for one in judgement.methods:
        rank = judgement.average_rank.get(one)
        wins = ["" if one == other else str(judgement.wins[one, other]) for other in judgement.methods]
        rows.append([one, "" if rank is None else f"{rank:.2f}", *wins])
    return table(rows)


def _suggest_ms(records: Iterable[Record], method: str) -> float:
    own = [record for record in records if record["method"] == method]
    return 1000 * float(median(record["suggest_cpu_seconds"] / record["evaluations"] for record in own))


def _without_results(suite: Suite, used: Iterable[Record]) -> tuple[str, ...]:
    present = {name for record in used for name in (record["problem"], record["method"])}
    named = [name for contest in suite.contests for name in (*contest.problems, *contest.methods)]
    return tuple(name for name in dict.fromkeys(named) if name not in present)


def _versions(records: Iterable[Record]) -> dict[str, list[str]]:
    """Every version the results come from: more than one of a package means that they are mixed."""
    versions: dict[str, set[str]] = {}
    for record in records:
        for package, version in record["versions"].items():
            versions.setdefault(package, set()).add(str(version))
    return {package: sorted(found) for package, found in versions.items()}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m benchmarks.report", description=__doc__)
    parser.add_argument("name", nargs="?", choices=SUITES, help="the suite; without it the page of all of them")
    parser.add_argument("--quick", action="store_true", help="the results of `run --quick`")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.add_argument("--input", type=Path, metavar="FILE", help="JSON lines to read; benchmarks/results/ else")
    return parser


if __name__ == "__main__":
    sys.exit(main())
