"""The studies of a database, a line each."""

import logging
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection

from farthing.errors import FarthingError
from farthing.storage import rows, statements
from farthing.storage.storage import StudySummary
from farthing.storage.summaries import best
from farthing.validation import shown

log = logging.getLogger("farthing")


def summaries(connection: Connection) -> list[StudySummary]:
    """By name, as Python sorts: servers have orders of their own. Single trials are not read, only counted.

    A study that cannot be read is left out, and the log says so: it hides no other.
    """
    counts = _by_study(connection.execute(statements.STATE_COUNTS))
    ranges = _by_study(connection.execute(statements.VALUE_RANGES))
    costs = _by_study(connection.execute(statements.COSTS))
    found = []
    for study_id, *row in connection.execute(statements.ALL_STUDIES):
        try:
            record = rows.study_record(row)
            values = [rows.value_of(value) for pair in ranges.get(study_id, ()) for value in pair if value is not None]
            found.append(
                StudySummary(
                    record=record,
                    trials={rows.state_of(state): count for state, count in counts.get(study_id, ())},
                    best_value=best(record.problem, values),
                    cost=sum(rows.value_of(cost) for (cost,) in costs.get(study_id, ())),
                )
            )
        except FarthingError as error:
            log.warning("The study %s is not listed: %s `farthing check` says more.", shown(row[0]), error)
    return sorted(found, key=lambda line: line.record.name)


def _by_study(found: Iterable[Sequence[Any]]) -> dict[int, list[Sequence[Any]]]:
    """Rows without their first column, the study's id, by that id."""
    grouped: dict[int, list[Sequence[Any]]] = {}
    for study_id, *rest in found:
        grouped.setdefault(study_id, []).append(rest)
    return grouped
