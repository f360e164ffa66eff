"""Finds the defects of a database, in words."""

from collections.abc import Iterator

from sqlalchemy import Connection, text

from farthing.errors import FarthingError
from farthing.space import Space
from farthing.storage import rows, schema, statements
from farthing.storage.lifecycle import broken_invariants
from farthing.storage.study_rows import StudyRows
from farthing.trials import History

UNREADABLE = (FarthingError, TypeError, KeyError, ValueError, AttributeError)
"""The errors that reading a row raises if it was changed by hand."""


def found_faults(connection: Connection) -> list[str]:
    """Empty when all is well. A damaged file is not read further than its damage."""
    damage = list(_damage(connection))
    if damage:
        return damage
    names = connection.scalars(statements.STUDY_NAMES).all()
    return [*_schema_faults(connection), *(fault for name in names for fault in _all_faults(connection, name))]


def _all_faults(connection: Connection, name: str) -> list[str]:
    """Also of a study of which not even its own row can be read."""
    try:
        return _faults(connection, name)
    except UNREADABLE as error:
        return [_sentence(name, f"it cannot be read: {_said(error)}")]


def _schema_faults(connection: Connection) -> list[str]:
    found = schema.revisions(connection)
    return [] if len(found) == 1 else [f"The database names {len(found)} versions of the schema: {', '.join(found)}."]


def _damage(connection: Connection) -> Iterator[str]:
    if connection.dialect.name == "sqlite":
        for line in connection.scalars(text("PRAGMA integrity_check")):
            if line != "ok":
                yield f"The file is damaged: {line}."
        for table, *_ in connection.execute(text("PRAGMA foreign_key_check")):
            yield f"The table {table} has a row that belongs to nothing."


def _faults(connection: Connection, name: str) -> list[str]:
    study = StudyRows.found(connection, name, clock=None)
    own = [
        *_record_faults(connection, name),
        *_version_faults(study),
        *_event_faults(connection, name),
        *_name_faults(connection, study, name),
    ]
    return [*(_sentence(name, fault) for fault in own), *_trial_faults(study, name)]


def _sentence(study: str, fault: str) -> str:
    return f"Study {study!r}: {fault.rstrip('.')}."


def _said(error: Exception) -> str:
    """An error of ours in its own words; others say little without their kind."""
    return str(error) if isinstance(error, FarthingError) else repr(error)


def _record_faults(connection: Connection, name: str) -> Iterator[str]:
    """Defects of the study's own row, which every command reads first."""
    try:
        rows.study_record(connection.execute(statements.LOAD_STUDY, {"name": name}).one())
    except UNREADABLE as error:
        yield f"the problem or the settings cannot be read: {_said(error)}"


def _event_faults(connection: Connection, name: str) -> Iterator[str]:
    for row in connection.execute(statements.ALL_EVENTS, {"this_name": name}):
        try:
            rows.event(row)
        except UNREADABLE as error:
            yield f"an event cannot be read: {_said(error)}"


def _name_faults(connection: Connection, study: StudyRows, name: str) -> Iterator[str]:
    """Trials whose params or fidelities are not the space's, as far as both can be read."""
    try:
        space = _space_of_today(connection, name)
        trials = [entry.trial for entry in study.all_entries()]
    except UNREADABLE:
        return
    known = {*space.parameters, *space.fidelities}
    for trial in trials:
        if unknown := {*trial.params, *trial.fidelity} - known:
            yield f"trial {trial.number} has {', '.join(sorted(unknown))}, which the space does not"


def _space_of_today(connection: Connection, name: str) -> Space:
    problem = rows.study_record(connection.execute(statements.LOAD_STUDY, {"name": name}).one()).problem
    events = [rows.event(row) for row in connection.execute(statements.ALL_EVENTS, {"this_name": name})]
    return History(problem, events=events).problem.space


def _version_faults(study: StudyRows) -> Iterator[str]:
    """Readers ask for what came after a version that they have seen: what has no version of its own is never read."""
    counts = {"trials": statements.UNVERSIONED_TRIALS, "measurements": statements.UNVERSIONED_MEASUREMENTS}
    for what, statement in counts.items():
        if count := study.execute(statement, until=study.version).scalar_one():
            yield f"{count} of its {what} have a version outside 1 to {study.version}"


def _trial_faults(study: StudyRows, name: str) -> list[str]:
    try:
        trials = [entry.trial for entry in study.all_entries()]
        miscounted = [_sentence(name, f"it counts {study.trials} trials and has {len(trials)}")]
        return [*(miscounted if study.trials != len(trials) else []), *broken_invariants(name, trials)]
    except UNREADABLE as error:
        return [_sentence(name, f"its trials cannot be read: {_said(error)}")]
