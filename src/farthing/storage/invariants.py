"""What must hold between the trials of a study, however they were written."""

from collections.abc import Iterator, Sequence

from farthing.trials import State, Trial


def broken_invariants(study: str, trials: Sequence[Trial]) -> list[str]:
    """What is wrong, in words; `trials` are in the order of their numbers."""
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
    later = [point.attempt for point in trial.measurements if point.attempt > trial.attempt]
    if later and trial.state is not State.DONE:
        yield f"is at attempt {trial.attempt} and has a measurement of attempt {max(later)}"
