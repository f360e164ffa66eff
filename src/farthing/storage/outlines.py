"""Reads a study for those who look on: a line for each trial, or some trials whole."""

import math
from collections.abc import Sequence
from itertools import chain
from typing import Any

from sqlalchemy import Connection

from farthing.storage import rows, statements
from farthing.storage.columns import Columns, damaged
from farthing.storage.storage import TrialLines
from farthing.storage.validation import study_not_found
from farthing.trials import Trial

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
