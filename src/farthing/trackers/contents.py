"""The values that trackers show of a trial and a bill, under names that all of them share."""

from importlib import import_module
from typing import Any

import numpy as np

from farthing.analysis.front import place_of_knee, point_beyond, volume_of
from farthing.analysis.text import paid_column
from farthing.costs import Ledger
from farthing.errors import MissingExtra
from farthing.running.tracking import SoFar, StudyFacts
from farthing.trials import Measurement, Problem, Trial
from farthing.trials.objectives import losses_of, values_of


def library(module: str, *, tracker: str, extra: str) -> Any:
    """The library of a tracker, or the error that names the extra to install."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtra(
            f"ft.trackers.{tracker} needs {module.partition('.')[0]}, which is absent. "
            f"Run: pip install 'farthing[{extra}]'."
        ) from error


def settings_of(trial: Trial) -> dict[str, Any]:
    """The params, the fidelity under `fidelity.`, and the trial that this one continues."""
    fidelity = {f"fidelity.{name}": amount for name, amount in trial.fidelity.items()}
    begun = {} if trial.resume_from is None else {"resume_from": trial.resume_from}
    return {**trial.params, **fidelity, **begun}


def numbers_at(study: StudyFacts, point: Measurement) -> dict[str, float]:
    """The numbers of one point of a curve: the value, and the other metrics that are known."""
    metrics = {name: number for name, number in point.metrics.items() if number is not None}
    return metrics if point.value is None else {**metrics, study.problem.value: point.value}


def costs_of(study: StudyFacts, trial: Trial) -> dict[str, float]:
    paid = paid_column(study.problem)
    return {paid: trial.cost, **{f"{paid}.{kind}": amount for kind, amount in trial.costs.items()}}


def standing(study: StudyFacts, so_far: SoFar) -> dict[str, float]:
    """As measured: the cost, the best or the front, and the share of the results that keeps the limits."""
    best = {} if so_far.best is None else {f"best.{study.problem.value}": so_far.best}
    share = {"within_limits": so_far.kept / so_far.results} if study.problem.constraints and so_far.results else {}
    return {"cost": so_far.cost, **best, **(_front(study.problem, so_far) if study.problem.further else {}), **share}


def _front(problem: Problem, so_far: SoFar) -> dict[str, float]:
    """How large the front is, its hypervolume measured from beyond all results so far, and its knee."""
    trials = so_far.front.trials
    if not trials:
        return {"front.size": 0.0}
    losses = np.array([losses_of(problem, values_of(problem, trial) or {}) for trial in trials])
    volume = volume_of(losses, point_beyond(np.array(so_far.least), np.array(so_far.most)))
    place = place_of_knee(losses)
    knee = {
        f"knee.{one.name}": one.loss(at) for one, at in zip(problem.objectives, losses[place].tolist(), strict=True)
    }
    number = float(trials[place].number)
    return {"front.size": float(len(trials)), "front.hypervolume": volume, "knee.trial": number, **knee}


def best_of(so_far: SoFar) -> dict[str, Any]:
    """The params of the best trial so far, and its number."""
    best = so_far.best_trial
    return {} if best is None else {"best.trial": best.number, **{f"best.{name}": v for name, v in best.params.items()}}


def bill_of(ledger: Ledger) -> dict[str, float]:
    """The ledger as plain numbers."""
    spent = {f"spent.{kind}": amount for kind, amount in ledger.spent.items()}
    saved = {f"saved.{reason}": amount for reason, amount in ledger.saved.items()}
    return {**spent, "spent.total": ledger.total, **saved, "overhead.seconds": ledger.overhead}
