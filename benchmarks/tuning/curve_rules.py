"""python -m benchmarks.tuning.curve_rules RULE: rules of `TraceKG`, beside those it has.

Each rule is the default with one change, on the problems of `real-curves-tuning`. Records are small: the regret at the
end of every budget. Without a name, prints the paired differences to the default. A run that is on record is not made
again.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from benchmarks.arena import result_of
from benchmarks.paired import print_pairs
from benchmarks.plan import Run, make_plan
from benchmarks.records import Record, read_records, results_path
from benchmarks.resuming import make_missing
from benchmarks.suites import ARENA_BUDGETS, ARENAS
from farthing.costs import Remaining
from farthing.models.gp import GP
from farthing.models.linalg import Array, BoolArray
from farthing.strategies.multifidelity import context, curve_model, finishing, handover, screening, skill, takg
from farthing.strategies.multifidelity.candidates import NEW, Candidates, ChosenEvaluation
from farthing.strategies.multifidelity.loss_scale import lower_bound
from farthing.strategies.multifidelity.runs import Run as CurveRun
from farthing.strategies.multifidelity.runs import runs_of
from farthing.strategies.multifidelity.skill import ModelSkill, only_trace
from farthing.strategies.shared.searching import search_new
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

    def agreement(self: takg.TraceKG, history: History) -> ModelSkill | None:
        if only_trace(history) is None or not latest or latest[0] is None:
            return None
        return ModelSkill(agreement_without_each(latest[0].model.gp), chosen=skill.JUDGED)

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

    def trust(found: ModelSkill) -> float:
        won = (found.chosen * found.share + skill.JUDGED / 4) / (found.chosen + skill.JUDGED / 2)
        return min(1.0, max(0.0, 4.0 * (won - 0.5)))

    def drawn(self: takg.TraceKG, history: History) -> ModelSkill | None:
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


def corners_again() -> None:
    """A new configuration may be one that was begun: then only paused runs are left to choose from."""

    def once(acquisition: Any, domain: Any, offered: Array, *, visited: Array, **rest: Any) -> Array:
        return search_new(acquisition, domain, offered, visited=visited[:0], **rest)

    screening.search_new = once  # type: ignore[attr-defined]


def only_new_for_nothing() -> None:
    """Where no choice tells anything, a configuration is begun, and no paused run goes on."""
    at, duel, is_new = screening.Lookahead.at, screening.Lookahead.log_duel, list[BoolArray]()

    def remembered(found_in: context.CurveContext, candidates: Candidates) -> screening.Lookahead:
        is_new[:] = [candidates.source == NEW]
        return at(found_in, candidates)

    def of_new(self: screening.Lookahead) -> Array:
        return np.where(is_new[0] | (not is_new[0].any()), duel(self), -np.inf)

    screening.Lookahead.at = staticmethod(remembered)  # type: ignore[method-assign,assignment]
    screening.Lookahead.log_duel = of_new  # type: ignore[method-assign]


def looks_for(share: float) -> None:
    handover.FOR_LOOKS = share


def with_leaps() -> None:
    screening.without_leaps = lambda context, candidates: candidates


def always_compared() -> None:
    finishing.LEAST_DOUBT = 0.0


def one_form(form: str) -> None:
    context.measured_form = lambda *arguments: form  # type: ignore[assignment]


def decays_alone() -> None:
    kernel = curve_model.one_fidelity

    def alone(column: int, *, is_trace: bool, fidelity_kernel: str) -> Any:
        return kernel(column, is_trace=is_trace, fidelity_kernel="decays")

    curve_model.one_fidelity = alone


def more_again() -> None:
    screening.AGAIN = context.MOST_COMPARED


def one_start_in_full() -> None:
    """Of the starts without a trace one has all of the data: the one in the middle, once a price is known."""
    made = takg.start_share

    def full_in_the_middle(history: History, budget: Remaining) -> float:
        share = made(history, budget)
        return 1.0 if len(takg._begun(history)) == takg.STARTS // 2 else share

    takg.start_share = full_in_the_middle


def more_of_each_by_strides() -> None:
    """What is begun again has at most three times as much of a fidelity that is no trace, or its next level."""
    offered_again = screening.offered_again

    def next_ones(found_in: context.CurveContext) -> list[Candidates]:
        others = ~found_in.fidelities.is_trace
        return [one.picked(_within_stride(found_in, one, others)) for one in offered_again(found_in) if len(one)]

    screening.offered_again = next_ones  # type: ignore[assignment]


def _within_stride(found_in: context.CurveContext, again: Candidates, others: BoolArray) -> BoolArray:
    most = found_in.bought.most(again.X[0])[others]
    stride = np.maximum(screening.STRIDE * most, again.S[:, others].min(axis=0))
    return np.asarray(np.all(again.S[:, others] <= stride + 1e-9, axis=1))


def no_leaps_of_sizes() -> None:
    """And new configurations have a fifth of the fidelity at most, as along a trace."""
    more_of_each_by_strides()
    without_leaps = screening.without_leaps

    def looks(found_in: context.CurveContext, candidates: Candidates) -> Candidates:
        if found_in.only_trace is not None:
            return without_leaps(found_in, candidates)
        is_known = found_in.bought.knows(candidates.X) | (candidates.source != NEW)
        share = np.prod(candidates.S, axis=1)
        look = max(screening.LONGEST_LOOK, float(np.min(share[~is_known], initial=1.0)))
        kept = is_known | (share <= look + 1e-9)
        return candidates.picked(kept) if kept.any() else candidates

    screening.without_leaps = looks  # type: ignore[assignment]


def short_starts_of_sizes() -> None:
    """Without a trace, eight starts with a twentieth, no leaps, and no floor."""
    no_leaps_of_sizes()
    takg.STARTS, takg.START_SHARE = skill.FIRST, handover.FIRST_LOOK
    context.CurveContext.floor = property(lambda self: handover.FIRST_LOOK)  # type: ignore[assignment,method-assign]


def half_of_what_is_left() -> None:
    """Without a trace, one training is predicted to cost half of what is left at most."""
    chosen = screening.choose_screened

    def bounded(found_in: context.CurveContext, *arguments: Any, limit: float, **rest: Any) -> Any:
        return chosen(found_in, *arguments, limit=limit if found_in.only_trace else limit / 2, **rest)

    screening.choose_screened = bounded  # type: ignore[assignment]


def _price_of_full(runs: Sequence[CurveRun]) -> float:
    return median(run.cost / float(run.reached[0]) for run in runs if run.last is not None)


def reserve_beyond(trainings: float) -> None:
    """A third is kept for comparing of what a budget has beyond so many trainings."""
    ends = finishing.is_ending

    def later(found_in: context.CurveContext, budget: Remaining, *, trusts_model: bool) -> bool:
        whole = found_in.history.cost + budget.cost
        reserve = handover.RESERVE * max(0.0, 1.0 - trainings * _price_of_full(found_in.runs) / whole)
        is_early = budget.trials >= 1 and found_in.only_trace is not None and budget.cost > reserve * whole
        return not is_early and ends(found_in, budget, trusts_model=trusts_model)

    finishing.is_ending = later  # type: ignore[assignment]


def two_or_none() -> None:
    """A single run that goes on compares nothing: then configurations are begun as before."""
    plan_of = finishing.Contest.largest_plan

    def compared(self: finishing.Contest, means: finishing.Means) -> list[finishing.Promotion] | None:
        plan = plan_of(self, means)
        return plan if plan is None or len({one.run for one in plan}) > 1 else None

    finishing.Contest.largest_plan = compared  # type: ignore[method-assign]


def halving_below(trainings: float) -> None:
    """With a budget of less than so many trainings, halving decides to its end."""
    modelled = takg.TraceKG._modelled

    def halved(
        self: takg.TraceKG, history: History, budget: Remaining, count: int, rng: Randomness, starts: list[Suggestion]
    ) -> Sequence[Suggestion]:
        runs = [run for run in runs_of(history) if run.last is not None and run.cost > 0.0]
        is_short = runs and history.cost + budget.cost < trainings * _price_of_full(runs)
        if only_trace(history) is None or not is_short:
            return modelled(self, history, budget, count, rng, starts)
        known = ModelSkill(0.0, skill.JUDGED)
        return handover.suggest_by_halving(self, history, budget, count, rng, skill=known)

    takg.TraceKG._modelled = halved  # type: ignore[method-assign]


def reserved(share: float) -> None:
    handover.RESERVE = share


def at_once(*changes: Callable[[], None]) -> None:
    for change in changes:
        change()


class Again(NamedTuple):
    """A rule of today's default that is changed, and where that can make a difference."""

    change: Callable[[], None]
    problems: Sequence[str]
    budgets: Sequence[float]


