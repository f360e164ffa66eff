"""One study at a glance: what it is, what it has cost and found, what is in flight, what failed."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from farthing.analysis.lines import FAILED_CODES, Lines, progress, worth
from farthing.analysis.rows import predicted, trial_row
from farthing.costs import Budget, Ledger
from farthing.session.strategy import class_name
from farthing.space import Choice, Int
from farthing.space.parameters import Parameter
from farthing.trials import Json, Problem, Trial

Kind = Literal["plain", "multifidelity", "population", "online", "pipeline"]
MOST_PROGRESS = 1_000
MOST_FAILURES = 20
MOST_IN_FLIGHT = 64


def kind_of(problem: Problem, strategy: Json, some: Sequence[Trial]) -> Kind:
    """The system that a study uses, from its stored form: nothing is imported. `some` are any of its trials."""
    if class_name(strategy) == "Online":
        return "online"
    if problem.space.stages:
        return "pipeline"
    if any(trial.member is not None for trial in some):
        return "population"
    return "multifidelity" if problem.space.fidelities else "plain"


def problem_form(problem: Problem) -> dict[str, Json]:
    space = problem.space
    return {
        "value": problem.value,
        "minimize": problem.minimize,
        "aim": problem.aim,
        "objectives": [{"name": one.name, "minimize": one.minimize} for one in problem.objectives],
        "needed": list(problem.needed),
        "limits": {name: str(limit) for name, limit in problem.constraints.items()},
        "cost_unit": problem.cost_unit,
        "parameters": {name: _parameter(one) for name, one in space.parameters.items()},
        "fidelities": {
            name: {"low": one.low, "high": one.high, "trace": one.trace} for name, one in space.fidelities.items()
        },
        "stages": {name: list(own) for name, own in space.stages.items()},
    }


def _parameter(parameter: Parameter) -> dict[str, Json]:
    if isinstance(parameter, Choice):
        return {"kind": "choice", "options": list(parameter.options)}
    kind = "int" if isinstance(parameter, Int) else "float"
    return {"kind": kind, "low": parameter.low, "high": parameter.high, "log": parameter.log}


def overview(
    lines: Lines,
    problem: Problem,
    *,
    in_flight: Sequence[Trial],
    failed: Sequence[Trial],
    seconds: float,
    budget: Budget | None,
    ledger: Ledger | None,
) -> dict[str, Json]:
    """All that the first page of a study shows. Without a ledger, because that takes every trial, only its sums."""
    return {
        "counts": lines.counts,
        "trials": len(lines),
        "spent": lines.total,
        "failed_cost": lines.failed_cost,
        "seconds": seconds,
        "ledger": None if ledger is None else ledger.to_json(),
        "budget": None if budget is None else budget.amounts,
        "hard_budget": budget is not None and budget.hard,
        "progress": progress(lines, problem, most=MOST_PROGRESS),
        "worth": worth(lines, problem) if problem.is_simple else [],
        "in_flight": [trial_row(trial) for trial in in_flight[:MOST_IN_FLIGHT]],
        "committed": committed(in_flight),
        "failures": [
            {**trial_row(trial), "traceback": trial.failure.traceback if trial.failure else ""} for trial in failed
        ],
    }


def committed(in_flight: Sequence[Trial]) -> float:
    """The predicted cost that the trials in flight still have."""
    known = [(trial.suggestion.predicted_cost, trial.cost) for trial in in_flight]
    return float(sum(max(0.0, cost.mean - paid) for cost, paid in known if cost is not None))


def latest_failures(lines: Lines) -> list[int]:
    """The numbers of the trials that failed last."""
    failed = np.flatnonzero(np.isin(lines.codes, FAILED_CODES))[-MOST_FAILURES:]
    return [int(number) for number in lines.number[failed][::-1]]


def predictions(trials: Sequence[Trial], lines: Lines) -> list[dict[str, Json]]:
    """The expectations of finished trials, where there were any, beside their results, and their places on charts."""
    place = {int(number): at for at, number in enumerate(lines.number[lines.order])}
    return [
        {
            "number": trial.number,
            "spent": float(lines.spent[place[trial.number]]),
            "elapsed": float(lines.elapsed[place[trial.number]]),
            "count": place[trial.number] + 1,
            "value": trial.value,
            "cost": trial.cost,
            "expected_value": predicted(trial.suggestion.predicted_value),
            "expected_cost": predicted(trial.suggestion.predicted_cost),
        }
        for trial in trials
    ]
