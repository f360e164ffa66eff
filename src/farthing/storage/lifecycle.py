"""The life of a trial: what each event makes of it, and what must hold of trials at any time.

Pure functions, the same for every storage.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from farthing.errors import (
    HistoryMoved,
    InvalidArgument,
    StaleAttempt,
    StudyExists,
    StudyNotFound,
    TrialFinished,
    TrialNotFound,
)
from farthing.trials import Attempt, Failure, Measurement, Outcome, Rate, State, Suggestion, Trial, rate_of
from farthing.trials.measurement import finite_number
from farthing.validation import spelled_out

SWEPT = -1
"""The sequence of the measurement that `expired` adds: no attempt writes under it."""

_ENDS = (State.DONE, State.FAILED, State.PRUNED)


@dataclass(frozen=True, slots=True)
class Moment:
    """When something happens: `now` is the storage's clock, to show; `elapsed` is the caller's own, to measure with."""

    now: float
    elapsed: float


@dataclass(frozen=True, slots=True)
class Entry:
    """A trial with what only its storage needs to know.

    `retries` is how often it may still be lost and offered again. `paid_until` is when the current attempt began or
    was last measured: the time since then is in no measurement yet. `renewed_at` is when its owner was last heard of.
    Both are on the owner's own monotonic clock. `lease` is for how many seconds it was renewed. `rate` is what a second
    of the current attempt costs, where seconds have a price.
    """

    trial: Trial
    retries: int = 0
    paid_until: float = 0.0
    renewed_at: float = 0.0
    lease: float = 0.0
    rate: float | None = None


def queued(
    number: int,
    suggestion: Suggestion,
    *,
    now: float,
    retries: int = 0,
    tags: Sequence[str] = (),
    overhead: float = 0.0,
    resume_checkpoint: str | None = None,
) -> Entry:
    """A new trial, pending."""
    trial = Trial(
        number=number,
        suggestion=suggestion,
        state=State.PENDING,
        resume_checkpoint=resume_checkpoint,
        overhead=overhead,
        tags=tuple(tags),
        opened_at=now,
    )
    return Entry(trial, retries=retries)


@dataclass(frozen=True, slots=True)
class Claim:
    """A worker of `owner` takes a trial, for `lease` seconds.

    It has `waited` that many seconds for a suggestion, and each second of it costs `rate`, where seconds have a price.
    """

    owner: str
    lease: float
    waited: float = 0.0
    rate: Rate | None = None
    label: str | None = None


def claimed(entry: Entry, claim: Claim, *, at: Moment) -> Entry:
    """A pending trial, now running."""
    waited = entry.trial.waited + claim.waited
    trial = replace(
        entry.trial,
        state=State.RUNNING,
        owner=claim.owner,
        lease_until=at.now + claim.lease,
        waited=waited,
        started_at=at.now,
        labels=_labelled(entry.trial, claim.label),
    )
    return Entry(trial, entry.retries, at.elapsed, at.elapsed, claim.lease, rate_of(claim.rate, trial.params))


def _labelled(trial: Trial, label: str | None) -> tuple[str | None, ...]:
    """One for each attempt, this one's last; nothing as long as no worker had a label."""
    if label is None and not trial.labels:
        return ()
    return (*trial.labels, *[None] * (trial.attempt - 1 - len(trial.labels)), label)


def renewed(entry: Entry, *, lease: float, at: Moment) -> Entry:
    trial = replace(entry.trial, lease_until=at.now + lease)
    return replace(entry, trial=trial, renewed_at=at.elapsed, lease=lease)


def recorded(entry: Entry, attempt: Attempt, measurements: Sequence[Measurement], *, lease: float, at: Moment) -> Entry:
    """A running trial with these measurements. Without a change of its own, they were there before."""
    require_current(entry, attempt)
    points = joined(entry.trial.measurements, stamped(measurements, attempt, now=at.now))
    measured = replace(entry, trial=replace(entry.trial, measurements=points), paid_until=at.elapsed)
    return renewed(measured, lease=lease, at=at)


def closed(entry: Entry, attempt: Attempt, outcome: Outcome, *, now: float) -> Entry:
    """The end of an attempt: of the trial too, unless it is to be tried again."""
    _check_end(outcome)
    _require_may_close(entry, attempt, outcome)
    if not outcome.retry:
        return _finished(entry, attempt, outcome, now=now)
    trial = replace(entry.trial, **_left(entry, attempt, outcome, now=now))
    return _offered_again(replace(entry, trial=trial, retries=max(0, entry.retries - 1)))


def added(entry: Entry, outcome: Outcome) -> Entry:
    """A new trial that ended elsewhere."""
    _check_end(outcome)
    attempt = Attempt(entry.trial.number, entry.trial.attempt)
    return _finished(entry, attempt, outcome, now=entry.trial.opened_at)


