"""Reads for those who look on: the studies of a database, the trials of a study, a line each, or some trials whole."""

import logging
import math
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from sqlalchemy import Connection

from farthing.errors import FarthingError
from farthing.storage import rows, statements
from farthing.storage.lifecycle import study_not_found
from farthing.storage.storage import Leaders, StudySummary, TrialLines, best
from farthing.storage.study_rows import StudyRows
from farthing.storage.tables import Columns, damaged
from farthing.trials import Problem, Trial
from farthing.validation import shown

_LINE = Columns(statements.LINE_COLUMNS)


def _finite(amount: object) -> float:
    if not isinstance(amount, (int, float)) or not math.isfinite(amount):
        raise damaged("A stored amount must be a finite number", amount)
    return amount


def read_lines(connection: Connection, name: str, *, since: int) -> TrialLines:
    """The changes after `since`, a line for each trial: number, state, value, cost, times, source, owner, fidelity."""
    found = connection.execute(statements.STUDY_STANDING, {"this_name": name, "clock": 0.0}).first()
    if found is None:
        raise study_not_found(name)
    if type(found[1]) is not int:
        raise damaged("A stored version must be a whole number", found[1])
    span = {"this_study": found[0], "since": since, "until": found[1]}
    paid: dict[int, float] = {}
    for batch in rows.plain(
        connection.execute(statements.CHANGED_PAYMENTS if since else statements.ALL_PAYMENTS, span)
    ):
        for trial, amount in batch:
            paid[trial] = paid.get(trial, 0.0) + _finite(amount)
    result = connection.execute(statements.CHANGED_LINES if since else statements.ALL_LINES, span)
    lines: list[tuple[Any, ...]] = []
    for batch in rows.plain(result):
        for row in batch if not _LINE.are_sound(batch) else ():
            _LINE.check(row)  # which says what is wrong
        for state in {row[1] for row in batch}:
            rows.state_of(state)
        lines += [(row[0], row[1], row[2], paid.get(row[0], 0.0), *row[3:]) for row in batch]
    for text in {line[-1] for line in lines}:
        rows.numbers_of(text, what="fidelity")
    if since == 0:
        rows.numbered(sorted(line[0] for line in lines))
    return TrialLines(found[1], sorted(lines))


def read_trials(connection: Connection, name: str, numbers: Sequence[int]) -> list[Trial]:
    """Some trials, whole, as they are stored."""
    found = connection.execute(statements.STUDY_STANDING, {"this_name": name, "clock": 0.0}).first()
    if found is None:
        raise study_not_found(name)
    wanted = {"this_study": found[0], "numbers": list(numbers)}
    curves = rows.by_trial(chain.from_iterable(rows.plain(connection.execute(statements.THESE_MEASUREMENTS, wanted))))
    return [
        rows.entry(row, curves.get(row[0], ())).trial for row in connection.execute(statements.THESE_TRIALS, wanted)
    ]


# ------------------------------------------------------------
# The studies of a database, a line each.

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


# ------------------------------------------------------------
# The best of a large study by its stored values: found by the database, without reading the rest.


def leaders(found: StudyRows, problem: Problem) -> Leaders | None:
    """None where no trial is done with a value. Of trials as good as each other it is the first, as everywhere."""
    texts = [text or "" for (text,) in found.execute(statements.DONE_FIDELITIES)]
    fidelities = {text: rows.numbers_of(text, what="fidelity") for text in texts}
    if not fidelities:
        return None
    reach = {text: problem.reach(fidelity) for text, fidelity in fidelities.items()}
    top = _best(found, problem, [text for text in texts if reach[text] == max(reach.values())])
    full = _best(found, problem, [text for text in texts if problem.is_full(fidelities[text])])
    if top is None:
        return None
    return Leaders(_lineage(found, top), None if full is None else found.whole_entry(full).trial)


def _best(found: StudyRows, problem: Problem, fidelities: Sequence[str]) -> int | None:
    statement = statements.LOWEST_DONE if problem.minimize else statements.HIGHEST_DONE
    row = found.execute(statement, fidelities=list(fidelities)).first() if fidelities else None
    return None if row is None else int(row[0])


def _lineage(found: StudyRows, number: int) -> list[Trial]:
    chain = [found.whole_entry(number).trial]
    while (parent := chain[-1].resume_from) is not None:
        chain.append(found.whole_entry(parent).trial)
    return chain[::-1]
