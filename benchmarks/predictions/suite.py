"""python -m benchmarks.run predictions: predicts the cost of each trial of recorded studies before it is known.

From the tenth trial on, one step ahead: all earlier trials are known, with what was predicted of them. An 80 % interval
is the prediction times exp(± 1.28 of its relative deviation). What a stage of a pipeline costs depends on what is kept
of it, which its strategy knows: there the predictions are those it made as the study ran. The first trial of a worker
process also pays for starting it, which no prediction includes; it is counted apart.
"""

import json
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.predictions.recorded import Recorded, recorded_studies
from benchmarks.provenance import commit
from benchmarks.records import results_path
from farthing.models.linalg import one_thread
from farthing.strategies.shared.cost_model import predicted_cost
from farthing.trials import History, Prediction, State, Suggestion, Trial
from farthing.trials.events import began_its_worker

FROM = 10
"""Trials that are known before the first prediction counts."""
QUANTILE = 1.2816
"""Of the standard normal distribution at 90 %."""

Predict = Callable[[History, Suggestion], Prediction | None]


@dataclass(frozen=True)
class Told:
    """One prediction, and what was paid: log(paid/predicted), and the deviation of it that was promised."""

    error: float
    deviation: float | None

    @property
    def is_covered(self) -> bool:
        return self.deviation is not None and abs(self.error) <= QUANTILE * self.deviation


def told(study: Recorded, predict: Predict) -> dict[str, list[Told]]:
    """The predictions of a study by the kind of trial: of a `new` run, of a `continued` one, or the `first` one of a
    worker."""
    found: dict[str, list[Told]] = {"new": [], "continued": [], "first": []}
    history = study.history()
    for trial in study.trials:
        own = trial.suggestion.predicted_cost
        predicted = own if study.problem.space.stages else predict(history, trial.suggestion)
        known = replace(trial, suggestion=replace(trial.suggestion, predicted_cost=predicted))
        history = study.grown(history, known)
        if predicted is not None and trial.number >= FROM and trial.state is State.DONE and trial.cost > 0.0:
            deviation = None if predicted.deviation is None else predicted.deviation / predicted.mean
            found[_kind(history, trial)].append(Told(math.log(trial.cost / predicted.mean), deviation))
    return found


def _kind(history: History, trial: Trial) -> str:
    if began_its_worker(history, trial):
        return "first"
    return "new" if trial.resume_from is None else "continued"


def summary(errors: Sequence[Told]) -> dict[str, float | int]:
    if not errors:
        return {"count": 0}
    squares = [one.error**2 for one in errors]
    return {
        "count": len(errors),
        "rms": round(math.sqrt(math.fsum(squares) / len(squares)), 3),
        "bias": round(math.fsum(one.error for one in errors) / len(errors), 3),
        "worst_ratio": round(math.exp(max(abs(one.error) for one in errors)), 2),
        "covered": round(sum(one.is_covered for one in errors) / len(errors), 3),
    }


def _predicted(history: History, suggestion: Suggestion) -> Prediction | None:
    with one_thread():
        return predicted_cost(history, suggestion)


def main(arguments: Sequence[str], predict: Predict = _predicted, method: str = "increments and set-up") -> int:
    path = Path(arguments[1]) if len(arguments) > 1 else results_path("predictions")
    rows = []
    for study in recorded_studies():
        errors = told(study, predict)
        for kind in ("continued", "new", "first"):
            if errors[kind]:
                identity = {"suite": "predictions", "problem": study.name, "kind": kind, "method": method}
                rows.append({**identity, **summary(errors[kind])})
                sys.stdout.write(f"{study.name:16} {kind:10} {rows[-1]}\n")
        sys.stdout.flush()
    kept = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    kept = [row for row in kept if row["method"] != method]
    path.write_text("".join(json.dumps(row) + "\n" for row in [*kept, *({**row, **commit()} for row in rows)]))
    return 0
