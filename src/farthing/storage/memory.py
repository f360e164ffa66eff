"""A storage that lives and dies with its process: the reference for what the others do."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import RLock

from farthing.costs import Clock, SystemClock
from farthing.storage import lifecycle
from farthing.storage.forking import held
from farthing.storage.json_text import as_stored, stored_record, stored_suggestion
from farthing.storage.lifecycle import (
    Claim,
    Entry,
    Moment,
    StudyRun,
    broken_invariants,
    check_expected_trials,
    check_resume_from,
    next_beginning,
    seconds_covered,
    study_exists,
    study_not_found,
    trial_not_found,
    unknown_run,
)
from farthing.storage.storage import Changes, Choice, Payload, StudyRecord, StudySummary, summary
from farthing.trials import Attempt, Event, Json, Measurement, Outcome, Rate, State, Suggestion, Trial


@dataclass
class _Study:
    """`changed_at` has the version at which each trial last changed, the latest change last."""

    record: StudyRecord
    version: int = 0
    entries: list[Entry] = field(default_factory=list)
    changed_at: dict[int, int] = field(default_factory=dict)
    pending: set[int] = field(default_factory=set)
    running: set[int] = field(default_factory=set)
    continued_by: dict[int, set[int]] = field(default_factory=dict)
    events: list[tuple[int, Event]] = field(default_factory=list)
    runs: list[StudyRun] = field(default_factory=list)
    started: list[float] = field(default_factory=list)
    suggester: Claim | None = None
    suggester_renewed_at: float = 0.0

    @property
    def charges(self) -> bool:
        return self.record.problem.measures_cost

    def entry(self, number: int) -> Entry:
        if not 0 <= number < len(self.entries):
            raise trial_not_found(number, trials=len(self.entries))
        return self.entries[number]

    def checkpoint_for(self, suggestion: Suggestion) -> str | None:
        """The checkpoint of the trial that the suggestion continues."""
        if suggestion.resume_from is None:
            return None
        check_resume_from(suggestion.resume_from, trials=len(self.entries))
        return self.entries[suggestion.resume_from].trial.checkpoint

    def put(self, *entries: Entry) -> None:
        """One change of the history: these entries are new, or take the place of those of their numbers."""
        self.version += 1
        for entry in entries:
            self._place(entry)
            self.changed_at.pop(entry.trial.number, None)
            self.changed_at[entry.trial.number] = self.version

    def put_quietly(self, entry: Entry) -> None:
        """A renewed lease is not a change of the history."""
        self._place(entry)

    def _place(self, entry: Entry) -> None:
        trial = entry.trial
        self.entries[trial.number : trial.number + 1] = [entry]
        for state, numbers in ((State.PENDING, self.pending), (State.RUNNING, self.running)):
            if trial.state is state:
                numbers.add(trial.number)
            else:
                numbers.discard(trial.number)
        if trial.resume_from is not None:
            by = self.continued_by.setdefault(trial.resume_from, set())
            (by.discard if trial.is_finished else by.add)(trial.number)

    def entries_of(self, numbers: Collection[int]) -> list[Entry]:
        return [self.entries[number] for number in sorted(numbers)]

    def is_held(self, number: int) -> bool:
        """Whether a trial in flight is this one, or continues it."""
        return number in self.pending or number in self.running or bool(self.continued_by.get(number))

    def expired(self, *, at: Moment, dead: Collection[str] = ()) -> list[Entry]:
        """The next state of the trials whose leases have ended or whose owners are dead."""
        running = self.entries_of(self.running)
        ended = (entry for entry in running if _has_ended(entry, at) or entry.trial.owner in dead)
        return [lifecycle.expired(entry, now=at.now, charge=self.charges) for entry in ended]

    def read(self, numbers: Collection[int], *, at: Moment) -> list[Trial]:
        return [
            lifecycle.as_read(entry, now=at.now, charge=self.charges, has_ended=_has_ended(entry, at))
            for entry in self.entries_of(numbers)
        ]

    def changed_after(self, version: int) -> set[int]:
        """Numbers of the trials that changed after `version`."""
        numbers: set[int] = set()
        for number, changed_at in reversed(self.changed_at.items()):
            if changed_at <= version:
                break
            numbers.add(number)
        return numbers

    def events_after(self, version: int) -> list[Event]:
        later: list[Event] = []
        for happened_at, event in reversed(self.events):
            if happened_at <= version:
                break
            later.append(event)
        return later[::-1]


class MemoryStorage:
    """Keeps studies in this process only. Safe to use from several threads."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._lock = RLock()
        self._studies: dict[str, _Study] = {}

    @property
    def folder(self) -> None:
        return None

    @contextmanager
    def _study(self, name: str) -> Iterator[_Study]:
        with held(self._lock):
            if name not in self._studies:
                raise study_not_found(name)
            yield self._studies[name]

    def create_study(self, record: StudyRecord) -> StudyRecord:
        with held(self._lock):
            if record.name in self._studies:
                raise study_exists(record.name)
            stored = stored_record(record, created_at=self.now())
            self._studies[record.name] = _Study(stored)
            return stored

    def create_in_turn(
        self, record: StudyRecord, kind: str, payload: Json, *, admit: Callable[[], object]
    ) -> StudyRecord:
        with held(self._lock):
            stored = self.create_study(record)
            try:
                admit()
                self.log_event(record.name, kind, payload)
            except BaseException:
                del self._studies[record.name]
                raise
            return stored

    def load_study(self, name: str) -> StudyRecord:
        with self._study(name) as study:
            return study.record

    def update_study(self, name: str, *, strategy: Json = None, settings: Mapping[str, Json] | None = None) -> None:
        with self._study(name) as study:
            if strategy is not None:
                study.record = replace(study.record, strategy=as_stored(strategy, what="A strategy"))
            if settings:
                named = as_stored(dict(settings), what="Settings")
                study.record = replace(study.record, settings={**study.record.settings, **named})

    def list_studies(self) -> list[StudySummary]:
        with held(self._lock):
            studies = [self._studies[name] for name in sorted(self._studies)]
            return [summary(study.record, [entry.trial for entry in study.entries]) for study in studies]

    def delete_study(self, name: str) -> None:
        with self._study(name):
            del self._studies[name]

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
        if not suggestions:
            return []
        with self._study(study) as found:
            check_expected_trials(expected_trials, trials=len(found.entries))
            at = self._moment()
            queued = _queued(found, suggestions, now=at.now, retries=retries, overhead=overhead / len(suggestions))
            claim = None if owner is None else Claim(owner, lease, waited, rate, label)
            entries = [entry if claim is None else lifecycle.claimed(entry, claim, at=at) for entry in queued]
            found.put(*entries)
            return [entry.trial for entry in entries]

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
        with self._study(study):
            suggestions, overhead = choose(self.history(study, since=since, running=False))
            return self.open_trials(
                study,
                suggestions,
                owner=owner,
                lease=lease,
                retries=retries,
                overhead=overhead,
                waited=waited,
                rate=rate,
                label=label,
            )

    def enqueue_trial(self, study: str, suggestion: Suggestion, *, retries: int = 0, tags: Sequence[str] = ()) -> Trial:
        with self._study(study) as found:
            (entry,) = _queued(found, [suggestion], now=self.now(), retries=retries, tags=tags)
            found.put(entry)
            return entry.trial

    def add_trial(self, study: str, suggestion: Suggestion, outcome: Outcome, *, tags: Sequence[str] = ()) -> Trial:
        with self._study(study) as found:
            (entry,) = _queued(found, [suggestion], now=self.now(), tags=tags)
            ended = lifecycle.added(entry, outcome)
            found.put(ended)
            return ended.trial

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
        with self._study(study) as found:
            at = self._moment()
            swept = found.expired(at=at)
            pending = [entry for entry in [*found.entries_of(found.pending), *swept] if not entry.trial.is_finished]
            wanted = [entry for entry in pending if number is None or entry.trial.number == number]
            oldest = sorted(wanted, key=lambda entry: entry.trial.number)[:1]
            claim = Claim(owner, lease, waited, rate, label)
            claimed = [lifecycle.claimed(entry, claim, at=at) for entry in oldest]
            if swept or claimed:
                found.put(*swept, *claimed)
            return claimed[0].trial if claimed else None

    def record(self, study: str, attempt: Attempt, measurements: Sequence[Measurement], *, lease: float) -> None:
        with self._study(study) as found:
            before = found.entry(attempt.number)
            after = lifecycle.recorded(before, attempt, measurements, lease=lease, at=self._moment())
            if len(after.trial.measurements) > len(before.trial.measurements):
                found.put(after)
            else:
                found.put_quietly(lifecycle.renewed(before, lease=lease, at=self._moment()))

    def renew(self, study: str, attempts: Sequence[Attempt], *, lease: float) -> list[Attempt]:
        with self._study(study) as found:
            current = [attempt for attempt in attempts if _runs(found, attempt)]
            for attempt in current:
                found.put_quietly(lifecycle.renewed(found.entries[attempt.number], lease=lease, at=self._moment()))
            return current

    def close_trial(self, study: str, attempt: Attempt, outcome: Outcome) -> Trial:
        with self._study(study) as found:
            entry = lifecycle.closed(found.entry(attempt.number), attempt, outcome, now=self.now())
            found.put(entry)
            return entry.trial

    def release_trial(self, study: str, attempt: Attempt, *, measurements: Sequence[Measurement] = ()) -> None:
        with self._study(study) as found:
            entry = found.entry(attempt.number)
            found.put(lifecycle.released(entry, attempt, measurements, at=self._moment(), charge=found.charges))

    def sweep(self, study: str, *, dead: Collection[str] = ()) -> list[int]:
        with self._study(study) as found:
            swept = found.expired(at=self._moment(), dead=dead)
            if swept:
                found.put(*swept)
            return [entry.trial.number for entry in swept]

    def save_checkpoint(self, study: str, attempt: Attempt, checkpoint: str) -> None:
        with self._study(study) as found:
            entry = found.entry(attempt.number)
            found.put(lifecycle.with_checkpoint(entry, attempt, checkpoint))

    def retire_checkpoint(self, study: str, number: int) -> bool:
        with self._study(study) as found:
            entry = found.entry(number)
            if found.is_held(number):
                return False
            if entry.trial.checkpoint is not None:
                found.put(lifecycle.without_checkpoint(entry))
            return True

    def annotate(
        self, study: str, number: int, *, tags: Sequence[str] | None = None, comment: str | None = None
    ) -> None:
        with self._study(study) as found:
            entry = found.entry(number)
            found.put(lifecycle.annotated(entry, tags=tags, comment=comment))

    def log_event(self, study: str, kind: str, payload: Json | Payload) -> None:
        with self._study(study) as found:
            said = payload(len(found.entries)) if callable(payload) else payload
            event = Event(kind, as_stored(said, what="An event's payload"), time=self.now())
            found.put()
            found.events.append((found.version, event))

    def history(self, study: str, *, since: int = 0, running: bool = True) -> Changes:
        with self._study(study) as found:
            numbers = found.changed_after(since) | (found.running if running else set())
            trials = found.read(numbers, at=self._moment())
            return Changes(found.version, trials, found.events_after(since))

    def start_run(self, study: str, *, lease: float) -> int:
        with self._study(study) as found:
            at = self._moment()
            found.runs.append(StudyRun(next_beginning(found.runs, now=at.now), 0.0, at.now, lease))
            found.started.append(at.elapsed)
            return len(found.runs)

    def touch_run(self, study: str, run: int, *, ends: bool = False) -> None:
        with self._study(study) as found:
            if not 1 <= run <= len(found.runs):
                raise unknown_run(run)
            before, at = found.runs[run - 1], self._moment()
            seconds, lease = at.elapsed - found.started[run - 1], 0.0 if ends else before.lease
            found.runs[run - 1] = replace(before, seconds=seconds, touched_at=at.now, lease=lease)

    def seconds_run(self, study: str) -> float:
        with self._study(study) as found:
            return seconds_covered(found.runs)

    def runs_going(self, study: str) -> int:
        with self._study(study) as found:
            now = self.now()
            return sum(run.lease > 0.0 and run.touched_at + run.lease >= now for run in found.runs)

    def claim_suggesting(self, study: str, *, owner: str, lease: float, dead: Collection[str] = ()) -> str:
        with self._study(study) as found:
            held = found.suggester
            if held is not None and held.owner != owner and held.owner not in dead and not self._is_silent(found, held):
                return held.owner
            found.suggester, found.suggester_renewed_at = Claim(owner, lease), self._clock.elapsed()
            return owner

    def _is_silent(self, study: _Study, held: Claim) -> bool:
        return self._clock.elapsed() - study.suggester_renewed_at >= held.lease

    def yield_suggesting(self, study: str, *, owner: str) -> None:
        with self._study(study) as found:
            if found.suggester is not None and found.suggester.owner == owner:
                found.suggester = None

    def now(self) -> float:
        return self._clock.now()

    def _moment(self) -> Moment:
        return Moment(self._clock.now(), self._clock.elapsed())

    def check(self) -> list[str]:
        with held(self._lock):
            return [
                problem
                for study in self._studies.values()
                for problem in broken_invariants(study.record.name, [entry.trial for entry in study.entries])
            ]

    def close(self) -> None:
        """Does nothing: a closed storage in memory can still be read."""


def _queued(
    study: _Study,
    suggestions: Sequence[Suggestion],
    *,
    now: float,
    retries: int = 0,
    tags: Sequence[str] = (),
    overhead: float = 0.0,
) -> list[Entry]:
    """New trials for the suggestions, with the next numbers."""
    return [
        lifecycle.queued(
            number,
            stored_suggestion(suggestion),
            now=now,
            retries=retries,
            tags=tags,
            overhead=overhead,
            resume_checkpoint=study.checkpoint_for(suggestion),
        )
        for number, suggestion in enumerate(suggestions, start=len(study.entries))
    ]


def _runs(study: _Study, attempt: Attempt) -> bool:
    if not 0 <= attempt.number < len(study.entries):
        return False
    trial = study.entries[attempt.number].trial
    return trial.state is State.RUNNING and trial.attempt == attempt.attempt


def _has_ended(entry: Entry, at: Moment) -> bool:
    """Whether its lease has: every renewal goes through this object, on the one clock of this process."""
    return entry.trial.state is State.RUNNING and at.elapsed - entry.renewed_at >= entry.lease
