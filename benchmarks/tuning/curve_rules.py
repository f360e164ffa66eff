"""python -m benchmarks.tuning.curve_rules RULE …: rules of `TraceKG` along a trace, beside those it has.

Each rule is the default with one change, on the problems of `real-curves-tuning`. Records are small: the regret at the
end of every budget. Without a name, prints the paired differences to the default. A run that is on record is not made
again.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np

from benchmarks.arena import result_of
from benchmarks.paired import print_pairs
from benchmarks.plan import Run, make_plan
from benchmarks.records import Record, read_records, results_path
from benchmarks.resuming import make_missing
from benchmarks.suites import ARENAS
from farthing.costs import Remaining
from farthing.models.gp import GP
from farthing.strategies.multifidelity import context, handover, skill, takg
from farthing.strategies.multifidelity.skill import Skill, only_trace
from farthing.strategies.shared.strategy import Randomness
from farthing.trials import History, Suggestion

SUITE, DEFAULT = "tuning-curve-rules", "the default"
SEEDS = 6
KEPT = ("problem", "seed", "regret", "visited", "commit", "dirty")
NEAR = 1.6
"""Two runs are compared if neither was trained so many times as long as the other."""
LEAST_AGREEMENT = 0.2


def no_guard() -> None:
    takg.TraceKG._skill = lambda self, history: None  # type: ignore[method-assign]


def left_out_runs() -> None:
    """The guard asks whether the model, without a run, orders it right among the others (Kendall's τ)."""
    latest: list[context.CurveContext | None] = []
    read = context.read_context

    def remembered(*arguments: Any, **named: Any) -> context.CurveContext | None:
        latest[:] = [read(*arguments, **named)]
        return latest[0]

    def agreement(self: takg.TraceKG, history: History) -> Skill | None:
        if only_trace(history) is None or not latest or latest[0] is None:
            return None
        return Skill(agreement_without_each(latest[0].model.gp), chosen=skill.JUDGED)

    context.read_context = remembered
    skill.LEAST_SKILL = LEAST_AGREEMENT
    takg.TraceKG._skill = agreement  # type: ignore[method-assign]


def agreement_without_each(gp: GP) -> float:
    """Kendall's τ of the last losses with what the process predicts of them without the whole run, of like lengths."""
    precision = np.linalg.inv(gp.L @ gp.L.T)
    runs: dict[bytes, list[int]] = {}
    for i, row in enumerate(gp.X[:, :-1]):
        runs.setdefault(row.tobytes(), []).append(i)
    last = [max(rows, key=lambda i: float(gp.X[i, -1])) for rows in runs.values()]
    errors = [np.linalg.solve(precision[np.ix_(rows, rows)], gp.alpha[rows]) for rows in runs.values()]
    error = [own[rows.index(i)] for i, rows, own in zip(last, runs.values(), errors, strict=True)]
    reach, loss = np.log(gp.X[last, -1]), gp.y[last]
    is_pair = np.triu(np.abs(reach[:, None] - reach) < np.log(NEAR), 1) & (loss[:, None] != loss)
    predicted = loss - np.array(error)
    agree = np.sign(loss[:, None] - loss) * np.sign(predicted[:, None] - predicted)
    return float(agree[is_pair].mean()) if is_pair.any() else 0.0


def short_looks() -> None:
    handover.FIRST_LOOK = 0.02


def looks_by_budget() -> None:
    """First looks as short as lets all of them cost a sixth of the budget, by the median cost of those so far."""

    def starts(history: History, budget: Remaining, count: int, rng: Randomness) -> list[Suggestion]:
        begun = [trial for trial in history if trial.is_finished and trial.cost > 0 and trial.resume_from is None]
        look = handover.FIRST_LOOK
        if begun:
            full = median(trial.cost / history.reach(trial) for trial in begun)
            look = min(look, (history.cost + budget.cost) / (6 * skill.FIRST * full))
        return list(handover._halved(history, budget, count, rng, lowest=look))

    handover.suggest_starts = starts


def twelve_looks() -> None:
    skill.FIRST = 12


RULES: Mapping[str, Callable[[], None]] = {
    DEFAULT: lambda: None,
    "no guard": no_guard,
    "guard by runs left out": left_out_runs,
    "first looks at 2 %": short_looks,
    "first looks for a sixth of the budget": looks_by_budget,
    "twelve first looks": twelve_looks,
}


def main(names: Sequence[str]) -> int:
    if not names:
        print_pairs(read_records(results_path(SUITE)), method=DEFAULT, against=())
        return 0
    [name] = names
    RULES[name]()
    runs = make_plan(ARENAS["real-curves-tuning"], seeds=SEEDS, problems=(), methods=("TraceKG",)).runs
    along_traces = [run for run in runs if only_trace_of(run)]
    make_missing(
        results_path(SUITE),
        [Ruled(name, run) for run in sorted(along_traces, key=lambda run: run.seed)],
        result_of=small_result,
    )
    return 0


def only_trace_of(run: Run) -> bool:
    return [one.trace for one in run.problem.space().fidelities.values()] == [True]


class Ruled:
    """A run of the arena under the name of its rule."""

    def __init__(self, name: str, run: Run) -> None:
        self.run = run
        settings = {"allowance": run.contest.allowance.to_json()}
        self.identity = {**run.identity, "method": name, "settings": settings}
        self.title = f"{name}: {run.title}"


def small_result(ruled: Ruled) -> Record:
    result = result_of(ruled.run, suite=SUITE)
    return {"suite": SUITE, **ruled.identity, **{key: result[key] for key in KEPT if key in result}}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
