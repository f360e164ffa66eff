"""A storage in a SQLite file or a PostgreSQL database."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

from sqlalchemy import Connection, Executable
from sqlalchemy.exc import IntegrityError

from farthing.costs import Clock, SystemClock
from farthing.errors import StorageError
from farthing.storage import engines, lifecycle, rows, schema, statements
from farthing.storage.checking import found_faults
from farthing.storage.json_text import from_text, stored_record, stored_suggestion, to_text
from farthing.storage.lifecycle import (
    Claim,
    Entry,
    StudyRun,
    check_expected_trials,
    next_beginning,
    seconds_covered,
    study_exists,
    study_not_found,
    unknown_run,
)
from farthing.storage.listing import leaders, read_lines, read_trials, summaries
from farthing.storage.reading import HistoryReader
from farthing.storage.storage import Changes, Choice, Leaders, Payload, StudyRecord, StudySummary, TrialLines
from farthing.storage.study_rows import NothingChanged, StudyRows
from farthing.storage.transactions import Transactions
from farthing.storage.watching import HolderWatch, LeaseWatch, Renewal
from farthing.trials import Attempt, Event, Json, Measurement, Outcome, Problem, Rate, Suggestion, Trial, noted

Result = TypeVar("Result")
Steps = Callable[[StudyRows], Result]
Verdict = Callable[[StudyRows, Result], bool]


class SqlStorage:
    """Keeps studies in a database, for any number of threads and processes.

    `address` is a `sqlite:///` or `postgresql://` URL or the path of a SQLite file; a missing database file and missing
    tables are created. Every change is stamped by the database's clock unless another is given. A server
    that goes away is waited for, for up to `patience` seconds.
    """

    def __init__(self, address: str | Path, *, clock: Clock | None = None, patience: float = 60.0) -> None:
        self._clock = clock
        self._watch = LeaseWatch(clock or SystemClock())
        self._holders = HolderWatch(clock or SystemClock())
        self._database = Transactions(
            engines.database_url(address), patience=patience, on_return=self._watch.begin_again
        )
        self._histories = HistoryReader(self._watch, self._database.look)
        self._started: dict[tuple[str, int], float] = {}
        try:
            schema.prepare(self._database)
        except BaseException:
            self.close()
            raise

    @property
    def folder(self) -> Path | None:
        """Beside a SQLite file; a server's disk is not for our files."""
        return self._database.folder

    # Studies

    def create_study(self, record: StudyRecord) -> StudyRecord:
        return self._database.write(lambda connection: self._created(connection, record), took_effect=_is_created)

    def create_in_turn(
        self, record: StudyRecord, kind: str, payload: Json, *, admit: Callable[[], object]
    ) -> StudyRecord:
        def create(connection: Connection) -> StudyRecord:
            engines.lock_creation(connection)
            stored = self._created(connection, record)
            found = StudyRows.changed(connection, record.name, clock=self._clock)
            event = rows.event_row(Event(kind, payload, time=found.now))
            found.insert(statements.INSERT_EVENT, {**event, "version": found.version})
            admit()
            return stored

        return self._database.write(create, took_effect=_is_created)

    def _created(self, connection: Connection, record: StudyRecord) -> StudyRecord:
        stored = stored_record(record, created_at=self._now(connection))
        try:
            connection.execute(statements.CREATE_STUDY, rows.study_row(stored))
        except IntegrityError:
            raise study_exists(record.name) from None
        return stored

    def load_study(self, name: str) -> StudyRecord:
        found = self._database.look(lambda connection: _load(connection, name))
        if found is None:
            raise study_not_found(name)
        return found

    def update_study(self, name: str, *, strategy: Json = None, settings: Mapping[str, Json] | None = None) -> None:
        def update(connection: Connection) -> None:
            StudyRows.locked(connection, name, clock=self._clock)
            stored = rows.study_record(connection.execute(statements.LOAD_STUDY, {"name": name}).one())
            updated = replace(
                stored,
                strategy=stored.strategy if strategy is None else strategy,
                settings={**stored.settings, **(settings or {})},
            )
            connection.execute(statements.UPDATE_STUDY, {"this_name": name, **rows.study_row(updated)})

        self._database.write(update)

    def list_studies(self) -> list[StudySummary]:
        return self._database.read(summaries)

    def delete_study(self, name: str) -> None:
        def delete(connection: Connection) -> int:
            return connection.execute(statements.DELETE_STUDY, {"name": name}).rowcount

        if self._database.write(delete, took_effect=lambda connection, _: _load(connection, name) is None) == 0:
            raise study_not_found(name)

    # Opening trials

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
        claim = None if owner is None else Claim(owner, lease, waited, rate, label)

        def open_all(found: StudyRows) -> list[Trial]:
            check_expected_trials(expected_trials, trials=found.trials - len(suggestions))
            queued = _queued(found, suggestions, retries=retries, overhead=overhead / len(suggestions))
            return self._opened(study, found, queued, claim)

        if not suggestions:
            return []
        return self._change(study, open_all, opens=len(suggestions), took_effect=_are_opened)

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
        claim = None if owner is None else Claim(owner, lease, waited, rate, label)

        def open_all(connection: Connection) -> list[Trial]:
            if not engines.has_locked_all(connection):
                StudyRows.locked(connection, study, clock=self._clock)
            changes = self._histories.read(connection, study, since=since, running=False, clock=self._clock)
            suggestions, overhead = choose(changes)
            if not suggestions:
                return []
            found = StudyRows.changed(connection, study, clock=self._clock, opens=len(suggestions))
            queued = _queued(found, suggestions, retries=retries, overhead=overhead / len(suggestions))
            return self._opened(study, found, queued, claim)

        def is_opened(connection: Connection, opened: list[Trial]) -> bool:
            return _are_opened(StudyRows.locked(connection, study, clock=self._clock), opened)

        return self._database.write(open_all, took_effect=is_opened)

    def _opened(self, study: str, found: StudyRows, queued: Sequence[Entry], claim: Claim | None) -> list[Trial]:
        entries = [entry if claim is None else lifecycle.claimed(entry, claim, at=found.at) for entry in queued]
        found.insert_trials(entries)
        if claim is not None:
            self._watch.hear(study, *entries)
        return [entry.trial for entry in entries]

    def enqueue_trial(self, study: str, suggestion: Suggestion, *, retries: int = 0, tags: Sequence[str] = ()) -> Trial:
        def enqueue(found: StudyRows) -> Trial:
            entries = _queued(found, [suggestion], retries=retries, tags=tags)
            found.insert_trials(entries)
            return entries[0].trial

        return self._change(study, enqueue, opens=1, took_effect=_is_opened)

    def add_trial(self, study: str, suggestion: Suggestion, outcome: Outcome, *, tags: Sequence[str] = ()) -> Trial:
        def add(found: StudyRows) -> Trial:
            entries = [lifecycle.added(entry, outcome) for entry in _queued(found, [suggestion], tags=tags)]
            found.insert_trials(entries)
            return entries[0].trial

        return self._change(study, add, opens=1, took_effect=_is_opened)

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
        ended = self._watch.ended(study)

        def claim(found: StudyRows) -> Trial | None:
            swept = _sweep(found, ended)
            before = found.oldest_pending(number)
            if before is None and not swept:
                raise NothingChanged(None)
            if before is None:
                return None
            after = lifecycle.claimed(before, Claim(owner, lease, waited, rate, label), at=found.at)
            found.save(before, after)
            self._watch.hear(study, after)
            return after.trial

        def is_claimed(found: StudyRows, trial: Trial | None) -> bool:
            return trial is None or lifecycle.stands_as_claimed(found.stored(trial.number), trial)

        if not self._finds(statements.HAS_CLAIMABLE, study, ended=ended):
            return None
        return self._change(study, claim, took_effect=is_claimed)

    # While trials run

    def record(self, study: str, attempt: Attempt, measurements: Sequence[Measurement], *, lease: float) -> None:
        def record_all(found: StudyRows) -> bool:
            found.record(attempt, measurements, lease=lease)
            self._watch.hear_renewals(study, [attempt], renewed_at=found.at.elapsed, lease=lease)
            return True

        def record_missing(found: StudyRows) -> bool:
            before = found.whole_entry(attempt.number)
            after = lifecycle.recorded(before, attempt, measurements, lease=lease, at=found.at)
            if after.trial.measurements == before.trial.measurements:
                raise NothingChanged(False)
            found.save(before, after)
            self._watch.hear(study, after)
            return True

        are_new = bool(measurements) and self._change(study, record_all)
        if not are_new and not self._change(study, record_missing):
            self.renew(study, [attempt], lease=lease)

    def renew(self, study: str, attempts: Sequence[Attempt], *, lease: float) -> list[Attempt]:
        def renew(connection: Connection) -> list[Attempt]:
            found = StudyRows.locked(connection, study, clock=self._clock)
            current = found.renew(attempts, lease=lease)
            self._watch.hear_renewals(study, current, renewed_at=found.at.elapsed, lease=lease)
            return [attempt for attempt in attempts if attempt in current]

        return self._database.write(renew)

    def save_checkpoint(self, study: str, attempt: Attempt, checkpoint: str) -> None:
        def save(found: StudyRows) -> None:
            before = found.entry(attempt.number)
            found.save(before, lifecycle.with_checkpoint(before, attempt, checkpoint))

        self._change(study, save)

    def sweep(self, study: str, *, dead: Collection[str] = ()) -> list[int]:
        running = self._running(study)
        self._watch.see(study, running)
        ended = self._watch.ended(study)

        def sweep(found: StudyRows) -> list[int]:
            swept = _sweep(found, ended, dead=dead)
            if not swept:
                raise NothingChanged(swept)
            return swept

        return self._change(study, sweep) if ended or any(entry.trial.owner in dead for entry in running) else []

    # Ending trials

    def close_trial(self, study: str, attempt: Attempt, outcome: Outcome) -> Trial:
        def close(found: StudyRows) -> Trial:
            before = found.whole_entry(attempt.number)
            after = lifecycle.closed(before, attempt, outcome, now=found.now)
            found.save(before, after)
            return after.trial

        def is_closed(found: StudyRows, _: Trial) -> bool:
            return lifecycle.stands_as_closed(found.stored(attempt.number), attempt, outcome)

        return self._change(study, close, took_effect=is_closed)

    def release_trial(self, study: str, attempt: Attempt, *, measurements: Sequence[Measurement] = ()) -> None:
        def release(found: StudyRows) -> None:
            before = found.whole_entry(attempt.number)
            found.save(before, lifecycle.released(before, attempt, measurements, at=found.at, charge=found.charges))

        def is_released(found: StudyRows, _: None) -> bool:
            return lifecycle.stands_as_released(found.stored(attempt.number), attempt)

        self._change(study, release, took_effect=is_released)

    # Afterwards

    def retire_checkpoint(self, study: str, number: int) -> bool:
        def retire(found: StudyRows) -> bool:
            before = found.entry(number)
            is_held = found.execute(statements.HOLDERS, this_trial=number).first() is not None
            if is_held or before.trial.checkpoint is None:
                raise NothingChanged(not is_held)
            found.save(before, lifecycle.without_checkpoint(before))
            return True

        return self._change(study, retire)

    def annotate(
        self, study: str, number: int, *, tags: Sequence[str] | None = None, comment: str | None = None
    ) -> None:
        def annotate(found: StudyRows) -> None:
            before = found.entry(number)
            found.save(before, lifecycle.annotated(before, tags=tags, comment=comment))

        self._change(study, annotate)

    def log_event(self, study: str, kind: str, payload: Json | Payload) -> None:
        def log(found: StudyRows) -> rows.Row:
            said = payload(found.trials) if callable(payload) else payload
            event = rows.event_row(Event(kind, said, time=found.now))
            found.insert(statements.INSERT_EVENT, {**event, "version": found.version})
            return event

        def is_logged(found: StudyRows, event: rows.Row) -> bool:
            sought = {f"this_{name}": value for name, value in event.items()}
            return found.execute(statements.THIS_EVENT, **sought).first() is not None

        self._change(study, log, took_effect=is_logged)

    def history(self, study: str, *, since: int = 0, running: bool = True) -> Changes:
        def look(connection: Connection) -> Changes:
            return self._histories.read(connection, study, since=since, running=running, clock=self._clock)

        return self._database.look(look)

    def lines(self, study: str, *, since: int = 0) -> TrialLines:
        return self._database.look(lambda connection: read_lines(connection, study, since=since))

    def trials(self, study: str, numbers: Sequence[int]) -> list[Trial]:
        return self._database.look(lambda connection: read_trials(connection, study, numbers))

    def events(self, study: str) -> list[Event]:
        def look(connection: Connection) -> list[Event]:
            return [rows.event(row) for row in connection.execute(statements.ALL_EVENTS, {"this_name": study})]

        return self._database.look(look)

    def count_measurements(self, study: str) -> int:
        return self._scalar(statements.COUNT_MEASUREMENTS, study)

    def count_noted(self, study: str, word: str) -> int:
        def look(connection: Connection) -> int:
            sought = {"this_name": study, "word": to_text(word, what="A word")}
            notes = connection.scalars(statements.NOTES_WITH, sought)
            return sum(word in noted(from_text(note)) for note in notes)

        return self._database.look(look)

    def versions(self) -> dict[str, int]:
        return self._database.look(
            lambda connection: {
                str(name): version if type(version) is int else -1  # so that one study hides no other
                for name, version in connection.execute(statements.VERSIONS)
            }
        )

    def results(self, study: str) -> list[float]:
        def look(connection: Connection) -> list[float]:
            return [rows.value_of(value) for value in connection.scalars(statements.RESULTS, {"this_name": study})]

        return self._database.look(look)

    # Runs

    def start_run(self, study: str, *, lease: float) -> int:
        def start(connection: Connection) -> int:
            found = StudyRows.locked(connection, study, clock=self._clock)
            number = int(found.execute(statements.LAST_RUN).scalar_one()) + 1
            began = next_beginning(_runs(found), now=found.now)
            moment = {"started_at": found.now, "touched_at": found.now}
            found.insert(statements.INSERT_RUN, {"number": number, **moment, "began": began, "lease": lease})
            self._started[study, number] = found.at.elapsed
            return number

        return self._database.write(start)

    def touch_run(self, study: str, run: int, *, ends: bool = False) -> None:
        def touch(connection: Connection) -> None:
            found = StudyRows.found(connection, study, clock=self._clock)
            if (study, run) not in self._started:
                raise unknown_run(run)
            seconds = found.at.elapsed - self._started[study, run]
            over = {"lease": 0.0} if ends else {}
            found.execute(statements.UPDATE_RUN, this_run=run, touched_at=found.now, seconds=seconds, **over)

        self._database.write(touch)

    def seconds_run(self, study: str) -> float:
        def look(connection: Connection) -> float:
            found = StudyRows.found(connection, study, clock=self._clock)
            return seconds_covered(_runs(found))

        return self._database.look(look)

    def runs_going(self, study: str) -> int:
        def count(connection: Connection) -> int:
            found = StudyRows.found(connection, study, clock=self._clock)
            return int(found.execute(statements.RUNS_GOING, this_moment=found.now).scalar_one())

        return self._database.look(count)

    # Suggesting for all

    def claim_suggesting(self, study: str, *, owner: str, lease: float, dead: Collection[str] = ()) -> str:
        def claim(connection: Connection) -> str:
            found = StudyRows.locked(connection, study, clock=self._clock)
            holder = self._suggester(connection, study, dead)
            if holder not in (None, owner):
                return str(holder)
            renewed = {"suggester": owner, "suggester_renewed_at": found.at.elapsed, "suggester_lease": lease}
            connection.execute(statements.UPDATE_STUDY, {"this_name": study, **renewed})
            return owner

        holder = self._database.look(lambda connection: self._suggester(connection, study, dead))
        return holder if holder not in (None, owner) else self._database.write(claim)

    def _suggester(self, connection: Connection, study: str, dead: Collection[str]) -> str | None:
        """Who holds the right; None if it is free."""
        row = connection.execute(statements.SUGGESTER, {"this_name": study}).first()
        if row is None:
            raise study_not_found(study)
        holder, renewed_at, lease = row
        if holder is None or holder in dead:
            return None
        is_silent = self._holders.is_silent(study, holder, renewed_at=renewed_at, lease=lease)
        return None if is_silent else str(holder)

    def yield_suggesting(self, study: str, *, owner: str) -> None:
        def give_back(connection: Connection) -> None:
            StudyRows.locked(connection, study, clock=self._clock)
            if self._suggester(connection, study, ()) == owner:
                connection.execute(statements.UPDATE_STUDY, {"this_name": study, "suggester": None})

        self._database.write(give_back)

    # The database

    def now(self) -> float:
        return self._database.look(self._now)

    def check(self) -> list[str]:
        try:
            return self._database.read(found_faults)
        except StorageError as error:
            return [str(error)]

    def leaders(self, study: str, problem: Problem) -> Leaders | None:
        """The best that was measured, by a search in the database: at a price that does not grow with the curves."""
        return self._database.read(
            lambda connection: leaders(StudyRows.found(connection, study, clock=self._clock), problem)
        )

    def close(self) -> None:
        self._database.close()

    def _now(self, connection: Connection) -> float:
        return float(connection.execute(statements.NOW, {"clock": self._time()}).scalar_one())

    def _time(self) -> float | None:
        """The time of the injected clock; without one, statements use the database's."""
        return self._clock.now() if self._clock else None

    def _change(
        self, study: str, steps: Steps[Result], *, opens: int = 0, took_effect: Verdict[Result] | None = None
    ) -> Result:
        """One change of a study's history, or none if the steps find nothing to change.

        The study is locked before it is asked whether steps took effect: a server may still be at committing them.
        """

        def change(connection: Connection) -> Result:
            return steps(StudyRows.changed(connection, study, clock=self._clock, opens=opens))

        def is_changed(connection: Connection, result: Result) -> bool:
            found = StudyRows.locked(connection, study, clock=self._clock)
            return took_effect is not None and took_effect(found, result)

        try:
            return self._database.write(change, took_effect=is_changed)
        except NothingChanged as outcome:
            return cast(Result, outcome.result)

    def _scalar(self, statement: Executable, study: str) -> int:
        return int(self._database.look(lambda found: found.execute(statement, {"this_name": study}).scalar_one()))

    def _running(self, study: str) -> list[Entry]:
        """The trials that run, without their measurements."""
        found = self._database.look(
            lambda connection: connection.execute(statements.RUNNING_TRIALS, {"this_name": study}).all()
        )
        if not found:
            self.load_study(study)
        return [rows.entry(row) for row in found]

    def _finds(self, statement: Executable, study: str, **parameters: Any) -> bool:
        """Whether there is anything to change, which costs less to ask than to lock the study."""

        def find(connection: Connection) -> bool:
            row = connection.execute(statement, {"this_name": study, **parameters}).first()
            if row is None:
                raise study_not_found(study)
            return bool(row[0])

        return self._database.look(find)


