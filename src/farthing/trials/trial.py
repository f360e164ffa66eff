"""Everything that runs is a trial."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

from farthing.scalars import as_int
from farthing.trials.measurement import Measurement, Payments, kept_rounds, payments, savings, total
from farthing.trials.suggestion import Json, Params, Suggestion
from farthing.validation import spelled_out


class State(StrEnum):
    """`failed`: the work was seen to fail. `lost`: its fate is not known. `pruned`: it chose to stop."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    LOST = "lost"
    PRUNED = "pruned"

    @property
    def is_finished(self) -> bool:
        return self not in IN_FLIGHT


IN_FLIGHT = (State.PENDING, State.RUNNING)
NO_LABEL = "on-demand"
"""The label of workers that have none, on the bill of a study in which some have one."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt had no result. Lone surrogates in an exception's text are spelled out as `\\ud83d`."""

    reason: str
    traceback: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", spelled_out(self.reason))
        object.__setattr__(self, "traceback", spelled_out(self.traceback))


@dataclass(frozen=True)
class Trial:
    """A suggestion, its measurements and its state. Times are seconds since 1970 on the storage's clock.

    `value` is the result; `checkpoint` names the checkpoint that the trial left; `resume_checkpoint` the one it
    started with. `overhead` is the seconds it took to suggest it, and `waited` those for which free workers waited for
    the suggestion. `started_at` is when a worker took it, the last one of several. `attempt` counts from 1 and fences
    off older attempts at the same trial. `labels` are those of the workers of its attempts, where one had any.
    """

    number: int
    suggestion: Suggestion
    state: State
    attempt: int = 1
    measurements: Sequence[Measurement] = ()
    value: float | None = None
    failure: Failure | None = None
    checkpoint: str | None = None
    resume_checkpoint: str | None = None
    overhead: float = 0.0
    owner: str | None = None
    tags: tuple[str, ...] = ()
    comment: str = ""
    opened_at: float = 0.0
    finished_at: float | None = None
    lease_until: float | None = None
    waited: float = 0.0
    started_at: float | None = None
    labels: tuple[str | None, ...] = ()

    def __repr__(self) -> str:
        value = "" if self.value is None else f", value={self.value:.6g}"
        return f"Trial({self.number}, {self.state}{value}, cost={self.cost:.4g}, params={dict(self.params)})"

    @property
    def params(self) -> Params:
        return self.suggestion.params

    @property
    def fidelity(self) -> Mapping[str, float]:
        return self.suggestion.fidelity

    @property
    def resume_from(self) -> int | None:
        return self.suggestion.resume_from

    @property
    def note(self) -> Json:
        return self.suggestion.note

    @property
    def member(self) -> int | None:
        """The member of a population that it trains, if the strategy's note names one."""
        return as_int(noted(self.note).get("member"))

    @property
    def is_finished(self) -> bool:
        return self.state not in IN_FLIGHT

    @property
    def began_at(self) -> float:
        """When work on it began: before a worker took it, when it was opened."""
        return self.opened_at if self.started_at is None else self.started_at

    @cached_property
    def points(self) -> tuple[Measurement, ...]:
        """The measured curve: of points in one place the last one, in the order of their places."""
        latest = {point.place: point for point in self.measurements if point.value is not None}
        return tuple(sorted(latest.values(), key=_along_the_curve))

    @cached_property
    def costs(self) -> dict[str, float]:
        """The cost by kind. The cost of an attempt without a result is `failed` work, of every kind.

        The rounds of an online run that a later attempt went on from are not: they were used.
        """
        paid = payments(self.measurements)
        wasted = self.state in (State.FAILED, State.LOST)
        if not wasted and paid.are_all_measured_in(self.attempt):
            return total(paid.costs)
        is_of_one_attempt = all(attempt == self.attempt for attempt in paid.attempts)
        used = set() if wasted or is_of_one_attempt else set(kept_rounds(self.measurements))
        return total(
            cost if not wasted and (attempt == self.attempt or at in used) else {"failed": sum(cost.values())}
            for at, attempt, cost in _counted(paid)
        )

    @property
    def costs_by_label(self) -> dict[str, float]:
        """The cost by the label of the worker that it was paid for."""
        if not any(self.labels):
            return {NO_LABEL: self.cost}
        labels = dict(enumerate(self.labels, start=1))
        return total(
            {labels.get(attempt) or NO_LABEL: sum(cost.values())}
            for _, attempt, cost in _counted(payments(self.measurements))
        )

    @cached_property
    def cost(self) -> float:
        return sum(self.costs.values())

    @cached_property
    def saved(self) -> dict[str, float]:
        """Savings by reason, as the work reported them."""
        return total(savings(self.measurements))


def _counted(paid: Payments) -> Iterator[tuple[int, int, Mapping[str, float]]]:
    """Position, attempt and cost of what counts: what was measured in an attempt that charged does not."""
    charged = {attempt for attempt, is_charged in zip(paid.attempts, paid.charged, strict=True) if is_charged}
    for at, (attempt, is_charged, cost) in enumerate(zip(*paid, strict=True)):
        if cost and (is_charged or attempt not in charged):
            yield at, attempt, cost


def _along_the_curve(point: Measurement) -> tuple[tuple[float, ...], int, int]:
    return tuple(point.fidelity.values()), point.step or 0, point.sequence


# ------------------------------------------------------------
# How an attempt at a trial ended.


@dataclass(frozen=True, slots=True)
class Attempt:
    """Names a trial and the attempt at it that writes: the fencing number."""

    number: int
    attempt: int


@dataclass(frozen=True)
class Outcome:
    """The end of an attempt: done, failed or pruned.

    `measurements` are recorded with it, the value's own among them; `checkpoint` names the checkpoint that it left.
    `retry` puts a failed trial back to pending.
    """

    state: State
    value: float | None = None
    measurements: Sequence[Measurement] = ()
    failure: Failure | None = None
    checkpoint: str | None = None
    retry: bool = False


# ------------------------------------------------------------
# What notes on trials say, whoever wrote them: it is read here, so that a word means one thing everywhere.


ADDED = "added"
"""In the note of a trial whose result was obtained elsewhere."""

THETA = "theta"
"""In the note of a trial that a model chose: the hyperparameters of the model."""


def noted(note: Json) -> Mapping[str, Any]:
    """The note by its words; nothing if a strategy wrote something else than a mapping."""
    return note if isinstance(note, dict) else {}


def is_added(trial: Trial) -> bool:
    return ADDED in noted(trial.note)


def is_by_model(trial: Trial) -> bool:
    return THETA in noted(trial.note)


def reason_of(trial: Trial) -> str:
    """The strategy's reason for its choice, if it gives one."""
    return str(noted(trial.note).get("why", ""))
