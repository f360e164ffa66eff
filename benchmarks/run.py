"""python -m benchmarks.run NAME: runs a suite, continues one that was interrupted, and reports."""

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from benchmarks.online.suites import ONLINE_SUITES
from benchmarks.plan import Plan, Run, make_plan
from benchmarks.problems.conditional import Branched
from benchmarks.problems.problem import Judged, span_of
from benchmarks.provenance import commit, versions
from benchmarks.records import Record, read_records, results_path
from benchmarks.report import Report, print_report
from benchmarks.resuming import make_missing, suite_options
from benchmarks.suites import ARENAS, SUITES
from benchmarks.trajectory import Standing, changes, tallies_at, trajectory

OTHER_RUNNERS = {
    **dict.fromkeys(ONLINE_SUITES, "benchmarks.online.runner"),
    "online-training": "benchmarks.online.training_suite",
    "online-augmentation": "benchmarks.online.augmentation",
    "online-two-arms": "benchmarks.online.two_arms",
    "population-synthetic": "benchmarks.population.synthetic",
    "simulated-curves": "benchmarks.simulated.curves",
    "population-cifar": "benchmarks.population.cifar",
    "population-rl": "benchmarks.population.rl",
    "population-real": "benchmarks.population.real",
    "stopping": "benchmarks.stopping",
    "predictions": "benchmarks.predictions.suite",
    **dict.fromkeys(ARENAS, "benchmarks.arena"),
}
"""Suites that are not made of trials one after another, each with a module that has a `main` of its own."""


def main(arguments: Sequence[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given and given[0] in OTHER_RUNNERS:
        return int(import_module(OTHER_RUNNERS[given[0]]).main(given))
    options = suite_options([*SUITES, *OTHER_RUNNERS], description=__doc__).parse_args(given)
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
    make_missing(path, plan.runs, result_of=lambda run: result_of(run, suite=plan.suite.name))


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
        "steps": [standing.to_json() | _branch(run, standing) for standing in changes(standings)],
        "evaluations": last.evaluations,
        "cost": last.cost,
        "spent": last.spent,
        "suggest_cpu_seconds": last.suggest_seconds,
        **({"tallies": tallies} if (tallies := tallies_at(standings, run.contest.judged_at)) else {}),
        "versions": versions(run.method.packages),
        **commit(),
    }


def _branch(run: Run, standing: Standing) -> dict[str, bool]:
    """Whether the recommendation is in the branch with the best value known, where the space has branches."""
    problem = run.problem
    return {"right": problem.branch(standing.params) == problem.best_branch} if isinstance(problem, Branched) else {}


def _span(run: Run) -> dict[str, float] | None:
    """What regret is normalised by, where it is."""
    return span_of(run.problem)._asdict() if run.contest.normalised and isinstance(run.problem, Judged) else None


if __name__ == "__main__":
    sys.exit(main())
