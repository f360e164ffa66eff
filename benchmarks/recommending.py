"""python -m benchmarks.recommending NAME: which run of a study to recommend, scored on stored histories.

The records of an arena say what each study tried, so that any rule can be asked what it would have recommended. Rules
that need the model of curves are asked where the recorded rows tell the configurations: the history is built again, and
the model is fitted to it. Regret is that of the arena; differences are to what the study recommended, with their
standard errors. `real-curves` is reported; `tuning-recommending` has studies of other tables to choose on, made while
halfway was the rule. The last table is the calibration of that model: what it expected of the end of each run that was
paused, beside the end that is on record. With `--keep` the figures over all problems are kept in
`benchmarks/results/tuning-recommended.jsonl.xz`.
"""

import argparse
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.stats import spearmanr

from benchmarks.arena import MOST
from benchmarks.markdown import section, table
from benchmarks.paired import Difference
from benchmarks.problems import PROBLEMS
from benchmarks.problems.recorded import Rows, read_runs
from benchmarks.provenance import commit
from benchmarks.records import Record, append_record, read_records, results_path
from farthing.models.linalg import Array, BoolArray
from farthing.strategies.multifidelity.curve_model import fit_curves
from farthing.strategies.multifidelity.levels import Fidelities
from farthing.strategies.multifidelity.runs import runs_of
from farthing.strategies.multifidelity.takg import TraceKG
from farthing.trials import History, Measurement, Problem, State, Suggestion, Trial

RECORDED = "as recorded"
KEPT = "tuning-recommended"


class Reached(NamedTuple):
    """The runs of a study in the order of their starts: how far each came, the loss there, and the regret at its end.

    `loss` is of any scale. `paths` has of each run where it was measured, and the losses there. What the model
    `expected` is known of recorded rows.
    """

    amount: Array
    loss: Array
    final: Array
    is_full: BoolArray
    paths: Sequence[tuple[Sequence[float], Sequence[float]]]
    model: "Expected | None" = None


class Expected(NamedTuple):
    """Of each run on the scale of the model: the end it predicts with its deviation, the last loss, the true end."""

    predicted: Array
    deviation: Array
    last: Array
    end: Array


Rule: TypeAlias = Callable[[Reached], Array | None]
"""What is to be least, of each run; None where the rule cannot be asked."""


def lowest_measured(runs: Reached) -> Array:
    return runs.loss


def furthest(runs: Reached) -> Array:
    """The lowest measured of those that came furthest."""
    return np.where(runs.amount == runs.amount.max(), runs.loss, np.inf)


def finished(runs: Reached) -> Array:
    """The lowest measured of those that are complete, of all where none is."""
    return np.where(runs.is_full, runs.loss, np.inf) if runs.is_full.any() else runs.loss


def as_others_went_on(runs: Reached) -> Array:
    """The lowest measured, with the median rise of those that went on from there, if they rose."""
    found = runs.loss.copy()
    for amount in set(runs.amount.tolist()):
        rises = [
            losses[-1] - losses[place - 1]
            for amounts, losses in runs.paths
            if amounts[-1] > amount and (place := bisect_right(amounts, amount))
        ]
        found[runs.amount == amount] += max(0.0, median(rises)) if rises else 0.0
    return found


def predicted(runs: Reached) -> Array | None:
    return None if runs.model is None else runs.model.predicted


def halfway(runs: Reached) -> Array | None:
    """From the measured to the predicted loss, no further from the latter than two deviations."""
    if (model := runs.model) is None:
        return None
    most = 2.0 * model.deviation
    return np.asarray(model.predicted + np.clip(0.5 * (model.last - model.predicted), -most, most))


def undominated(rule: Rule) -> Rule:
    """The same without runs of which another measured less with no more training."""

    def among_the_others(runs: Reached) -> Array | None:
        losses = rule(runs)
        less = (runs.loss[:, None] < runs.loss) & (runs.amount[:, None] <= runs.amount)
        return None if losses is None else np.where(less.any(axis=0), np.inf, losses)

    return among_the_others


RULES: Mapping[str, Rule] = {
    "lowest measured": lowest_measured,
    "the same, with what those that went on from there rose": as_others_went_on,
    "lowest measured of those that came furthest": furthest,
    "best finished, else lowest measured": finished,
    "predicted": predicted,
    "predicted, not where another measured less with less training": undominated(predicted),
    "halfway": halfway,
    "halfway, not where another measured less with less training": undominated(halfway),
}
"""The lowest measured run is never one of which another measured less with less training."""


