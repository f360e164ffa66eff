"""Decides when a lease has ended: when this process itself has seen no renewal for as long as the lease is.

Wall clocks are not asked, neither ours nor the database's: they are set, they jump, and those of two machines differ.
"""

import threading
from collections.abc import Iterable
from dataclasses import dataclass

from farthing.costs import Clock
from farthing.storage.forking import held
from farthing.storage.lifecycle import Entry
from farthing.trials import Attempt, State

Renewal = tuple[int, int, float]
"""A trial, its attempt, and the owner's clock when it was last renewed: the same again means no renewal since."""


@dataclass(frozen=True, slots=True)
class _Sight:
    renewed_at: float
    lease: float
    since: float


class LeaseWatch:
    """Remembers of every running attempt since when its last renewal has been known here."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sights: dict[str, dict[Attempt, _Sight]] = {}
        self._lock = threading.Lock()

    def see(self, study: str, entries: Iterable[Entry], *, all_that_run: bool = True) -> None:
        """Takes note of the attempts that run; with `all_that_run`, there are no others."""
        now = self._clock.elapsed()
        with held(self._lock):
            before = self._sights.get(study, {})
            running = {_attempt(entry): entry for entry in entries if entry.trial.state is State.RUNNING}
            seen = {attempt: _seen(before.get(attempt), entry, now=now) for attempt, entry in running.items()}
            if all_that_run:
                self._sights[study] = seen
            else:
                self._sights.setdefault(study, {}).update(seen)

    def hear(self, study: str, *running: Entry) -> None:
        """Takes note of attempts that have just been renewed."""
        now = self._clock.elapsed()
        with held(self._lock):
            sights = self._sights.setdefault(study, {})
            for entry in running:
                sights[_attempt(entry)] = _Sight(entry.renewed_at, entry.lease, now)

    def hear_renewals(self, study: str, attempts: Iterable[Attempt], *, renewed_at: float, lease: float) -> None:
        """The same for attempts of which only that much is known."""
        now = self._clock.elapsed()
        with held(self._lock):
            sights = self._sights.setdefault(study, {})
            sights.update((attempt, _Sight(renewed_at, lease, now)) for attempt in attempts)

    def begin_again(self) -> None:
        """Counts every lease from now on: no process could renew while the database was away."""
        now = self._clock.elapsed()
        with held(self._lock):
            for study, sights in self._sights.items():
                self._sights[study] = {
                    attempt: _Sight(sight.renewed_at, sight.lease, now) for attempt, sight in sights.items()
                }

    def has_ended(self, study: str, entry: Entry) -> bool:
        """Whether the lease that the entry shows has ended, as far as was seen here."""
        if entry.trial.state is not State.RUNNING:
            return False
        with held(self._lock):
            sight = self._sights.get(study, {}).get(_attempt(entry))
        return sight is not None and sight.renewed_at == entry.renewed_at and self._is_silent(sight)

    def ended(self, study: str) -> list[Renewal]:
        """The last renewals of the attempts whose leases have ended."""
        with held(self._lock):
            return [
                (attempt.number, attempt.attempt, sight.renewed_at)
                for attempt, sight in self._sights.get(study, {}).items()
                if self._is_silent(sight)
            ]

    def _is_silent(self, sight: _Sight) -> bool:
        return self._clock.elapsed() - sight.since >= sight.lease


def _attempt(entry: Entry) -> Attempt:
    return Attempt(entry.trial.number, entry.trial.attempt)


def _seen(before: _Sight | None, entry: Entry, *, now: float) -> _Sight:
    if before is not None and before.renewed_at == entry.renewed_at:
        return before
    return _Sight(entry.renewed_at, entry.lease, now)


class HolderWatch:
    """Remembers of the holder of each study's right to suggest since when its last renewal has been known here."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: dict[str, tuple[str, float, float]] = {}

    def is_silent(self, study: str, holder: str, *, renewed_at: float, lease: float) -> bool:
        """Whether no renewal after this one was seen here for the length of the lease."""
        now, seen = self._clock.elapsed(), self._seen.get(study)
        if seen is None or seen[:2] != (holder, renewed_at):
            self._seen[study] = (holder, renewed_at, now)
            return False
        return now - seen[2] >= lease
