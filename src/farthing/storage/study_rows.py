"""The rows of one study, inside a transaction."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, CursorResult, Executable, Insert
from sqlalchemy.exc import IntegrityError

from farthing.costs import Clock, SystemClock
from farthing.storage import rows, statements
from farthing.storage.lifecycle import (
    Entry,
    Moment,
    check_resume_from,
    require_current,
    stamped,
    study_not_found,
    trial_not_found,
)
from farthing.storage.measurement_rows import all_curves
from farthing.storage.tables import damaged
from farthing.storage.watching import Renewal
from farthing.trials import Attempt, Measurement, Suggestion, Trial

EVERY_VERSION = 2**63 - 1


class NothingChanged(Exception):
    """No error: how a change ends that finds nothing to do. The study and its version stay; `result` is the answer."""

    def __init__(self, result: Any = None) -> None:
        super().__init__()
        self.result = result


@dataclass(frozen=True, slots=True)
class StudyRows:
    """A study as a transaction finds it, at the moment `at`. Every change is stamped with `version`."""

    connection: Connection
    study_id: int
    version: int
    trials: int
    charges: bool
    at: Moment

    @classmethod
    def found(cls, connection: Connection, name: str, *, clock: Clock | None) -> "StudyRows":
        """To read only."""
        return cls._of(connection, name, statements.STUDY_STANDING, {"this_name": name}, clock)

    @classmethod
    def locked(cls, connection: Connection, name: str, *, clock: Clock | None) -> "StudyRows":
        """To write what is no change of the history."""
        return cls._of(connection, name, statements.LOCK_STUDY, {"this_name": name}, clock)

    @classmethod
    def changed(cls, connection: Connection, name: str, *, clock: Clock | None, opens: int = 0) -> "StudyRows":
        """To change the history: locked, and with its next version; `trials` counts the `opens` new ones already."""
        return cls._of(connection, name, statements.CHANGE_STUDY, {"this_name": name, "opened": opens}, clock)

    @classmethod
    def _of(
        cls, connection: Connection, name: str, statement: Executable, parameters: rows.Row, clock: Clock | None
    ) -> "StudyRows":
        row = connection.execute(statement, {**parameters, "clock": clock.now() if clock else None}).first()
        if row is None:
            raise study_not_found(name)
        study_id, version, trials, charges, now = row
        if type(version) is not int or type(trials) is not int:
            raise damaged("A stored study must count its versions and trials", (version, trials))
        return cls(connection, study_id, version, trials, charges, Moment(now, (clock or SystemClock()).elapsed()))

    @property
    def now(self) -> float:
        return self.at.now

    def execute(self, statement: Executable, **parameters: Any) -> "CursorResult[*tuple[Any, ...]]":
        """Runs a statement about this study. Parameters are named for columns to set, or `this_…` to find by."""
        return self.connection.execute(statement, {"this_study": self.study_id, **parameters})

    def entry(self, number: int) -> Entry:
        """A trial without its measurements."""
        row = self.execute(statements.LOAD_TRIAL, this_trial=number).first()
        if row is None:
            raise trial_not_found(number, trials=self.trials)
        return rows.entry(row)

    def stored(self, number: int) -> Trial | None:
        """A trial without its measurements, where there is one of that number."""
        row = self.execute(statements.LOAD_TRIAL, this_trial=number).first()
        return None if row is None else rows.entry(row).trial

    def whole_entry(self, number: int) -> Entry:
        return self._whole(self.entry(number))

    def ended(self, renewals: Sequence[Renewal], dead: Collection[str]) -> list[Entry]:
        """Running trials that have not been renewed since, or whose owners are dead."""
        found = self.execute(statements.ENDED_TRIALS, ended=list(renewals), dead=list(dead))
        return [rows.entry(row) for row in found]

    def oldest_pending(self, number: int | None = None) -> Entry | None:
        """With a number, the trial of that number, where it is pending."""
        if number is None:
            row = self.execute(statements.OLDEST_PENDING).first()
        else:
            row = self.execute(statements.THIS_PENDING, this_trial=number).first()
        return None if row is None else self._whole(rows.entry(row))

    def all_entries(self) -> list[Entry]:
        """Every trial as it is stored, by number."""
        connection = self.connection
        curves = all_curves(connection, lambda steps: steps(connection), study_id=self.study_id, version=EVERY_VERSION)
        return [rows.entry(row, curves(row)) for row in self.execute(statements.ALL_TRIALS)]

    def checkpoints_for(self, suggestions: Sequence[Suggestion]) -> dict[int | None, str | None]:
        """The checkpoints of the trials that the suggestions continue, by number."""
        sources = sorted({suggestion.resume_from for suggestion in suggestions if suggestion.resume_from is not None})
        for number in sources:
            check_resume_from(number, trials=self.trials - len(suggestions))
        found = self.execute(statements.CHECKPOINTS, numbers=sources) if sources else ()
        return {None: None, **{row[0]: row[1] for row in found}}

    def insert(self, statement: Insert, *new: rows.Row) -> None:
        """New rows of this study."""
        stamped_rows = [{"study_id": self.study_id, **row} for row in new]
        if stamped_rows:
            self.connection.execute(statement, stamped_rows[0] if len(new) == 1 else stamped_rows)

    def insert_trials(self, entries: Sequence[Entry]) -> None:
        """New trials, with their measurements."""
        self.insert(statements.INSERT_TRIAL, *({**rows.trial_row(entry), "version": self.version} for entry in entries))
        for entry in entries:
            self._insert_measurements(entry.trial.number, entry.trial.measurements)

    def save(self, before: Entry, after: Entry) -> None:
        """A changed trial, with the measurements that were added."""
        known = {(point.attempt, point.sequence) for point in before.trial.measurements}
        added = [point for point in after.trial.measurements if (point.attempt, point.sequence) not in known]
        self._insert_measurements(after.trial.number, added)
        self.execute(
            statements.UPDATE_TRIAL,
            this_trial=after.trial.number,
            version=self.version,
            **rows.changing_row(after),
        )

    def record(self, attempt: Attempt, measurements: Sequence[Measurement], *, lease: float) -> None:
        """Adds measurements as `lifecycle.recorded` does, without reading the trial first: all are new, or none is."""
        updated = self.execute(
            statements.UPDATE_RUNNING,
            this_trial=attempt.number,
            this_attempt=attempt.attempt,
            version=self.version,
            lease_until=self.now + lease,
            lease=lease,
            renewed_at=self.at.elapsed,
            paid_until=self.at.elapsed,
        )
        if updated.rowcount == 0:
            require_current(self.entry(attempt.number), attempt)
        try:
            self._insert_measurements(attempt.number, stamped(measurements, attempt, now=self.now))
        except IntegrityError:
            raise NothingChanged(False) from None

    def renew(self, attempts: Sequence[Attempt], *, lease: float) -> set[Attempt]:
        """Those that are current, now with a longer lease."""
        renewed = self.execute(
            statements.RENEW_TRIALS,
            attempts=[(attempt.number, attempt.attempt) for attempt in attempts],
            lease_until=self.now + lease,
            lease=lease,
            renewed_at=self.at.elapsed,
        )
        return {Attempt(number, attempt) for number, attempt in renewed}

    def _whole(self, entry: Entry) -> Entry:
        found = self.execute(statements.LOAD_MEASUREMENTS, this_trial=entry.trial.number)
        return replace(entry, trial=replace(entry.trial, measurements=tuple(map(rows.measurement, found))))

    def _insert_measurements(self, number: int, points: Sequence[Measurement]) -> None:
        new = ({**rows.measurement_row(number, point), "version": self.version} for point in points)
        self.insert(statements.INSERT_MEASUREMENT, *new)
