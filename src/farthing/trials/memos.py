"""Memos: results that are kept while a history grows. A long one is not gone through again for every question."""

import math
from collections.abc import Sequence
from itertools import compress, count
from operator import is_not
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from farthing.trials.history import History
    from farthing.trials.trial import Trial

T_co = TypeVar("T_co", covariant=True)


class Memo(Protocol[T_co]):
    """Keeps something of the history that it was asked about last, and brings it up to date with the next one.

    Histories may come in any order. What it returns must not change when the next one comes.
    """

    def of(self, history: "History") -> T_co: ...


class Memos:
    """The memos of a history and of all that grew from it, by their kinds and arguments.

    Safe to use from several threads: one suggests while another one records. Each memo is asked by one at a time, so
    that nobody waits for a memo that somebody else asks; one may ask another while it is asked.
    """

    def __init__(self) -> None:
        self._kept: dict[Any, tuple[Lock, Memo[Any]]] = {}

    def of(self, history: "History", kind: type[Memo[T_co]], *arguments: Any) -> T_co:
        key = (kind, *arguments)
        if (found := self._kept.get(key)) is None:
            found = self._kept.setdefault(key, (Lock(), kind(*arguments)))
        lock, memo = found
        with lock:
            answer: T_co = memo.of(history)
            return answer

    def __reduce__(self) -> tuple[type["Memos"], tuple[()]]:
        """A copy begins without any: everything can be worked out again."""
        return Memos, ()


class CostSoFar:
    """The cost of all trials of the history that was asked about last, exact to the last bit of `math.fsum`.

    It is kept in parts that do not overlap, as `math.fsum` does (Shewchuk): what is taken back leaves no rounding.
    """

    def __init__(self) -> None:
        self._trials: Sequence[Trial] = ()
        self._parts: list[float] = []

    def of(self, history: "History") -> float:
        if len(history) < len(self._trials):
            self._trials, self._parts = (), []
        for place in places_changed(self._trials, history):
            if place < len(self._trials):
                self._add(-self._trials[place].cost)
            self._add(history[place].cost)
        self._trials = history
        return math.fsum(self._parts)

    def _add(self, amount: float) -> None:
        kept: list[float] = []
        for part in self._parts:
            larger, smaller = (amount, part) if abs(amount) >= abs(part) else (part, amount)
            amount = larger + smaller
            if rest := smaller - (amount - larger):
                kept.append(rest)
        self._parts = [*kept, amount]


def places_changed(before: Sequence[object], after: Sequence[object]) -> list[int]:
    """The places of `after` where `before` has another object, or none.

    Objects that never change are compared by their identity, so that thousands of them take microseconds. Of two
    histories that grew out of each other only what changed is looked at.
    """
    logged = getattr(after, "places_changed_since", None)
    known = logged(before) if logged is not None and type(before) is type(after) else None
    if known is not None:
        return [place for place in known if place >= len(before) or after[place] is not before[place]]
    return [*compress(count(), map(is_not, after, before)), *range(len(before), len(after))]
