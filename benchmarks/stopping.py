"""When to stop: `python -m benchmarks.run stopping`.

A strategy runs to the end of its budget, and every rule is asked along the same trials whether it would have stopped:
what is reported is the share of the cost that it saves, and what the recommendation loses against the end, on the
scale of random search (0 is the best of many random configurations, 1 their median). Beside it, outlooks made on the
way are compared with what came: `stopping-outlook`. Optuna's terminators are asked from their 20th trial on, with the
params and values of all trials so far; of a learning curve the value is that of its last point. `--methods
stopping-outlook` makes the outlooks only: asking Optuna's terminators takes most of the time.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.drivers.ours import Ours
from benchmarks.plan import matches
from benchmarks.problems import PROBLEMS, Problem, loss
from benchmarks.problems.problem import Judged, Span, random_params, span_of
from benchmarks.provenance import commit, versions
from benchmarks.records import Record, append_record, read_records, results_path
from benchmarks.resuming import suite_options
from benchmarks.suites import LEARNING_CURVES, Allowance
from farthing.analysis.outlook import Prospects
from farthing.costs import Budget, Worth
from farthing.errors import NoResult
from farthing.running.stopping import Stopping
from farthing.strategies import Strategy
from farthing.strategies.multifidelity import TraceKG
from farthing.strategies.plain.bayesian import LogEI
from farthing.trials import History

if TYPE_CHECKING:
    import optuna

SUITE, OUTLOOK = "stopping", "stopping-outlook"
FUNCTIONS = ("branin", "hartmann-3", "hartmann-6", "ackley-5", "rosenbrock-4")
CONSIDERED = 2000
"""Random configurations that give a function its scale."""
WORTH = 0.01
"""Of that scale: what an evaluation, or a tenth of a full training, must bring."""
PATIENCE = 0.25
"""Share of the budget without a better value that ends a run."""
EVERY = 2
"""Rules are asked after every second trial: a limit on time."""
LOOKED = (0.25, 0.4, 0.6, 0.8)
"""Shares of the budget after which an outlook is made, for another sixth of it."""
AHEAD = 1 / 6


@dataclass(frozen=True)
class Family:
    """Problems with the strategy that is run on them, what it may spend, and what one evaluation counts."""

    problems: tuple[str, ...]
    strategy: Strategy
    allowance: Allowance
    unit: float
    seeds: int


FAMILIES: Mapping[str, Family] = {
    "sequential": Family(FUNCTIONS, LogEI(), Allowance(60, "full runs"), 1.0, seeds=10),
    "curves": Family(LEARNING_CURVES, TraceKG(), Allowance(5, "full runs"), 0.1, seeds=2),
}


@dataclass(frozen=True)
class Moment:
    """The study after a trial, what was spent by then, and the normalised regret of what it recommends."""

    history: History
    spent: float
    regret: float


def main(arguments: Sequence[str]) -> int:
    options = suite_options([SUITE], description=__doc__).parse_args(list(arguments))
    path, beside = options.output or results_path(SUITE), results_path(OUTLOOK)
    stopped, looked = (_pairs(file) for file in (path, beside))
    looks, stops_too = (matches(name, options.methods or ()) for name in (OUTLOOK, SUITE))
    for name, family in FAMILIES.items():
        for seed in range(options.seeds or family.seeds):
            for title in (one for one in family.problems if matches(one, options.problems or ())):
                is_to_look = looks and (title, seed) not in looked
                is_to_stop = stops_too and (title, seed) not in stopped
                if not (is_to_look or is_to_stop):
                    continue
                moments = list(trajectory(family, PROBLEMS[title], seed=seed))
                told = {"suite": SUITE, "family": name, "problem": title, "seed": seed, **commit()}
                for record in outlooks(family, PROBLEMS[title], moments) if is_to_look else ():
                    append_record(beside, {**told, "suite": OUTLOOK, **record})
                found = dict(stops(family, PROBLEMS[title], moments, seed=seed)) if is_to_stop else {}
                for rule, record in found.items():
                    append_record(path, {**told, "rule": rule, **record, "versions": versions(("optuna",))})
    return 0


def _pairs(path: Path) -> set[tuple[str, int]]:
    return {(record["problem"], record["seed"]) for record in read_records(path)}


def trajectory(family: Family, problem: Problem, *, seed: int) -> Iterator[Moment]:
    scale, method = scale_of(problem), Ours("stopping", family.strategy)
    budget = family.allowance.budget(problem)
    with closing(method._study(problem, seed=seed)) as study:
        spent = 0.0
        while spent < family.allowance.amount and (step := method._step(study, problem, budget, seed=seed)):
            spent += step.cost / problem.full_cost
            value = loss(problem, problem.full_value(step.recommended))
            yield Moment(study.history, spent, scale.normalised(value))


def scale_of(problem: Problem) -> Span:
    if isinstance(problem, Judged):
        return span_of(problem)
    losses = [loss(problem, problem.full_value(params)) for params in random_params(problem, CONSIDERED)]
    return Span(float(np.min(losses)), float(np.median(losses)))


# ------------------------------------------------------------------------------------------------------- the rules


def stops(
    family: Family, problem: Problem, moments: Sequence[Moment], *, seed: int
) -> Iterator[tuple[str, dict[str, float]]]:
    scale = scale_of(problem)
    span = scale.median - scale.best
    price = Worth(value=WORTH * span, per=family.unit * problem.full_cost)
    budget = family.allowance.budget(problem)
    assert budget.cost is not None
    ours = {
        "worth": Budget(cost=budget.cost, worth=price),
        "patience": Budget(cost=budget.cost, patience=PATIENCE * budget.cost),
    }
    for rule, limits in ours.items():
        yield rule, _judged(moments, _first(moments, limits))
    for rule, place in _optuna_stops(problem, moments, span=span, seed=seed):
        yield rule, _judged(moments, place)


def _first(moments: Sequence[Moment], limits: Budget) -> int:
    """The place of the trial after which it stops; the last one if it does not."""
    stopping = Stopping()
    for place in range(0, len(moments), EVERY):
        history = moments[place].history
        if stopping.reason(limits, history, limits.remaining(history, seconds=0.0)):
            return place
    return len(moments) - 1


def _judged(moments: Sequence[Moment], place: int) -> dict[str, float]:
    end = moments[-1]
    return {
        "saved": 1.0 - moments[place].spent / end.spent,
        "lost": moments[place].regret - end.regret,
        "regret": moments[place].regret,
        "regret_at_the_end": end.regret,
        "trials": place + 1,
    }


def _optuna_stops(problem: Problem, moments: Sequence[Moment], *, span: float, seed: int) -> Iterator[tuple[str, int]]:
    from optuna import terminator as optuna_terminator

    emmr = optuna_terminator.EMMREvaluator(seed=seed)
    bound = optuna_terminator.RegretBoundEvaluator(seed=seed)
    rules = {
        "optuna-emmr": optuna_terminator.Terminator(emmr, optuna_terminator.MedianErrorEvaluator(emmr)),
        "optuna-regret-bound": optuna_terminator.Terminator(
            bound, optuna_terminator.StaticErrorEvaluator(WORTH * span)
        ),
        "optuna-stagnation": optuna_terminator.Terminator(
            optuna_terminator.BestValueStagnationEvaluator(), optuna_terminator.StaticErrorEvaluator(0.0)
        ),
    }
    for name, rule in rules.items():
        study = _empty_optuna_study(problem)
        place = len(moments) - 1
        for index, moment in enumerate(moments):
            _add_last(study, problem, moment.history)
            if index % EVERY == 0 and index + 1 >= 20 and rule.should_terminate(study):
                place = index
                break
        yield name, place


def _empty_optuna_study(problem: Problem) -> "optuna.Study":
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna.create_study(direction=problem.direction)


def _add_last(study: "optuna.Study", problem: Problem, history: History) -> None:
    import optuna

    trial, distributions = history[-1], {}
    for name, parameter in problem.space().parameters.items():
        made: Any = optuna.distributions.IntDistribution if parameter.count else optuna.distributions.FloatDistribution
        distributions[name] = made(parameter.low, parameter.high, log=parameter.log)  # type: ignore[union-attr]
    study.add_trial(
        optuna.trial.create_trial(params=dict(trial.params), distributions=distributions, value=trial.value)
    )


# ---------------------------------------------------------------------------------------------------- the outlooks


def outlooks(family: Family, problem: Problem, moments: Sequence[Moment]) -> Iterator[Record]:
    """What was expected of another sixth of the budget, and what it brought, both in the units of the value."""
    scale, total = scale_of(problem), family.allowance.amount
    span = scale.median - scale.best
    for share in LOOKED:
        now = next((moment for moment in moments if moment.spent >= share * total), None)
        if now is None:
            continue
        then = [moment for moment in moments if moment.spent <= now.spent + AHEAD * total][-1]
        try:
            expected = Prospects.of(now.history).outlook((then.spent - now.spent) * problem.full_cost or None)
        except NoResult:
            continue
        gain = max(0.0, now.regret - then.regret)
        low, high = expected.low / span, expected.high / span
        yield {
            "after": share,
            "gain": gain,
            "expected": expected.expected / span,
            "low": low,
            "high": high,
            "inside": float(low <= gain + 1e-12 <= high + 2e-12),
        }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
