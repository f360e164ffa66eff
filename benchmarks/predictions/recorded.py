"""Recorded studies: of each trial all that a cost predictor may know, and what was paid."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from farthing.study import Study
from farthing.trials import Event, History, Measurement, Prediction, Problem, State, Suggestion, Trial
from farthing.trials.events import WORKER_BEGAN, began_its_worker, worker_event

FOLDER = Path(__file__).parents[1] / "data" / "predictions"


def write(study: Study, *, program: str, path: Path) -> None:
    """Stores a study that has run; `program` says what was tuned."""
    history = study.history
    form = {
        "program": program,
        "strategy": type(study.strategy).__name__,
        "problem": history.problem.to_json(),
        "trials": [_to_json(history, trial) for trial in history if trial.is_finished],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(json.dumps(form, separators=(",", ":")).encode(), mtime=0))


def _to_json(history: History, trial: Trial) -> dict[str, Any]:
    points = [point for point in trial.measurements if point.attempt == trial.attempt]
    predicted = trial.suggestion.predicted_cost
    return {
        "params": dict(trial.params),
        "fidelity": dict(trial.fidelity),
        "resume_from": trial.resume_from,
        "resumed": trial.resume_checkpoint is not None,
        "state": trial.state.value,
        "value": trial.value,
        "began_its_worker": began_its_worker(history, trial),
        "predicted": None if predicted is None else [predicted.mean, predicted.deviation],
        "points": [_point_to_json(point) for point in points],
    }


def _point_to_json(point: Measurement) -> dict[str, Any]:
    whole = {
        "value": point.value,
        "cost": {kind: round(amount, 6) for kind, amount in point.cost.items()},
        "fidelity": dict(point.fidelity),
        "step": point.step,
        "saved": dict(point.saved),
    }
    return {name: part for name, part in whole.items() if part not in (None, {})}


class Recorded:
    """A recorded study, to be gone through again trial by trial."""

    def __init__(self, path: Path) -> None:
        form = json.loads(gzip.decompress(path.read_bytes()))
        self.name = path.name.removesuffix(".json.gz")
        self.program: str = form["program"]
        self.strategy: str = form["strategy"]
        self.problem = Problem.from_json(form["problem"])
        self.trials = [_trial(number, one) for number, one in enumerate(form["trials"])]
        first = [worker_event(number, 1) for number, one in enumerate(form["trials"]) if one["began_its_worker"]]
        self._events = [Event(WORKER_BEGAN, payload) for payload in first]

    def history(self) -> History:
        """Before the first trial."""
        return History(self.problem)

    def grown(self, history: History, trial: Trial) -> History:
        """The history once a trial has ended, with the event that says that it was the first of its worker."""
        events = [event for event in self._events if event.payload["trial"] == trial.number]
        return history.updated([trial], events=events, version=history.version + 1)


def _trial(number: int, form: dict[str, Any]) -> Trial:
    predicted = Prediction(*form["predicted"]) if form.get("predicted") else None
    suggestion = Suggestion(form["params"], form["fidelity"], resume_from=form["resume_from"], predicted_cost=predicted)
    points = [Measurement(**point, sequence=at) for at, point in enumerate(form["points"])]
    resumed = str(form["resume_from"]) if form["resumed"] else None
    return Trial(
        number,
        suggestion,
        State(form["state"]),
        measurements=points,
        value=form["value"],
        checkpoint=str(number),
        resume_checkpoint=resumed,
    )


def recorded_studies() -> Iterator[Recorded]:
    return (Recorded(path) for path in sorted(FOLDER.glob("*.json.gz")))
