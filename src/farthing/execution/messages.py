"""Messages between coordinator and workers, as JSON."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeAlias

from farthing.execution.executor import Job
from farthing.scalars import with_tuples
from farthing.trials import Attempt, Failure, Json, Measurement, Outcome
from farthing.trials.news import Checkpointed, News
from farthing.trials.prefixes import Eviction

GO_ON = "go on"
STOP = "stop"
CUT_SHORT = "cut short"
"""The coordinator's answers to news: they are durable; they are not wanted any more; or they are durable and the last,
but for how the job ended.
"""


@dataclass(frozen=True)
class Ready:
    """The worker has the work and takes jobs."""


@dataclass(frozen=True)
class Unready:
    """The worker could not unpack the work."""

    failure: Failure


@dataclass(frozen=True)
class Finished:
    """The job is over; without an outcome because it was superseded."""

    outcome: Outcome | None


WorkerMessage: TypeAlias = Ready | Unready | News | Finished
"""With news the job waits until the coordinator answers."""


def message_to_json(message: WorkerMessage) -> Json:
    match message:
        case Ready():
            return ["ready", None]
        case Unready(failure):
            return ["unready", _failure_to_json(failure)]
        case Measurement():
            return ["reported", _measurement_to_json(message)]
        case Checkpointed(checkpoint):
            return ["committed", checkpoint]
        case Eviction():
            return ["evicted", message.to_json()]
        case Finished(outcome):
            return ["finished", outcome and _outcome_to_json(outcome)]


def job_to_json(job: Job) -> Json:
    return {
        "attempt": [job.attempt.number, job.attempt.attempt],
        "params": dict(job.params),
        "fidelity": dict(job.fidelity),
        "resume_from": job.resume_from,
        "resume_dir": None if job.resume_dir is None else str(job.resume_dir),
        "reported": job.reported,
        "tells_charges": job.tells_charges,
        "trackers": dict(job.trackers),
    }


def job_from_json(form: dict[str, Any]) -> Job:
    """The job as a worker sees it: limits of time are the coordinator's to keep."""
    resume_dir = form["resume_dir"]
    return Job(
        Attempt(*form["attempt"]),
        with_tuples(form["params"]),
        form["fidelity"],
        resume_from=form["resume_from"],
        resume_dir=None if resume_dir is None else Path(resume_dir),
        reported=form["reported"],
        tells_charges=form["tells_charges"],
        trackers=form["trackers"],
    )


def _measurement_to_json(measurement: Measurement) -> Json:
    return {field.name: getattr(measurement, field.name) for field in fields(measurement)}


def _failure_to_json(failure: Failure) -> Json:
    return {"reason": failure.reason, "traceback": failure.traceback}


def _outcome_to_json(outcome: Outcome) -> Json:
    return {
        "state": outcome.state,
        "value": outcome.value,
        "measurements": [_measurement_to_json(measurement) for measurement in outcome.measurements],
        "failure": outcome.failure and _failure_to_json(outcome.failure),
        "checkpoint": outcome.checkpoint,
    }
