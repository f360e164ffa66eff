"""The runner of `real-curves` and `real-curves-tuning`: whole studies of real trainings, each with its own budget.

A strategy that plans for the end of its budget does something else for every budget, so that each is a study of its
own. Budgets are known from the start, in mean full trainings. On recorded rows our own strategies and Optuna's are told
the row that ran as the configuration of their trial; SMAC, NePS and DEHB get its values for their proposal. A step that
ends beyond the budget does not count.

A record is small: scores, and in `tried` the configuration of every step (a row, or a number in the order of their
first step) followed by how far it was trained, so that other rules of recommending can be scored on it. Where no table
tells them, `measured` has the regret that each step measured and `finals` that of each configuration, in thousandths.
Regret is 0 at the best recorded run (of 20 000 random configurations where there are no rows), 1 at the median, and at
most 1.5.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from statistics import fmean
from typing import Any, NamedTuple

from benchmarks.method import Step
from benchmarks.paired import print_pairs
from benchmarks.plan import Run, make_plan
from benchmarks.problems import Evaluation, Params, Problem, loss
from benchmarks.problems.problem import Direction, Judged, Span, for_one_run, span_of
from benchmarks.problems.recorded import Recorded, RowsInUse
from benchmarks.provenance import commit, versions
from benchmarks.records import Record, read_records, results_path
from benchmarks.resuming import make_missing, suite_options
from benchmarks.suites import ARENA_BUDGETS, ARENAS
from farthing.space import Space

MOST = 1.5
"""A configuration that ruins a training may be far worse than the median; one such run should not decide a mean."""
NOTHING = 1.0
"""The regret of a method that has nothing to recommend at the end of its budget: that of the median configuration."""


class Watched:
    """A problem that remembers what it was asked, and numbers the configurations in the order of their first time."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._numbers: dict[str, int] = {}
        self.asked: list[Asked] = []

    @property
    def name(self) -> str:
        return self._problem.name

    @property
    def direction(self) -> Direction:
        return self._problem.direction

    @property
    def best_value(self) -> float | None:
        return self._problem.best_value

    @property
    def full_cost(self) -> float:
        return self._problem.full_cost

    def missing(self) -> str | None:
        return self._problem.missing()

    def space(self) -> Space:
        return self._problem.space()

    def evaluate(self, params: Params, fidelity: Mapping[str, float], *, seed: int) -> Evaluation:
        evaluation = self._problem.evaluate(params, fidelity, seed=seed)
        self.asked.append(Asked(params, fidelity, evaluation))
        return evaluation

    def full_value(self, params: Params) -> float:
        return self._problem.full_value(params)

    def number_of(self, params: Params) -> int:
        return self._numbers.setdefault(repr(sorted(params.items())), len(self._numbers))


class WatchedRows(Watched):
    """A problem of rows, which have numbers already. It tells a strategy the row that a proposal stands for."""

    def __init__(self, problem: RowsInUse) -> None:
        super().__init__(problem)
        self.rows = problem

    def stand_in(self, params: Params) -> Params:
        return self.rows.nearest_free(params)

    def number_of(self, params: Params) -> int:
        return self.rows.row_of(params)


class Asked(NamedTuple):
    """One call of `evaluate`."""

    params: Params
    fidelity: Mapping[str, float]
    evaluation: Evaluation


class Tried(NamedTuple):
    """One step that the budget covered: the configuration by number, how far it was trained, the value there."""

    configuration: int
    params: Params
    reached: Mapping[str, float]
    value: float
    step: Step


def play(run: Run) -> tuple[list[Tried], Watched]:
    """The steps of one study, to the first that the budget does not cover."""
    problem, allowance = watched(run.problem), run.contest.allowance
    budget = allowance.budget(run.problem)
    assert budget.cost is not None
    tried: list[Tried] = []
    for step in run.method.run(problem, budget=budget, seed=run.seed):
        first, problem.asked = problem.asked[0], []
        if step.cost + sum(one.step.cost for one in tried) > budget.cost * (1 + 1e-9):
            break
        reached = first.fidelity if step.reached is None else step.reached
        tried.append(
            Tried(
                problem.number_of(first.params),
                first.params,
                reached,
                _value_at(first.evaluation, reached),
                step,
            )
        )
    return tried, problem


