"""Learning curves on a simulated cluster: `python -m benchmarks.run simulated-curves`.

Every method tunes networks of lcbench with 1, 4, 16 and 64 asynchronous workers, for the cost of ten full trainings.
Time is virtual: training takes the surrogate's seconds, and thinking the CPU seconds that it takes here. What counts is
the true regret, after all epochs, of the configuration whose measured accuracy is the best so far, against the wall
clock and against the cost, both in full trainings.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.markdown import section, table
from benchmarks.plan import matches
from benchmarks.problems.curves import FIRST_EPOCH, LearningCurves
from benchmarks.provenance import commit, versions
from benchmarks.records import Record, read_records, results_path
from benchmarks.resuming import make_missing, suite_options
from benchmarks.spread import Spread
from farthing import ASHA, Budget, Random, RunningTrial, Study, TraceKG
from farthing.extending import Strategy
from farthing.testing import SimulatedExecutor

SUITE = "simulated-curves"
SEEDS, QUICK_SEEDS = 5, 1
INSTANCES = (167152, 167184, 168868)
"""Three of those that nothing was tuned on, chosen before anything was run on them."""
WORKERS = (1, 4, 16, 64)
TRAININGS = 10
WALL_MARKS = (0.5, 1.0, 2.0, 5.0)
COST_MARKS = (2.0, 5.0, 10.0)
PACKAGES = ("numpy", "scipy", "onnxruntime")
METHODS: Mapping[str, Callable[[], Strategy]] = {"TraceKG": TraceKG, "ASHA": ASHA, "random": Random}


@dataclass(frozen=True)
class Simulated:
    """One method on one data set with some workers and one seed."""

    problem: LearningCurves
    workers: int
    method: str
    seed: int

    @property
    def title(self) -> str:
        return f"{self.problem.name}, {self.workers} workers · {self.method} · seed {self.seed}"

    @property
    def identity(self) -> dict[str, Any]:
        return {
            "problem": f"{self.problem.name}, {self.workers} workers",
            "method": self.method,
            "seed": self.seed,
            "settings": {"trainings": TRAININGS},
        }


def main(arguments: Sequence[str] | None = None) -> int:
    options = suite_options([SUITE], description=__doc__).parse_args(arguments)
    name = f"{SUITE}-quick" if options.quick else SUITE
    path = options.output or results_path(name)
    seeds = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    if reason := LearningCurves(INSTANCES[0]).missing():
        sys.stderr.write(f"{name} cannot run: {reason}\n")
        return 1
    wanted = list(runs(seeds=seeds, problems=options.problems or (), methods=options.methods or ()))
    make_missing(path, wanted, result_of=lambda run: result_of(run, suite=name))
    print(as_text(name, read_records(path)))
    return 0


def runs(*, seeds: int, problems: Sequence[str] = (), methods: Sequence[str] = ()) -> Iterator[Simulated]:
    """For each seed all methods, one after another, so that none has a quieter machine."""
    for seed in range(seeds):
        for instance in INSTANCES:
            for workers in WORKERS:
                for method in METHODS:
                    run = Simulated(LearningCurves(instance), workers, method, seed)
                    if matches(run.identity["problem"], problems) and matches(method, methods):
                        yield run


def result_of(run: Simulated, *, suite: str) -> Record:
    executor = SimulatedExecutor(workers=run.workers, seed=run.seed)
    full = run.problem.full_cost
    study = Study(
        run.problem.space(), maximize="accuracy", strategy=METHODS[run.method](), seed=run.seed, **executor.settings
    )
    work = training(run.problem, executor)
    study.run(work, executor=executor, budget=Budget(cost=TRAININGS * full), progress=False)
    steps = list(standings(study, run.problem))
    return {
        "suite": suite,
        **run.identity,
        "workers": run.workers,
        "full_cost": full,
        "regret_at_wall": {f"{mark:g}": _at(steps, mark * full, by="wall") for mark in WALL_MARKS},
        "regret_at_cost": {f"{mark:g}": _at(steps, mark * full, by="cost") for mark in COST_MARKS},
        "wall": executor.clock.elapsed() / full,
        "cost": study.ledger.total / full,
        "trials": len(study.trials),
        "idle_share": executor.idle_share,
        "suggest_cpu_seconds": study.ledger.overhead,
        "versions": versions(PACKAGES),
        **commit(),
    }


def training(problem: LearningCurves, executor: SimulatedExecutor) -> Callable[[RunningTrial], None]:
    def work(trial: RunningTrial) -> None:
        done = int((trial.resume_dir / "epoch").read_text()) if trial.resume_dir else FIRST_EPOCH - 1
        curve = problem.evaluate(trial.params, trial.fidelity, seed=0).trace
        paid = curve[done - FIRST_EPOCH].cost if done >= FIRST_EPOCH else 0.0
        for point in curve[done - FIRST_EPOCH + 1 :]:
            executor.spend(point.cost - paid)
            paid = point.cost
            trial.report(point.value, epoch=point.fidelity["epoch"])
        (trial.checkpoint_dir / "epoch").write_text(str(int(trial.fidelity["epoch"])))

    return work


def standings(study: Study, problem: LearningCurves) -> Iterator[dict[str, float]]:
    """After every report: the virtual time, the cost so far, and the regret of the best measured configuration."""
    reports = sorted(((point.time, trial, point) for trial in study.trials for point in trial.points), key=_moment)
    cost, best, regret = 0.0, float("-inf"), float("inf")
    for time, trial, point in reports:
        cost += sum(point.cost.values())
        if point.value is not None and point.value > best:
            best, regret = point.value, problem.best_value - problem.full_value(trial.params)
        yield {"wall": time, "cost": cost, "regret": regret}


def _moment(report: tuple[float, Any, Any]) -> tuple[float, int, int]:
    time, trial, point = report
    return time, trial.number, point.sequence


def _at(steps: Sequence[Mapping[str, float]], amount: float, *, by: str) -> float | None:
    """The regret once that much has passed; None where nothing was measured by then."""
    reached = [step["regret"] for step in steps if step[by] <= amount]
    return reached[-1] if reached else None


def as_text(name: str, records: Sequence[Record]) -> str:
    """Medians over seeds; a dash where most had measured nothing yet."""
    rows = [_row(problem, method, records) for problem in _names(records, "problem") for method in METHODS]
    wall = [f"wall {mark:g}" for mark in WALL_MARKS]
    cost = [f"cost {mark:g}" for mark in COST_MARKS]
    heading = ["problem", "method", "n", *wall, *cost, "idle"]
    return section(name, table([heading, *(row for row in rows if row)]), level=1)


def _row(problem: str, method: str, records: Sequence[Record]) -> list[str]:
    found = [record for record in records if (record["problem"], record["method"]) == (problem, method)]
    if not found:
        return []
    walls = [_median(record["regret_at_wall"][f"{mark:g}"] for record in found) for mark in WALL_MARKS]
    costs = [_median(record["regret_at_cost"][f"{mark:g}"] for record in found) for mark in COST_MARKS]
    idle = Spread.of(record["idle_share"] for record in found).median
    return [problem, method, str(len(found)), *walls, *costs, f"{idle:.1%}"]


def _median(regrets: Iterator[float | None]) -> str:
    median = Spread.of(float("inf") if regret is None else regret for regret in regrets).median
    return "–" if median == float("inf") else f"{median:.2f}"


def _names(records: Sequence[Record], key: str) -> list[str]:
    return list(dict.fromkeys(str(record[key]) for record in records))


if __name__ == "__main__":
    sys.exit(main())
