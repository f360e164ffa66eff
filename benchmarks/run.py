"""python -m benchmarks.run NAME: runs a suite, continues one that was interrupted, and reports."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from benchmarks.online.runner import main as run_online_suite
from benchmarks.online.runner import names_online_suite
from benchmarks.online.suites import ONLINE_SUITES
from benchmarks.plan import Plan, Run, make_plan
from benchmarks.problems.problem import Judged, span_of
from benchmarks.provenance import commit, versions
from benchmarks.records import Record, append_record, key_of, read_records, results_path
from benchmarks.report import Report, print_report
from benchmarks.suites import SUITES
from benchmarks.trajectory import changes, trajectory


def main(arguments: Sequence[str] | None = None) -> int:
    if names_online_suite(arguments):
        return run_online_suite(arguments)
    options = _parser().parse_args(arguments)
    suite = SUITES[options.name].quick() if options.quick else SUITES[options.name]
    plan = make_plan(
        suite, seeds=options.seeds or suite.seeds, problems=options.problems or (), methods=options.methods or ()
    )
    for line in plan.left_out_lines():
        sys.stderr.write(line + "\n")
    if not plan.runs:
        sys.stderr.write(f"Nothing of {suite.name} can be run: the patterns match nothing, or all of it is left out.\n")
        return 1
    path = options.output or results_path(suite.name)
    carry_out(plan, path)
    print_report(Report.of(suite, read_records(path), left_out=plan.left_out_lines()), as_json=options.json)
    return 0


def carry_out(plan: Plan, path: Path) -> None:
    """Makes every run that the file has no result of, and adds each result as soon as it is there."""
    present = {key_of(record) for record in read_records(path)}
    to_do = [run for run in plan.runs if key_of(run.identity) not in present]
    with _progress(total=len(plan.runs), done=len(plan.runs) - len(to_do)) as (bar, task):
        for run in to_do:
            bar.update(task, description=f"{run.problem.name} · {run.method.name} · seed {run.seed}")
            append_record(path, result_of(run, suite=plan.suite.name))
            bar.advance(task)


def result_of(run: Run, *, suite: str) -> Record:
    """Makes one run. Of its trajectory it keeps the places where the recommendation changed, and the end."""
    standings = list(trajectory(run.method, run.problem, allowance=run.contest.allowance, seed=run.seed))
    last = standings[-1]
    return {
        "suite": suite,
        "contest": run.contest.name,
        **run.identity,
        "judged_at": run.contest.judged_at,
        "best_value": run.problem.best_value,
        "full_cost": run.problem.full_cost,
        "span": _span(run),
        "steps": [standing.to_json() for standing in changes(standings)],
        "evaluations": last.evaluations,
        "cost": last.cost,
        "spent": last.spent,
        "suggest_cpu_seconds": last.suggest_seconds,
        "versions": versions(run.method.packages),
        **commit(),
    }


def _span(run: Run) -> dict[str, float] | None:
    """What regret is normalised by, where it is."""
    return span_of(run.problem)._asdict() if run.contest.normalised and isinstance(run.problem, Judged) else None


@contextmanager
def _progress(*, total: int, done: int) -> Iterator[tuple[Progress, TaskID]]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield bar, bar.add_task("starting", total=total, completed=done)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m benchmarks.run", description=__doc__)
    parser.add_argument("name", choices=[*SUITES, *ONLINE_SUITES], help="the suite")
    parser.add_argument("--seeds", type=int, help="how many seeds, from 0; the suite's own number by default")
    parser.add_argument("--quick", action="store_true", help="two seeds and a short budget, kept in a file of its own")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.add_argument("--problems", nargs="+", metavar="NAME", help="only these; patterns such as 'fcnet/*' work")
    parser.add_argument("--methods", nargs="+", metavar="NAME", help="only these; patterns work")
    parser.add_argument("--output", type=Path, metavar="FILE", help="JSON lines to continue; benchmarks/results/ else")
    return parser


if __name__ == "__main__":
    sys.exit(main())
