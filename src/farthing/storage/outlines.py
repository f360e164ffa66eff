"""Reads a long history without its measurements: what each attempt paid is added up by the database.

A page about 50 000 trials shows a few of their curves. So the million measurements behind them stay where they are, and
those of a trial are read when something looks at them.
"""

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, overload

from sqlalchemy import Connection

from farthing.costs import Clock
from farthing.storage import lifecycle, rows, statements
from farthing.storage.columns import Columns, damaged
from farthing.storage.reading import standing
from farthing.storage.storage import Changes, TrialLines
from farthing.storage.validation import study_not_found
from farthing.trials import Measurement, Trial
from farthing.trials.measurement import KINDS, LazyMeasurements, Payments

BLOCK = 256
"""Trials whose measurements are read together: who looks at one mostly looks at its neighbours next."""

MOST_BLOCKS = 8
"""Blocks that are kept; of trials with 20 measurements, some 40 000 rows."""

KIND_LETTERS = {f'{{"{kind[0]}': kind for kind in KINDS}
"""The kinds of cost by the beginning of the JSON that has them: each has a letter of its own."""

ATTEMPT, CHARGED, KIND, AMOUNT, SEVERAL, SAVED, COUNT = range(1, 8)
"""Columns of a bill, after the number of its trial."""

_LINE = Columns(statements.LINE_COLUMNS)

Look = Callable[[Callable[[Connection], Any]], Any]
_STANDING = len(statements.HISTORY.selected_columns) - len(rows.TRIAL_COLUMNS)


class Shelf:
    """The measurements of one study, read in blocks; the blocks that were used last are kept."""

    def __init__(self, look: Look, study_id: int) -> None:
        self._look = look
        self._study_id = study_id
        self._blocks: OrderedDict[tuple[int, int], Mapping[int, Sequence[Measurement]]] = OrderedDict()

    def of(self, number: int, *, version: int) -> Sequence[Measurement]:
        """Those of a trial, as far as that version of the study has them."""
        key = (number // BLOCK, version)
        if key not in self._blocks:
            self._blocks[key] = self._look(lambda connection: self._read(connection, *key))
            if len(self._blocks) > MOST_BLOCKS:
                self._blocks.popitem(last=False)
        self._blocks.move_to_end(key)
        return self._blocks[key].get(number, ())

    def _read(self, connection: Connection, block: int, version: int) -> Mapping[int, Sequence[Measurement]]:
        bounds = {"this_study": self._study_id, "first": block * BLOCK, "last": (block + 1) * BLOCK - 1}
        found = connection.execute(statements.BLOCK_OF_MEASUREMENTS, {**bounds, "until": version})
        return {number: tuple(own) for number, own in rows.by_trial(chain.from_iterable(rows.plain(found))).items()}


class UnreadMeasurements(LazyMeasurements):
    """The measurements of one trial, equal to the tuple of them. What they cost is known before any is read."""

    __slots__ = ("_count", "_number", "_payments", "_shelf", "_version")

    def __init__(self, shelf: Shelf, number: int, version: int, count: int, paid: Payments | None) -> None:
        self._shelf, self._number, self._version = shelf, number, version
        self._count, self._payments = count, paid

    def _all(self) -> Sequence[Measurement]:
        return self._shelf.of(self._number, version=self._version)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Measurement]:
        return iter(self._all())

    @overload
    def __getitem__(self, index: int) -> Measurement: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Measurement]: ...
    def __getitem__(self, index: int | slice) -> Measurement | Sequence[Measurement]:
        return self._all()[index]

    def payments(self) -> Payments:
        """Sums of each attempt, where these say all; else each measurement's own."""
        if self._payments is not None:
            return self._payments
        points = self._all()
        return Payments([p.attempt for p in points], [p.charged for p in points], [p.cost for p in points])

    def savings(self) -> list[Mapping[str, float]]:
        return [] if self._payments is not None else [point.saved for point in self._all() if point.saved]

    def metric_names(self) -> Iterator[str]:
        return (name for point in self._all() for name in point.metrics)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (tuple, UnreadMeasurements)) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]  # as of a tuple of measurements, which have dictionaries

    def __reduce__(self) -> tuple[type, tuple[list[Measurement]]]:
        return tuple, (list(self),)


def read_outline(connection: Connection, name: str, look: Look, *, since: int, clock: Clock | None) -> Changes:
    """As `HistoryReader.read`, except that leases are not watched: a reader ends none."""
    parameters = {"this_name": name, "since": since, "clock": clock.now() if clock else None}
    result = connection.execute(statements.HISTORY if since else statements.WHOLE_HISTORY, parameters)
    found = list(chain.from_iterable(rows.plain(result)))
    if not found:
        raise study_not_found(name)
    study_id, version, charges, now, last_event = standing(found[0])
    if since == 0:
        rows.numbered([row[_STANDING] for row in found if row[_STANDING] is not None])
    span = {"this_study": study_id, "since": since, "until": version}
    bills = _bills(connection, span, everything=since == 0)
    shelf = Shelf(look, study_id)
    entries = [
        rows.entry(row[_STANDING:], _unread(shelf, row[_STANDING], version, bills))
        for row in found
        if row[_STANDING] is not None
    ]
    has_events = (last_event or 0) > since
    return Changes(
        version=version,
        trials=[lifecycle.as_read(entry, now=now, charge=bool(charges), has_ended=False) for entry in entries],
        events=[rows.event(row) for row in connection.execute(statements.NEW_EVENTS, span)] if has_events else [],
    )


def _unread(shelf: Shelf, number: int, version: int, bills: Mapping[int, list[Any]]) -> Sequence[Measurement]:
    own = bills.get(number)
    if not own:
        return ()
    return UnreadMeasurements(shelf, number, version, sum(group[COUNT] for group in own), _payments(own))


def _payments(groups: Sequence[Sequence[Any]]) -> Payments | None:
    """Sums by attempt and kind; None where sums do not say all: several attempts or kinds, or savings."""
    attempts = {group[ATTEMPT] for group in groups}
    if len(attempts) > 1 or any(group[SEVERAL] or group[SAVED] for group in groups):
        return None
    costs: list[Mapping[str, float]] = [
        {_kind(group[KIND]): _finite(group[AMOUNT])} if group[KIND] else {} for group in groups
    ]
    return Payments([group[ATTEMPT] for group in groups], [bool(group[CHARGED]) for group in groups], costs)


def _kind(letters: object) -> str:
    if letters not in KIND_LETTERS:
        raise damaged(f"A stored cost must be amounts of {', '.join(KINDS)}", letters)
    return KIND_LETTERS[str(letters)]


def _finite(amount: object) -> float:
    if not isinstance(amount, (int, float)) or not math.isfinite(amount):
        raise damaged("A stored amount must be a finite number", amount)
    return amount


def _bills(connection: Connection, span: Mapping[str, int], *, everything: bool) -> dict[int, list[Any]]:
    statement = statements.ALL_BILLS if everything else statements.CHANGED_BILLS
    found: dict[int, list[Any]] = {}
    for batch in rows.plain(connection.execute(statement, span)):
        for row in batch:
            found.setdefault(row[0], []).append(row)
    return found


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
    for row in chain.from_iterable(rows.plain(result)):
        _LINE.check(row)
        number, state, value, *others = row
        lines.append((number, rows.state_of(state).value, value, paid.get(number, 0.0), *others))
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
