"""python -m benchmarks.tuning.curve_rules RULE …: rules of `TraceKG` along a trace, beside those it has.

Each rule is the default with one change, on the problems of `real-curves-tuning`. Records are small: the regret at the
end of every budget. Without a name, prints the paired differences to the default. A run that is on record is not made
again.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
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
from farthing.strategies.multifidelity import context, finishing, handover, skill, takg
from farthing.strategies.multifidelity.candidates import ChosenEvaluation
from farthing.strategies.multifidelity.loss_scale import lower_bound
from farthing.strategies.multifidelity.skill import Skill, only_trace
from farthing.strategies.shared.starts import first_params
from farthing.strategies.shared.strategy import Randomness
from farthing.trials import History, Suggestion

SUITE, DEFAULT = "tuning-curve-rules", "the default"
SEEDS = 6
NOW = "the default of November"
"""Later rules are compared with a later default, which recommends what measured best."""
IN_TIME = "comparing that ends in time, too"
"""The default since: workers that would be idle compare too. Later rules are changes of it."""
LATER_SEEDS, LATER_BUDGETS = 4, (2, 3, 5)
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


def smooth_switch() -> None:
    """A model without skill decides some of the time, in proportion to what it wins beyond half of the pairs."""
    suggest = takg.TraceKG._skill

    def trust(found: Skill) -> float:
        won = (found.chosen * found.share + skill.JUDGED / 4) / (found.chosen + skill.JUDGED / 2)
        return min(1.0, max(0.0, 4.0 * (won - 0.5)))

    def drawn(self: takg.TraceKG, history: History) -> Skill | None:
        found = suggest(self, history)
        if found is None or np.random.default_rng(len(history)).random() < trust(found):
            return None
        return replace(found, share=0.0)

    takg.TraceKG._skill = drawn  # type: ignore[method-assign]


def told_by_two_reports() -> None:
    """Whether runs have learnt something is asked of those with two reports, not of all where the first look ends."""

    def learnt(curves: Sequence[skill.Curve]) -> bool:
        longer = [curve for curve in curves if len(curve) > 1]
        bound = lower_bound(np.array([loss for curve in curves for loss in curve.values()] or [np.inf]))
        improved = [
            bound is not None and skill._is_better(curve[max(curve)], curve[min(curve)], bound, by=skill.PROGRESS)
            for curve in longer
        ]
        return sum(improved) > len(improved) / 2 or by_first_look(curves)

    by_first_look, skill.something_is_learnt = skill.something_is_learnt, learnt


def compared_by_measurements() -> None:
    """The last part of a budget goes by what runs measured on a rung, and not by what is expected of them."""

    def best(self: finishing.Contest, members: list[int], rung: int, count: int) -> list[int]:
        return [members[i] for i in np.argsort(self.losses[rung, members], kind="stable")[:count]]

    finishing.Contest._best = best  # type: ignore[method-assign]


def every_third_random() -> None:
    """The model says when a configuration is begun and how long it is trained, but one in three is drawn."""
    suggestion_of = takg.suggestion_of

    def drawn(found_in: context.CurveContext, choice: ChosenEvaluation) -> Suggestion:
        found, history = suggestion_of(found_in, choice), found_in.history
        if found.resume_from is not None or history.configurations % 3:
            return found
        [first] = first_params(history, range(len(history), len(history) + 1), found_in.rng)
        return replace(found, params=first.params)

    takg.suggestion_of = drawn  # type: ignore[assignment]


LATER: Mapping[str, Callable[[], None]] = {
    NOW: lambda: None,
    IN_TIME: lambda: None,
    "a smooth switch to halving": smooth_switch,
    "learning is told by runs with two reports": told_by_two_reports,
    "compared by measurements alone": compared_by_measurements,
    "one new configuration in three is random": every_third_random,
}
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
        rows = read_records(results_path(SUITE))
        for default, rules in ((DEFAULT, RULES), (IN_TIME, LATER)):
            print_pairs([row for row in rows if row["method"] in rules], method=default, against=())
        return 0
    [name] = names
    {**RULES, **LATER}[name]()
    is_later = name in LATER
    seeds, problems = (LATER_SEEDS, ("rows/*", "forest/*", "*-rows/*")) if is_later else (SEEDS, ())
    runs = make_plan(ARENAS["real-curves-tuning"], seeds=seeds, problems=problems, methods=("TraceKG",)).runs
    along_traces = [
        run for run in runs if only_trace_of(run) and (not is_later or run.contest.allowance.amount in LATER_BUDGETS)
    ]
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