def annotated(entry: Entry, *, tags: Sequence[str] | None, comment: str | None) -> Entry:
    trial = entry.trial
    return replace(
        entry,
        trial=replace(
            trial,
            tags=trial.tags if tags is None else tuple(map(spelled_out, tags)),
            comment=trial.comment if comment is None else spelled_out(comment),
        ),
    )


def with_checkpoint(entry: Entry, attempt: Attempt, checkpoint: str) -> Entry:
    require_current(entry, attempt)
    return replace(entry, trial=replace(entry.trial, checkpoint=checkpoint))


def without_checkpoint(entry: Entry) -> Entry:
    return replace(entry, trial=replace(entry.trial, checkpoint=None))


def released(entry: Entry, attempt: Attempt, measurements: Sequence[Measurement], *, at: Moment, charge: bool) -> Entry:
    """A running trial that its owner gave back. With `charge`, what no measurement covers is failed work."""
    require_current(entry, attempt)
    seconds = at.elapsed - entry.paid_until if charge and not measurements else 0.0
    unpaid = _failed_work(attempt.attempt, seconds, entry.rate, at=at.now)
    points = joined(entry.trial.measurements, [*stamped(measurements, attempt, now=at.now), *unpaid])
    return _offered_again(replace(entry, trial=replace(entry.trial, measurements=points)))


def expired(entry: Entry, *, now: float, charge: bool) -> Entry:
    """A running trial whose lease has ended, or whose owner is dead: pending again, or lost.

    With `charge`, the seconds in which its owner was last known to work on it and that no measurement covers are
    written down as failed work. When the end of a lease is noticed makes no difference.
    """
    trial = entry.trial
    ended_at = now if trial.lease_until is None else min(now, trial.lease_until)
    seconds = entry.renewed_at - entry.paid_until if charge else 0.0
    lost = replace(
        trial,
        measurements=joined(trial.measurements, _failed_work(trial.attempt, seconds, entry.rate, at=ended_at)),
        failure=Failure(f"Nothing more was heard of attempt {trial.attempt}."),
        lease_until=None,
    )
    if entry.retries:
        return _offered_again(replace(entry, trial=lost, retries=entry.retries - 1))
    return replace(entry, trial=replace(lost, state=State.LOST, finished_at=ended_at))


def as_read(entry: Entry, *, now: float, charge: bool, has_ended: bool) -> Trial:
    """The trial as its readers see it: one whose lease they know to have ended is no longer running, swept or not."""
    return expired(entry, now=now, charge=charge).trial if has_ended else entry.trial


def require_current(entry: Entry, attempt: Attempt) -> None:
    """Raises unless `attempt` is the one that runs."""
    trial = entry.trial
    if trial.is_finished:
        raise TrialFinished(
            f"A trial has one result, got another for trial {trial.number}, which is {trial.state}. "
            "Ask for a new trial instead."
        )
    if attempt.attempt != trial.attempt or trial.state is not State.RUNNING:
        raise StaleAttempt(
            f"Only the attempt that runs may write, got attempt {attempt.attempt} at trial {trial.number}, whose "
            f"attempt {trial.attempt} is {trial.state}. Stop working on it: it has been offered to others."
        )


def is_same_trial(stored: Trial | None, opened: Trial) -> bool:
    """Whether a stored trial is the one that was opened, in any state since."""
    return stored is not None and (stored.opened_at, stored.suggestion) == (opened.opened_at, opened.suggestion)


def stands_as_claimed(stored: Trial | None, claimed: Trial) -> bool:
    """Whether the claim was written: it is there, or a later attempt is."""
    if stored is None or stored.attempt != claimed.attempt:
        return stored is not None and stored.attempt > claimed.attempt
    return stored.owner == claimed.owner


def stands_as_released(stored: Trial | None, attempt: Attempt) -> bool:
    return stored is None or stored.is_finished or stored.attempt > attempt.attempt


def stands_as_closed(trial: Trial | None, attempt: Attempt, outcome: Outcome) -> bool:
    """Whether the trial is what closing it with this very outcome would have left."""
    if trial is None:
        return False
    if outcome.retry:
        return trial.attempt == attempt.attempt + 1
    return (trial.state, trial.attempt, trial.value) == (outcome.state, attempt.attempt, outcome.value)


def stamped(measurements: Sequence[Measurement], attempt: Attempt, *, now: float) -> list[Measurement]:
    """The measurements as this attempt's, written now."""
    sequences = [point.sequence for point in measurements]
    if len(set(sequences)) < len(sequences) or any(sequence < 0 for sequence in sequences):
        raise InvalidArgument(
            f"The measurements of an attempt must be numbered 0, 1, 2, …, got sequence {sequences}. "
            "Give each a sequence of its own."
        )
    return [replace(point, value=_finite(point.value), attempt=attempt.attempt, time=now) for point in measurements]


