"""Messages between coordinator and workers, as JSON."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeAlias

from farthing.errors import FarthingError, InvalidValue
from farthing.execution.checkpoints import NAME
from farthing.execution.executor import Checkpointed, Job, News
from farthing.execution.results import read_gradient
from farthing.execution.wire import BrokenWire
from farthing.scalars import with_tuples
from farthing.space import Space
from farthing.trials import Attempt, Failure, Json, Measurement, Outcome, State
from farthing.trials.measurement import LARGEST_WHOLE, check_kind, cost_amount, finite_number
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


# ------------------------------------------------------------
# Reads what a worker sent, and takes nothing in it on trust: work can write to any descriptor of its process.


LARGEST_SEQUENCE = 2**31 - 1
"""No attempt reports more often, so the measurement that closes it always has a number too."""

_ENDS = (State.DONE, State.FAILED, State.PRUNED)


def message_from_json(form: Any) -> WorkerMessage:
    """The message of a worker; `BrokenWire` for anything else."""
    try:
        kind, content = form
        return _READERS[kind](content)
    except (AttributeError, KeyError, TypeError, ValueError, FarthingError) as error:
        known = ", ".join(_READERS)
        raise BrokenWire(f"A worker must send one of {known}, got something else ({error}). Report it.") from error


def check_fits(message: WorkerMessage, job: Job, space: Space) -> None:
    """Raises `BrokenWire` for a message that cannot be about this job."""
    match message:
        case Measurement():
            _check_place(message, job, space)
        case Checkpointed(checkpoint):
            _check_checkpoint(checkpoint, job)
        case Finished(outcome) if outcome is not None:
            for measurement in outcome.measurements:
                _check_place(measurement, job, space)
            if outcome.checkpoint is not None:
                _check_checkpoint(outcome.checkpoint, job)


def _check_place(measurement: Measurement, job: Job, space: Space) -> None:
    if measurement.fidelity and measurement.fidelity.keys() != space.fidelities.keys():
        raise BrokenWire(
            f"A measurement must name the fidelities {list(space.fidelities)}, got {list(measurement.fidelity)}. "
            "Report with trial.report."
        )
    try:
        read_gradient(measurement.gradient, space, job.params)
    except FarthingError as error:
        raise BrokenWire(str(error)) from error


def _check_checkpoint(name: str, job: Job) -> None:
    match = NAME.fullmatch(name)
    owner = (job.attempt.number, job.attempt.attempt)
    if match is None or match["phase"] != "checkpoint" or (int(match["number"]), int(match["attempt"])) != owner:
        raise BrokenWire(
            f"A checkpoint must be the attempt's own, got {name!r} from attempt {owner[1]} at trial {owner[0]}. "
            "Write to trial.checkpoint_dir."
        )


def _measurement(form: Mapping[str, Any]) -> Measurement:
    gradient = form["gradient"]
    if form["params"] is not None:
        raise TypeError("params that change are a tuner's, not a worker's")
    return Measurement(
        value=None if form["value"] is None else _number(form["value"]),
        cost={check_kind(kind): cost_amount(_number(amount)) for kind, amount in form["cost"].items()},
        charged=_of_type(bool, form["charged"]),
        fidelity={name: _number(amount) for name, amount in form["fidelity"].items()},
        step=None if form["step"] is None else _whole(form["step"], most=LARGEST_WHOLE),
        metrics={name: None if number is None else _number(number) for name, number in form["metrics"].items()},
        saved={reason: cost_amount(_number(amount)) for reason, amount in form["saved"].items()},
        gradient=None if gradient is None else {name: _number(slope) for name, slope in gradient.items()},
        attempt=_whole(form["attempt"], most=LARGEST_WHOLE),
        sequence=_whole(form["sequence"], most=LARGEST_SEQUENCE),
    )


def _outcome(form: Mapping[str, Any]) -> Outcome:
    state, value, failure = State(form["state"]), form["value"], form["failure"]
    measurements = tuple(map(_measurement, form["measurements"]))
    if state not in _ENDS or (state is State.DONE and value is None) or (state is State.FAILED and failure is None):
        raise InvalidValue(f"An outcome must be an end with its value or its reason, got {state}. Return or raise.")
    if len({point.sequence for point in measurements}) < len(measurements):
        raise InvalidValue("Measurements must have sequences of their own, got one twice. Report each once.")
    return Outcome(
        state,
        value=None if value is None else _number(value),
        measurements=measurements,
        failure=None if failure is None else _failure(failure),
        checkpoint=None if form["checkpoint"] is None else _of_type(str, form["checkpoint"]),
    )


def _failure(form: Mapping[str, Any]) -> Failure:
    return Failure(_of_type(str, form["reason"]), _of_type(str, form["traceback"]))


def _eviction(form: Mapping[str, Any]) -> Eviction:
    texts = {name: _of_type(str, form[name]) for name in ("prefix", "why", "detail")}
    return Eviction(length=_whole(form["length"], most=LARGEST_SEQUENCE), **texts)


def _number(form: Any) -> float:
    """Whole numbers stay whole: fidelities are read back as they were sent."""
    finite_number(form, what="A number")
    if type(form) not in (int, float):
        raise TypeError("not a number")
    return form  # type: ignore[no-any-return]


def _whole(form: Any, *, most: int) -> int:
    if type(form) is not int or not 0 <= form <= most:
        raise TypeError(f"not a whole number from 0 to {most}")
    return form


def _of_type(kind: type, form: Any) -> Any:
    if type(form) is not kind:
        raise TypeError(f"no {kind.__name__}")
    return form


_READERS: dict[str, Callable[[Any], WorkerMessage]] = {
    "ready": lambda _: Ready(),
    "unready": lambda content: Unready(_failure(content)),
    "reported": _measurement,
    "committed": lambda content: Checkpointed(_of_type(str, content)),
    "evicted": _eviction,
    "finished": lambda content: Finished(None if content is None else _outcome(content)),
}