def regrets(record: Record) -> dict[str, float]:
    """By rule, those that can be asked: none where nothing was tried, or what is stored of all runs is the limit."""
    if not record["tried"]:
        return {}
    runs = _runs_of(record)
    if "measured" in record and runs.loss.min() >= 1000 * MOST:
        return {}
    losses = {name: rule(runs) for name, rule in RULES.items()}
    asked = {name: float(runs.final[np.argmin(each)]) for name, each in losses.items() if each is not None}
    return {RECORDED: record["regret"], **asked}


def _runs_of(record: Record) -> Reached:
    steps = list(zip(record["tried"][::2], record["tried"][1::2], strict=True))
    problem = PROBLEMS[record["problem"]]
    if isinstance(problem, Rows):
        return _from_rows(problem, steps)
    measured: dict[int, tuple[list[float], list[float]]] = {}
    for (run, reached), value in zip(steps, record["measured"], strict=True):
        amounts, losses = measured.setdefault(run, ([], []))
        amounts.append(reached)
        losses.append(value)
    paths = list(measured.values())
    amount, loss = (np.array([path[place][-1] for path in paths], dtype=float) for place in (0, 1))
    return Reached(amount, loss, np.array(record["finals"]) / 1000, amount == _full_amount(record["problem"]), paths)


@cache
def _full_amount(problem: str) -> float:
    """As the arena writes it: whole points or epochs, or hundredths."""
    [declared] = PROBLEMS[problem].space().fidelities.values()
    return declared.high if declared.integer else 100.0


def _from_rows(problem: Rows, steps: Sequence[tuple[int, int]]) -> Reached:
    values = read_runs(problem.file).values * (1.0 if problem.direction == "minimize" else -1.0)
    last = dict(steps)
    amount = np.array(list(last.values()))
    final = [min(problem.span.normalised(values[run, -1]), MOST) for run in last]
    loss = np.array([values[run, amount - 1] for run, amount in last.items()])
    paths = [(range(1, amount + 1), values[run, :amount].tolist()) for run, amount in last.items()]
    model = _expected(problem, steps, values[list(last), -1])
    return Reached(amount, loss, np.array(final), amount == values.shape[1], paths, model)


def _expected(problem: Rows, steps: Sequence[tuple[int, int]], end: Array) -> Expected:
    """By the default's model; an end has the noise of a loss in it."""
    history = _history(problem, steps)
    runs, settings = runs_of(history), TraceKG()
    model = fit_curves(history, runs, retain=settings.retain, fidelity_kernel=settings.fidelity_kernel)
    assert model is not None, "a step has a value"
    space = history.problem.space
    rows = Fidelities(space).at_full(space.encoder.encode([run.params for run in runs]))
    mean, variance = model.gp.predict(rows)
    last = model.scale.apply(np.array([run.results[-1].loss for run in runs]))
    deviation = np.sqrt(model.standard.undo_variance(variance + model.gp.noise))
    return Expected(model.standard.undo(mean), deviation, last, model.scale.apply(end))


def _history(problem: Rows, steps: Sequence[tuple[int, int]]) -> History:
    [name], recorded = problem.declared.fidelities, read_runs(problem.file)
    trials: list[Trial] = []
    latest: dict[int, tuple[int, int]] = {}
    for number, (run, amount) in enumerate(steps):
        before, begun = latest.get(run, (None, 0))
        curve = recorded.values[run, begun:amount].tolist()
        points = tuple(Measurement(value, {name: begun + place}) for place, value in enumerate(curve, start=1))
        suggestion = Suggestion(recorded.params[run], {name: amount}, resume_from=before)
        trials.append(Trial(number, suggestion, State.DONE, measurements=points, value=points[-1].value))
        latest[run] = (number, amount)
    return History(Problem(problem.declared, minimize=problem.direction == "minimize"), trials)


Scores: TypeAlias = Mapping[float, Mapping[tuple[str, int], Mapping[str, float]]]
"""Regrets by budget, problem and seed, and rule."""


def scores(records: Iterable[Record]) -> Mapping[str, Scores]:
    """Of each family of problems, and of all."""
    scored: dict[str, dict[float, dict[tuple[str, int], dict[str, float]]]] = {}
    for record in records:
        budget, pair = float(record["settings"]["allowance"]["amount"]), (record["problem"], record["seed"])
        found = regrets(record)
        for family in (record["problem"].partition("/")[0], "all"):
            scored.setdefault(family, {}).setdefault(budget, {})[pair] = found
    return scored


def sections(scored: Mapping[str, Scores]) -> list[str]:
    """A table for each family of problems and one for all: mean regrets, and differences to what was recommended."""
    return [_section(family, scores) for family, scores in sorted(scored.items(), key=lambda one: one[0] == "all")]


