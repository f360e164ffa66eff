"""Invariants between the trials of a study, however they were written."""

import math
from collections.abc import Iterator, Sequence

from farthing.trials import Measurement, State, Trial


def broken_invariants(study: str, trials: Sequence[Trial]) -> list[str]:
    """The violations, in words; `trials` are in the order of their numbers."""
    numbers = [trial.number for trial in trials]
    gaps = [f"the trials are not numbered 0, 1, 2, …: {numbers}"] if numbers != list(range(len(numbers))) else []
    wrong = [f"trial {trial.number} {fault}" for trial in trials for fault in _faults(trial)]
    return [f"Study {study!r}: {fault}." for fault in [*gaps, *wrong]]


def _faults(trial: Trial) -> Iterator[str]:
    if trial.is_finished != (trial.finished_at is not None):
        yield f"is {trial.state} and has finished_at={trial.finished_at}"
    if (trial.state is State.RUNNING) != (trial.lease_until is not None):
        yield f"is {trial.state} and has lease_until={trial.lease_until}"
    if trial.attempt < 1:
        yield f"has the attempt number {trial.attempt}"
    if trial.resume_from is not None and not 0 <= trial.resume_from < trial.number:
        yield f"resumes trial {trial.resume_from}, which was not opened before it"
    yield from _wrong_numbers(trial)
    later = [point.attempt for point in trial.measurements if point.attempt > trial.attempt]
    if later and trial.state is not State.DONE:
        yield f"is at attempt {trial.attempt} and has a measurement of attempt {max(later)}"


def _wrong_numbers(trial: Trial) -> Iterator[str]:
    """SQLite keeps a text where a number belongs, and infinity where a finite one does."""
    if trial.value is not None and not _is_finite(trial.value):
        yield f"has the value {trial.value!r}"
    for name in ("opened_at", "finished_at", "lease_until", "overhead"):
        moment = getattr(trial, name)
        if moment is not None and not _is_finite(moment):
            yield f"has {name}={moment!r}"
    for point in trial.measurements:
        yield from (f"has a measurement of the {what} {number!r}" for what, number in _wrong_in(point))


def _wrong_in(point: Measurement) -> Iterator[tuple[str, object]]:
    if point.value is not None and not _is_finite(point.value):
        yield "value", point.value
    yield from (("saving", saved) for saved in point.saved.values() if not _is_finite(saved))
    yield from (("cost", cost) for cost in point.cost.values() if not (_is_finite(cost) and cost >= 0))
    yield from (("metric", number) for number in point.metrics.values() if not (number is None or _is_number(number)))
    if not _is_finite(point.time):
        yield "time", point.time


def _is_finite(number: object) -> bool:
    return isinstance(number, (int, float)) and math.isfinite(number)


def _is_number(number: object) -> bool:
    return isinstance(number, (int, float))