def watched(problem: Problem) -> Watched:
    begun = for_one_run(problem)
    return WatchedRows(begun) if isinstance(begun, RowsInUse) else Watched(begun)


def _value_at(evaluation: Evaluation, fidelity: Mapping[str, float]) -> float:
    """On its curve, where there is one."""
    return next((point.value for point in evaluation.trace if point.fidelity == fidelity), evaluation.value)


def result_of(run: Run, *, suite: str) -> Record:
    tried, problem = play(run)
    scale = scale_of(run.problem)

    def regret(value: float) -> float:
        return round(min(scale.normalised(loss(problem, value)), MOST), 4)

    finals = {one.configuration: regret(problem.full_value(one.params)) for one in tried}
    costs, space = [one.step.cost for one in tried], problem.space()
    mean_runs = partial(run.contest.allowance.spent, run.problem, evaluations=len(tried))
    budget = run.contest.allowance.amount
    return {
        "suite": suite,
        **run.identity,
        "regret": regret(problem.full_value(tried[-1].step.recommended)) if tried else NOTHING,
        "visited": min(finals.values(), default=NOTHING),
        "configurations": len(finals),
        "finished": len({one.configuration for one in tried if one.reached == space.full_fidelity}),
        "spent": round(mean_runs(cost=sum(costs)) / budget, 4),
        "largest_step": round(mean_runs(cost=max(costs, default=0.0)) / budget, 4),
        "suggest_cpu_seconds": round(sum(one.step.suggest_seconds for one in tried), 3),
        **_snapping(problem),
        **({"recommended": problem.number_of(tried[-1].step.recommended)} if tried else {}),
        "tried": list(chain.from_iterable((one.configuration, _amount(space, one.reached)) for one in tried)),
        **({} if isinstance(problem, WatchedRows) else _seen(tried, finals, regret=regret)),
        "versions": versions(run.method.packages),
        **commit(),
    }


def scale_of(problem: Problem) -> Span:
    """Of the recorded rows where there are some, of random configurations elsewhere."""
    if isinstance(problem, Recorded):
        return problem.span
    assert isinstance(problem, Judged), f"{problem.name} has no scale"
    return span_of(problem)


def _amount(space: Space, reached: Mapping[str, float]) -> int:
    """Points or epochs; hundredths of a fidelity that is not counted."""
    [(name, amount)] = reached.items()
    declared = space.fidelities[name]
    return round(amount if declared.integer else 100 * amount / declared.high)


def _snapping(problem: Watched) -> dict[str, float]:
    """The mean distance from a proposal to the row that ran in its place."""
    if not isinstance(problem, WatchedRows) or not problem.rows.distances:
        return {}
    return {"snapping": round(fmean(problem.rows.distances), 4)}


def _seen(tried: Sequence[Tried], finals: Mapping[int, float], *, regret: Callable[[float], float]) -> dict[str, Any]:
    """What no table can tell later, in thousandths: the value that each step measured, and the end of each curve."""
    return {
        "measured": [round(1000 * regret(one.value)) for one in tried],
        "finals": [round(1000 * final) for final in finals.values()],
    }


def main(arguments: Sequence[str]) -> int:
    parser = suite_options(ARENAS, description=__doc__)
    parser.add_argument("--processes", type=int, default=1, help="studies made at the same time; 1 by default")
    parser.add_argument("--budgets", nargs="+", type=float, metavar="B", help="only these, in mean full trainings")
    options = parser.parse_args(arguments)
    suite = ARENAS[options.name].quick() if options.quick else ARENAS[options.name]
    plan = make_plan(
        suite, seeds=options.seeds or suite.seeds, problems=options.problems or (), methods=options.methods or ()
    )
    for line in plan.left_out_lines():
        sys.stderr.write(line + "\n")
    path = options.output or results_path(suite.name)
    wanted = [run for run in plan.runs if run.contest.allowance.amount in (options.budgets or ARENA_BUDGETS)]
    by_seed = sorted(wanted, key=lambda run: run.seed)
    make_missing(path, by_seed, result_of=partial(result_of, suite=suite.name), processes=options.processes)
    print_pairs(read_records(path))
    return 0