def joined(measurements: Sequence[Measurement], new: Iterable[Measurement]) -> tuple[Measurement, ...]:
    """By attempt and sequence; a new one whose place is taken was written before and is left out."""
    points = list(measurements)
    for point in new:
        place = bisect_left(points, _order(point), key=_order)
        if place == len(points) or _order(points[place]) != _order(point):
            points.insert(place, point)
    return tuple(points)


def _check_end(outcome: Outcome) -> None:
    if outcome.state not in _ENDS:
        raise InvalidArgument(
            f"A trial must end as {', '.join(_ENDS)}, got {outcome.state}. Use `release_trial` to give it back."
        )
    if outcome.retry and outcome.state is not State.FAILED:
        raise InvalidArgument(
            f"Only a failed attempt can be tried again, got retry with {outcome.state}. Leave retry out."
        )


def _require_may_close(entry: Entry, attempt: Attempt, outcome: Outcome) -> None:
    """The first result wins, from any attempt; only the running attempt may end the trial otherwise."""
    waits_for_result = not entry.trial.is_finished or entry.trial.state is State.LOST
    if not (outcome.state is State.DONE and waits_for_result and attempt.attempt <= entry.trial.attempt):
        require_current(entry, attempt)


def _left(entry: Entry, attempt: Attempt, outcome: Outcome, *, now: float) -> dict[str, Any]:
    """The fields of a trial that an attempt leaves, for every outcome."""
    return {
        "measurements": joined(entry.trial.measurements, stamped(outcome.measurements, attempt, now=now)),
        "failure": outcome.failure,
        "checkpoint": outcome.checkpoint or entry.trial.checkpoint,
    }


def _finished(entry: Entry, attempt: Attempt, outcome: Outcome, *, now: float) -> Entry:
    trial = replace(
        entry.trial,
        **_left(entry, attempt, outcome, now=now),
        state=outcome.state,
        attempt=attempt.attempt,
        value=_finite(outcome.value),
        finished_at=now,
        lease_until=None,
    )
    return replace(entry, trial=trial)


def _offered_again(entry: Entry) -> Entry:
    trial = replace(entry.trial, state=State.PENDING, attempt=entry.trial.attempt + 1, owner=None, lease_until=None)
    return replace(entry, trial=trial)


def _failed_work(attempt: int, seconds: float, rate: float | None, *, at: float) -> list[Measurement]:
    if seconds <= 0:
        return []
    amount = seconds if rate is None else seconds * rate
    return [Measurement(cost={"failed": amount}, attempt=attempt, sequence=SWEPT, time=at, rate=rate)]


def _order(point: Measurement) -> tuple[int, int]:
    return point.attempt, point.sequence


def _finite(value: float | None) -> float | None:
    return None if value is None else finite_number(value, what="A value")


# ------------------------------------------------------------
# Checks that every storage makes, in the same words.


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


# ------------------------------------------------------------
# The time for which a study has run, without trusting any wall clock.
#
# A study has a time of its own, which passes while at least one run is going. A run *began* at some point of it and has
# lasted *seconds* of its own monotonic clock since, so it has reached the sum of both; the study's time is the furthest
# that a run has reached. If runs overlap, moments count once, because the later one begins where the earlier one is.


@dataclass(frozen=True, slots=True)
class StudyRun:
    """`touched_at` is its last sign of life on the storage's clock; its `lease` is 0 once it has ended."""

    began: float
    seconds: float
    touched_at: float
    lease: float

    @property
    def reached(self) -> float:
        return self.began + self.seconds

    def reached_at(self, now: float) -> float:
        """The study's time that it has reached by now: signs of life come three times per lease, and one may be late.

        This is the one place where the storage's clock counts. A step of that clock just then is worth half a lease.
        """
        silence = now - self.touched_at
        return self.reached + (silence if 0.0 <= silence <= self.lease / 2 else 0.0)


def seconds_covered(runs: Iterable[StudyRun]) -> float:
    return max((run.reached for run in runs), default=0.0)


def next_beginning(runs: Iterable[StudyRun], *, now: float) -> float:
    """The second of its study's time at which a run begins that is started now."""
    return max((run.reached_at(now) for run in runs), default=0.0)


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
    numbers = point.metrics.values()
    yield from (("metric", number) for number in numbers if not isinstance(number, (int, float, type(None))))
    if not _is_finite(point.time):
        yield "time", point.time


def _is_finite(number: object) -> bool:
    return isinstance(number, (int, float)) and math.isfinite(number)
