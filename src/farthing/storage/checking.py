"""What is wrong with a database, in words."""

from collections.abc import Iterator

from sqlalchemy import Connection, text

from farthing.storage import statements
from farthing.storage.invariants import broken_invariants
from farthing.storage.study_rows import StudyRows


def found_faults(connection: Connection) -> list[str]:
    """Empty when all is well. A damaged file is not read further than its damage."""
    damage = list(_damage(connection))
    return damage or [
        fault for name in connection.scalars(statements.STUDY_NAMES) for fault in _faults(connection, name)
    ]


def _damage(connection: Connection) -> Iterator[str]:
    if connection.dialect.name == "sqlite":
        for line in connection.scalars(text("PRAGMA integrity_check")):
            if line != "ok":
                yield f"The file is damaged: {line}."
        for table, *_ in connection.execute(text("PRAGMA foreign_key_check")):
            yield f"The table {table} has a row that belongs to nothing."


def _faults(connection: Connection, name: str) -> list[str]:
    study = StudyRows.found(connection, name, clock=None)
    trials = [entry.trial for entry in study.all_entries()]
    miscounted = [f"Study {name!r}: it counts {study.trials} trials and has {len(trials)}."]
    return [*(miscounted if study.trials != len(trials) else []), *broken_invariants(name, trials)]
