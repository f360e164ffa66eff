"""The promises of every storage."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from farthing.errors import InvalidArgument
from farthing.fields import Text
from farthing.trials import Attempt, Event, Json, Measurement, Outcome, Problem, Rate, State, Suggestion, Trial


@dataclass(frozen=True)
class StudyRecord:
    """A study as it is stored. `strategy` is its JSON form once resolved; `settings` is what a resume needs to know."""

    name: str
    problem: Problem
    strategy: Json = None
    settings: Mapping[str, Json] = field(default_factory=dict)
    created_at: float = 0.0

    def __post_init__(self) -> None:
        Text().checked(self.name, what="A study's name", advice="Write name='study'.")
        if not (1 <= len(self.name) <= 200 and self.name.isprintable()):
            raise InvalidArgument(
                f"A study's name must be 1 to 200 printable characters, got {self.name[:60]!r}. "
                "Choose one that can be typed, such as digits-2."
            )


@dataclass(frozen=True)
class StudySummary:
    """A line of a listing: trials by state, the best value of a finished trial at any fidelity, what was spent."""

    record: StudyRecord
    trials: Mapping[State, int]
    best_value: float | None
    cost: float


@dataclass(frozen=True)
class Changes:
    """The changes since a version: changed trials as a whole, and events."""

    version: int
    trials: Sequence[Trial] = ()
    events: Sequence[Event] = ()


@dataclass(frozen=True)
class Leaders:
    """Of the trials that are done with a value: the best at the highest fidelity that any has, and at full fidelity.

    `lineage` is the chain that led to the first of them, which stands at its end.
    """

    lineage: Sequence[Trial]
    full: Trial | None


@runtime_checkable
class FindsLeaders(Protocol):
    """A storage that finds the best by itself: one that would have to read every trial for it need not."""

    def leaders(self, study: str, problem: Problem) -> Leaders | None:
        """None if no trial is done with a value. Of equally good trials, the first."""
        ...


@dataclass(frozen=True)
class TrialLines:
    """The changes since a version, a line for each changed trial, by number.

    A line is number, state, value, cost, when a worker took it, when it was opened and finished, the trial that it
    continues, its owner, and its fidelity as JSON.
    """

    version: int
    lines: Sequence[tuple[Any, ...]] = ()


@runtime_checkable
class ReadsOutlines(Protocol):
    """A storage whose studies can be looked at from outside at a price that does not grow with their curves."""

    def lines(self, study: str, *, since: int = 0) -> TrialLines:
        """The trials that changed after version `since`, and all in flight, as they are stored."""
        ...

    def trials(self, study: str, numbers: Sequence[int]) -> list[Trial]:
        """Some trials with their measurements, as they are stored."""
        ...

    def events(self, study: str) -> list[Event]:
        """All events of the study, in their order."""
        ...

    def count_measurements(self, study: str) -> int: ...

    def count_noted(self, study: str, word: str) -> int:
        """The number of trials whose note has that word."""
        ...

    def versions(self) -> Mapping[str, int]:
        """The version of each study by its name: what changed since a look is known without reading any."""
        ...

    def results(self, study: str) -> list[float]:
        """The values of the trials that are done, in the order in which they ended."""
        ...


Payload = Callable[[int], Json]
"""From the number of trials that a study has to what an event says."""

Choice = Callable[[Changes], tuple[Sequence[Suggestion], float]]
"""From the changes since a version to suggestions and the seconds that making them took."""


@runtime_checkable
class OpensInTurn(Protocol):
    """A storage that keeps others from opening trials while suggestions are made or chosen, so that none is in vain."""

    def open_in_turn(
        self,
        study: str,
        choose: Choice,
        *,
        since: int,
        owner: str | None,
        lease: float,
        retries: int = 0,
        waited: float = 0.0,
        rate: Rate | None = None,
        label: str | None = None,
    ) -> list[Trial]:
        """Opens what `choose` suggests for the history as it is, of which version `since` is known.

        The rest is as for `open_trials`. Everyone else who would change the study waits meanwhile, so `choose` must be
        quick. It may be called again, as every transaction may.
        """
        ...


@runtime_checkable
class CreatesInTurn(Protocol):
    """A storage in which one study after the other is created in this way, so that a sum over all of them holds."""

    def create_in_turn(
        self, record: StudyRecord, kind: str, payload: Json, *, admit: Callable[[], object]
    ) -> StudyRecord:
        """Creates a study with its first event, unless `admit` raises, which may read the storage and is to be quick.

        Raises `StudyExists` when the name is taken. `admit` may be called again, as every transaction may.
        """
        ...


class Storage(Protocol):
    """Keeps studies. Each method is one transaction: it happened wholly, and durably, or not at all.

    *Versions.* Each change of a study's trials or events raises its version by one; a reader that has seen version v
    and asks for `history(since=v)` gets everything that came after, at a price that depends on what came, not on the
    length of the study. Renewing a lease is not a change.

    *Numbers.* Trials are numbered 0, 1, 2, … in the order in which they were opened, without gaps, by all
    processes together.

    *Leases.* A running trial belongs to its owner until its lease ends; `record` and `renew` extend it, also when it
    has ended and no process has noticed. It has ended for a storage object that has itself seen no renewal for the
    length of the lease, by its own monotonic clock: it looks when `sweep`, or `history` with `running`, is called. A
    trial whose lease has ended is read as `sweep` will store it: pending with the next attempt number, or lost when no
    retries are left. If the study's cost is measured, the seconds between the attempt's last measurement (or its
    start) and its last renewal are then written down as failed work, by the owner's monotonic clock.

    *Clocks.* Times that are stored are the storage's clock, to be shown. Nothing is decided by them: setting that
    clock, or that of a machine, ends no lease and changes no duration.

    *Fencing.* Only the current attempt may `record`; an older one gets `StaleAttempt`. The first result wins: an older
    attempt may still close the trial as done as long as no other has, even when it was given up as lost, and later
    results get `TrialFinished`. The measurements of an attempt are told apart by their `sequence`, from 0:
    recording one twice changes nothing.

    *Checkpoints.* A trial that resumes another takes hold of its checkpoint in the transaction that opens it;
    `retire_checkpoint` refuses while a pending or running trial holds it.

    Storages may be used from several threads and, except for the one in memory, from several processes.
    """

    @property
    def folder(self) -> Path | None:
        """The folder for files that belong to the studies; None if the storage has no place of its own."""
        ...

    def create_study(self, record: StudyRecord) -> StudyRecord:
        """Raises `StudyExists` when the name is taken."""
        ...

    def load_study(self, name: str) -> StudyRecord:
        """Raises `StudyNotFound`."""
        ...

    def update_study(self, name: str, *, strategy: Json = None, settings: Mapping[str, Json] | None = None) -> None:
        """Replaces the strategy, and the settings named in `settings`; what is left out stays."""
        ...

    def list_studies(self) -> list[StudySummary]:
        """By name. Trials count as they are stored: as running until they are swept."""
        ...

    def delete_study(self, name: str) -> None:
        """With all its trials. Raises `StudyNotFound`."""
        ...

    def open_trials(
        self,
        study: str,
        suggestions: Sequence[Suggestion],
        *,
        owner: str | None,
        lease: float,
        retries: int = 0,
        expected_trials: int | None = None,
        overhead: float = 0.0,
        waited: float = 0.0,
        rate: Rate | None = None,
        label: str | None = None,
    ) -> list[Trial]:
        """Opens a running trial for each suggestion; without an owner a pending one, for the process that claims it.

        Refuses with `HistoryMoved` when the study no longer has `expected_trials` trials: suggestions made for a
        number are good for that number only. `overhead`, the seconds of suggesting, is shared among them. `retries` is
        how often each may be lost and offered again. `waited` is the seconds for which a worker waited for each, and
        `rate` what a second of it costs, where seconds have a price. `label` is that of the worker, if it has one.
        """
        ...

    def enqueue_trial(self, study: str, suggestion: Suggestion, *, retries: int = 0, tags: Sequence[str] = ()) -> Trial:
        """Opens a pending trial, for the process that claims it first."""
        ...

    def add_trial(self, study: str, suggestion: Suggestion, outcome: Outcome, *, tags: Sequence[str] = ()) -> Trial:
        """Opens and closes a trial whose result was obtained elsewhere."""
        ...

    def claim_trial(
        self,
        study: str,
        *,
        owner: str,
        lease: float,
        number: int | None = None,
        waited: float = 0.0,
        rate: Rate | None = None,
        label: str | None = None,
    ) -> Trial | None:
        """The oldest pending trial, now running for `owner`; None when there is none. No two callers get the same.

        With a `number`, only the trial of that number is claimed. A trial whose lease was seen to end is swept first,
        so that it can be claimed like any other.
        """
        ...

    def record(self, study: str, attempt: Attempt, measurements: Sequence[Measurement], *, lease: float) -> None:
        """Adds measurements to a running trial, those that it does not have yet, and renews its lease."""
        ...

    def renew(self, study: str, attempts: Sequence[Attempt], *, lease: float) -> list[Attempt]:
        """Renews leases; returns those attempts that are still current. The others have been taken over or finished."""
        ...

    def close_trial(self, study: str, attempt: Attempt, outcome: Outcome) -> Trial:
        """Ends a trial, or with `retry` puts it back to pending with the next attempt number, one retry used up."""
        ...

    def release_trial(self, study: str, attempt: Attempt, *, measurements: Sequence[Measurement] = ()) -> None:
        """Gives a running trial back unfinished: pending, next attempt number, no retry used up.

        If cost is measured and no measurements are given, the seconds since its last one are failed work.
        """
        ...

    def sweep(self, study: str, *, dead: Collection[str] = ()) -> list[int]:
        """Ends the leases of owners that are known to be dead, and all that were seen to run out.

        Returns the numbers of the trials that are pending again, or lost, in consequence.
        """
        ...

    def save_checkpoint(self, study: str, attempt: Attempt, checkpoint: str) -> None:
        """Notes the name of a checkpoint that a running trial has committed; its next attempt may start from it."""
        ...

    def retire_checkpoint(self, study: str, number: int) -> bool:
        """Forgets a finished trial's checkpoint, so that its files may go; False while a trial in flight holds it.

        In flight is what has not been swept or closed: an owner that is late may still need it.
        """
        ...

    def annotate(
        self, study: str, number: int, *, tags: Sequence[str] | None = None, comment: str | None = None
    ) -> None:
        """Replaces a trial's tags or comment."""
        ...

    def log_event(self, study: str, kind: str, payload: "Json | Payload") -> None:
        """Adds an event to the history; one whose payload depends on the number of trials is counted at that moment."""
        ...

    def history(self, study: str, *, since: int = 0, running: bool = True) -> Changes:
        """All that changed after version `since` and, with `running`, every trial that is running.

        Without `running` the price does not depend on how many run. Readers ask for them several times per lease,
        because leases are renewed and end without a change of the history.
        """
        ...

    def start_run(self, study: str, *, lease: float) -> int:
        """Notes that a run began; returns its number, for `touch_run` at this same object, several times per lease."""
        ...

    def touch_run(self, study: str, run: int, *, ends: bool = False) -> None:
        """Notes that the run is still going, or that it `ends`."""
        ...

    def seconds_run(self, study: str) -> float:
        """Seconds with at least one run going, by the runs' own monotonic clocks, up to their last touch."""
        ...

    def runs_going(self, study: str) -> int:
        """The number of runs that have begun, not ended, and were touched within their lease, by the storage's clock.

        Only an estimate of how many work on the study: nothing but the size of a batch may depend on it.
        """
        ...

    def claim_suggesting(self, study: str, *, owner: str, lease: float, dead: Collection[str] = ()) -> str:
        """Asks for the right to suggest for all, or renews it; returns who holds it for now.

        It is free if nobody holds it, if its holder is among the `dead`, or if this storage object has seen no renewal
        for the length of its lease. It saves work and decides nothing: `expected_trials` keeps two who believe that
        they hold it from opening trials for the same numbers.
        """
        ...

    def yield_suggesting(self, study: str, *, owner: str) -> None:
        """Gives the right back, if `owner` holds it."""
        ...

    def now(self) -> float:
        """The storage's clock, in seconds since 1970."""
        ...

    def check(self) -> list[str]:
        """Defects of the stored data, in words; empty if there are none."""
        ...

    def close(self) -> None:
        """Lets go of files and connections."""
        ...


def summary(record: StudyRecord, trials: Sequence[Trial]) -> StudySummary:
    values = [trial.value for trial in trials if trial.state is State.DONE and trial.value is not None]
    return StudySummary(
        record=record,
        trials=Counter(trial.state for trial in trials),
        best_value=best(record.problem, values),
        cost=math.fsum(trial.cost for trial in trials),
    )


def best(problem: Problem, values: Sequence[float]) -> float | None:
    if not values or not problem.is_simple:  # of several values none is the best, and a limit may exclude it
        return None
    return min(values) if problem.minimize else max(values)