def figures(scored: Scores) -> list[Record]:
    """The same as numbers, a row for each rule and budget."""
    found: list[Record] = []
    for budget, own in sorted(scored.items()):
        for rule in RULES:
            if difference := Difference.of(own, rule, RECORDED):
                count = sum(rule in by_rule for by_rule in own.values())
                own_figures = {"difference": difference.mean, "error": difference.error}
                found.append({"rule": rule, "budget": budget, "n": count, **own_figures})
    return found


def _section(family: str, scores: Scores) -> str:
    budgets = sorted(scores)
    heading = ["at a budget of", *(f"{budget:g}" for budget in budgets)]
    rows = [[name, *(_cell(scores[budget], name) for budget in budgets)] for name in (RECORDED, *RULES)]
    return section(family, table([heading, *rows]))


def _cell(scores: Mapping[tuple[str, int], Mapping[str, float]], rule: str) -> str:
    own = [by_rule[rule] for by_rule in scores.values() if rule in by_rule]
    if not own:
        return ""
    difference = None if rule == RECORDED else Difference.of(scores, rule, RECORDED)
    compared = f" {difference.mean:+.3f} ± {difference.error:.3f}" if difference else ""
    return f"{fmean(own):.3f}{compared} n {len(own)}"


QUANTILE = 1.2816
"""Of the standard normal distribution at 90 %."""
REACHED = (0.0, 0.1, 0.3, 1.0)
"""Shares of a training between which runs are judged together."""
FEWEST = 5
"""Runs of a study whose order is judged."""
CALIBRATED = ("trained to", "runs", "bias", "rms", "within 80 %", "order, predicted", "order, measured")


class Paused(NamedTuple):
    """Runs of one study that came about as far: what was expected of them in deviations, and in which order."""

    errors: Array
    by_prediction: float | None
    by_measurement: float | None

    @classmethod
    def of(cls, model: Expected, chosen: BoolArray) -> "Paused":
        predicted, deviation, last, end = (part[chosen] for part in model)
        is_judged = end.size >= FEWEST and np.ptp(end) > 0.0
        orders = (agreement(predicted, end), agreement(last, end)) if is_judged else (None, None)
        return cls((end - predicted) / deviation, *orders)


def agreement(one: Array, other: Array) -> float:
    """Spearman's rank correlation; 0 where all of one are equal."""
    return float(spearmanr(one, other).statistic) if np.ptp(one) > 0.0 else 0.0


def calibration(records: Iterable[Record]) -> list[list[str]]:
    """Ends of paused runs against what was expected of them, by how far they had come, of all studies on rows."""
    levels = list(pairwise(REACHED))
    found: dict[tuple[float, float], list[Paused]] = {level: [] for level in levels}
    for record in records:
        if record["tried"] and (model := (runs := _runs_of(record)).model) is not None:
            share = runs.amount / _full_amount(record["problem"])
            for least, most in levels:
                found[least, most].append(Paused.of(model, (share > least) & (share <= most) & ~runs.is_full))
    return [_calibrated(*one) for one in found.items()]


def _calibrated(level: tuple[float, float], found: Sequence[Paused]) -> list[str]:
    errors = np.concatenate([one.errors for one in found])
    orders = [[one.by_prediction for one in found], [one.by_measurement for one in found]]
    return [
        "{:.0%} to {:.0%}".format(*level),
        str(errors.size),
        f"{errors.mean():+.2f}",
        f"{np.sqrt(np.mean(errors**2)):.2f}",
        f"{np.mean(np.abs(errors) <= QUANTILE):.0%}",
        *(f"{fmean(one for one in each if one is not None):.2f}" for each in orders),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m benchmarks.recommending", description=__doc__)
    parser.add_argument("name", nargs="?", default="real-curves", help="the records; real-curves by default")
    parser.add_argument("--method", default="TraceKG", help="whose studies; TraceKG by default")
    parser.add_argument("--keep", action="store_true", help="add the figures to the records")
    parser.add_argument("--input", type=Path, metavar="FILE", help="JSON lines; benchmarks/results/ else")
    options = parser.parse_args(arguments)
    records = read_records(options.input or results_path(options.name))
    own = [record for record in records if record["method"] == options.method]
    if not own:
        sys.stderr.write(f"No results of {options.method}. Make some: python -m benchmarks.run real-curves\n")
        return 1
    scored, calibrated = scores(own), calibration(own)
    tables = section("calibration, errors in deviations", table([list(CALIBRATED), *calibrated]))
    print("\n\n".join([*sections(scored), tables]))
    if options.keep:
        rows = [*figures(scored["all"]), *(dict(zip(CALIBRATED, row, strict=True)) for row in calibrated)]
        for row in rows:
            append_record(results_path(KEPT), {"records": options.name, **row, **commit()})
    return 0


if __name__ == "__main__":
    sys.exit(main())