TRACES, CURVES, SIZES = ("rows/*", "forest/*", "*-rows/*", "lcbench/*"), ("lcbench/*",), ("rbv2_*", "iaml_*")
TODAY = "the default, which looks for a fifth of the budget"
"""And leaves out corners that were begun. The default since keeps nothing of two trainings for comparing and takes no
leaps of sizes either: these two rules are in it, so that rows of the others are made at the commit that they name."""
AGAIN: Mapping[str, Again] = {
    TODAY: Again(lambda: None, (*TRACES, *SIZES), ARENA_BUDGETS),
    "first looks at 5 %, whatever the budget": Again(partial(looks_for, inf), TRACES, (1, 2)),
    "first looks for a sixth of the budget, now": Again(partial(looks_for, 1 / 6), TRACES, (1, 2)),
    "corners are begun again": Again(corners_again, CURVES, (5, 10)),
    "nothing is continued for no information": Again(only_new_for_nothing, CURVES, (5, 10)),
    "with leaps": Again(with_leaps, ("rows/*", "forest/*", "lcbench/*"), (5,)),
    "compared whatever the doubt": Again(always_compared, ("rows/*", "forest/*", "lcbench/*"), (5, 10)),
    "taKG⁰ throughout": Again(partial(one_form, "taKG0"), SIZES, (2, 5)),
    "taKG throughout": Again(partial(one_form, "taKG"), SIZES, (2, 5)),
    "the paper's kernels for sizes, too": Again(decays_alone, SIZES, (2, 5)),
    "48 configurations may be begun again": Again(more_again, SIZES, (2, 5)),
    "one of five starts in full": Again(one_start_in_full, ("iaml_*", "rbv2_svm/*"), (2, 5, 10)),
}
SHORT: Sequence[float] = (1, 2)
"""Budgets at which ASHA sees more configurations than the default."""
RESERVED = "a reserve beyond two trainings"
"""The default since, along traces: the rules of `SINCE` are changes of it."""
AGAIN = {
    **AGAIN,
    "sizes are begun again by strides": Again(more_of_each_by_strides, SIZES, (1, 2, 5)),
    "no leaps of sizes": Again(no_leaps_of_sizes, SIZES, (1, 2, 5)),
    "short starts of sizes": Again(short_starts_of_sizes, SIZES, (1, 2, 5)),
    "half of what is left at most": Again(half_of_what_is_left, SIZES, (1, 2, 5)),
    RESERVED: Again(partial(reserve_beyond, 2), TRACES, ARENA_BUDGETS),
    "a reserve beyond one training": Again(partial(reserve_beyond, 1), TRACES, ARENA_BUDGETS),
    "a reserve beyond two, first looks at 5 %": Again(
        partial(at_once, partial(reserve_beyond, 2), partial(looks_for, inf)), TRACES, SHORT
    ),
    "two are compared, or none": Again(two_or_none, TRACES, SHORT),
    "halving below three trainings": Again(partial(halving_below, 3), TRACES, SHORT),
}
SINCE: Mapping[str, Again] = {
    "no comparing": Again(partial(reserved, 0.0), TRACES, (3, 5, 10)),
    "half of what a budget has beyond two trainings": Again(partial(reserved, 0.5), TRACES, (3, 5, 10)),
}
AGAIN_SEEDS = 4
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


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser("python -m benchmarks.tuning.curve_rules", description=__doc__)
    parser.add_argument("rule", nargs="?", choices=[*RULES, *LATER, *AGAIN, *SINCE], metavar="RULE")
    parser.add_argument("--problems", nargs="+", metavar="PATTERN", help="only these of the rule's")
    parser.add_argument("--budgets", nargs="+", type=float, metavar="B", help="only these of the rule's")
    options = parser.parse_args(arguments)
    if options.rule is None:
        rows = read_records(results_path(SUITE))
        for default, rules in ((DEFAULT, RULES), (IN_TIME, LATER), (TODAY, AGAIN), (RESERVED, SINCE)):
            print_pairs([row for row in rows if row["method"] in {default, *rules}], method=default, against=())
        return 0
    (changed, problems, budgets), seeds = _judged(options.rule)
    changed()
    suite = ARENAS["real-curves-tuning"]
    runs = make_plan(suite, seeds=seeds, problems=options.problems or problems, methods=("TraceKG",)).runs
    wanted = [
        run
        for run in runs
        if run.contest.allowance.amount in (options.budgets or budgets)
        and (options.rule in {**AGAIN, **SINCE} or only_trace_of(run))
    ]
    make_missing(
        results_path(SUITE),
        [Ruled(options.rule, run) for run in sorted(wanted, key=lambda run: run.seed)],
        result_of=small_result,
    )
    return 0


