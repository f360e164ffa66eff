"""The studies of a database, a line each."""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection

from farthing.storage import rows, statements
from farthing.storage.storage import StudySummary
from farthing.storage.summaries import best
from farthing.trials import State


def summaries(connection: Connection) -> list[StudySummary]:
    """By name, as Python sorts: servers have orders of their own. Single trials are not read, only counted."""
    counts = _by_study(connection.execute(statements.STATE_COUNTS))
    ranges = _by_study(connection.execute(statements.VALUE_RANGES))
    costs = _by_study(connection.execute(statements.COSTS))
    found = []
    for study_id, *row in connection.execute(statements.ALL_STUDIES):
        record = rows.study_record(row)
        values = [value for pair in ranges.get(study_id, ()) for value in pair if value is not None]
        found.append(
            StudySummary(
                record=record,
                trials={State(state): count for state, count in counts.get(study_id, ())},
                best_value=best(record.problem, values),
                cost=sum(cost for (cost,) in costs.get(study_id, ())),
            )
        )
    return sorted(found, key=lambda line: line.record.name)


def _by_study(found: Iterable[Sequence[Any]]) -> dict[int, list[Sequence[Any]]]:
    """Rows without their first column, the study's id, by that id."""
    grouped: dict[int, list[Sequence[Any]]] = {}
    for study_id, *rest in found:
        grouped.setdefault(study_id, []).append(rest)
    return grouped