def _queued(
    found: StudyRows,
    suggestions: Sequence[Suggestion],
    *,
    retries: int = 0,
    tags: Sequence[str] = (),
    overhead: float = 0.0,
) -> list[Entry]:
    """New trials for the suggestions, the last of those that the study counts."""
    checkpoints = found.checkpoints_for(suggestions)
    return [
        lifecycle.queued(
            number,
            stored_suggestion(suggestion),
            now=found.now,
            retries=retries,
            tags=tags,
            overhead=overhead,
            resume_checkpoint=checkpoints[suggestion.resume_from],
        )
        for number, suggestion in enumerate(suggestions, start=found.trials - len(suggestions))
    ]


def _load(connection: Connection, name: str) -> StudyRecord | None:
    row = connection.execute(statements.LOAD_STUDY, {"name": name}).first()
    return None if row is None else rows.study_record(row)


def _is_created(connection: Connection, stored: StudyRecord) -> bool:
    return _load(connection, stored.name) == stored


def _is_opened(found: StudyRows, opened: Trial) -> bool:
    return lifecycle.is_same_trial(found.stored(opened.number), opened)


def _are_opened(found: StudyRows, opened: Sequence[Trial]) -> bool:
    """All were opened in one transaction, so the first tells."""
    return not opened or _is_opened(found, opened[0])


def _runs(found: StudyRows) -> list[StudyRun]:
    return [rows.run(row) for row in found.execute(statements.RUNS)]


def _sweep(found: StudyRows, renewals: Sequence[Renewal], *, dead: Collection[str] = ()) -> list[int]:
    ended = found.ended(renewals, dead)
    for entry in ended:
        found.save(entry, lifecycle.expired(entry, now=found.now, charge=found.charges))
    return [entry.trial.number for entry in ended]