def _judged(name: str) -> tuple[Again, int]:
    """A rule and its number of seeds."""
    if name in AGAIN or name in SINCE:
        return {**AGAIN, **SINCE}[name], AGAIN_SEEDS
    if name in LATER:
        return Again(LATER[name], ("rows/*", "forest/*", "*-rows/*"), LATER_BUDGETS), LATER_SEEDS
    return Again(RULES[name], (), ARENA_BUDGETS), SEEDS


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
    """`bought` are the choices of the model, `for_nothing` those of no information, `continued` the paused runs among
    these, and `cost_of_nothing` their share of the cost.
    """
    choose, bought = screening.choose_screened, list[ChosenEvaluation]()

    def counted(*arguments: Any, **named: Any) -> ChosenEvaluation | None:
        chosen = choose(*arguments, **named)
        bought.extend([] if chosen is None else [chosen])
        return chosen

    screening.choose_screened = counted
    result = result_of(ruled.run, suite=SUITE)
    screening.choose_screened = choose
    idle = [one for one in bought if one.information == 0.0]
    counts = {
        "bought": len(bought),
        "for_nothing": len(idle),
        "continued": sum(not one.is_new for one in idle),
        "cost_of_nothing": round(sum(one.cost for one in idle) / max(sum(one.cost for one in bought), 1e-12), 4),
    }
    return {"suite": SUITE, **ruled.identity, **{key: result[key] for key in KEPT if key in result}, **counts}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
