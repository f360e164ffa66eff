"""Checks that every storage makes, in the same words."""

from farthing.errors import HistoryMoved, InvalidArgument, StudyExists, StudyNotFound, TrialNotFound


def study_not_found(name: str) -> StudyNotFound:
    return StudyNotFound(f"A study must be in the storage, got {name!r}. `farthing list` names those that are.")


def study_exists(name: str) -> StudyExists:
    return StudyExists(f"A study's name must be new, got {name!r} again. Load that study, or choose another name.")


def trial_not_found(number: int, *, trials: int) -> TrialNotFound:
    return TrialNotFound(
        f"A trial's number must be below the {trials} there are, got {number}. `study.trials` lists them."
    )


def unknown_run(run: int) -> InvalidArgument:
    return InvalidArgument(f"A run's number must be one that `start_run` gave, got {run}. Start a run first.")


def check_expected_trials(expected: int | None, *, trials: int) -> None:
    if expected is not None and expected != trials:
        raise HistoryMoved(
            f"Suggestions are good for the history they were made for, got some for {expected} trials where there are "
            f"{trials} now. Read the history and suggest again."
        )


def check_resume_from(number: int, *, trials: int) -> None:
    if not 0 <= number < trials:
        raise InvalidArgument(
            f"A trial can continue only one that was opened before, got resume_from={number} where there are "
            f"{trials} trials. Choose a number of `study.trials`, or leave resume_from out."
        )
