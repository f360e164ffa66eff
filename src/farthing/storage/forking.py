"""No connection to a database crosses a fork, and no lock that another thread holds.

SQLite notes in memory which locks its process holds, but the system gives a child none of its parent's: a child that
went on with that memory could write where others write. On PostgreSQL two processes would mix up their words. A lock
that a thread of the parent holds would stay locked in the child, which does not have that thread.
"""

import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol
from weakref import WeakSet


class _Gate:
    """Lets transactions through, any number at a time, except while a process forks."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside: Counter[int] = Counter()
        self._is_open = True

    @contextmanager
    def passing(self) -> Iterator[None]:
        me = threading.get_ident()
        with self._changed:
            if not self._is_open:
                self._changed.wait_for(lambda: self._is_open or self._inside[me])
            self._inside[me] += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside[me] -= 1
                if not self._is_open:
                    self._changed.notify_all()

    def close(self) -> None:
        """Waits for the transactions of other threads to end and lets no more begin."""
        me = threading.get_ident()
        with self._changed:
            self._changed.wait_for(lambda: self._is_open)
            self._is_open = False
            self._changed.wait_for(lambda: not any(count for thread, count in self._inside.items() if thread != me))

    def open(self) -> None:
        with self._changed:
            self._is_open = True
            self._changed.notify_all()


_gate = _Gate()
_open: "WeakSet[Closable]" = WeakSet()


class Closable(Protocol):
    """Holds connections, which it makes again when they are needed."""

    def close(self) -> None: ...


def close_before_forks(connections: Closable) -> None:
    """From now on these connections are closed before this process forks."""
    with _gate.passing():
        _open.add(connections)


@contextmanager
def no_fork_meanwhile() -> Iterator[None]:
    """For the time of a transaction: a fork waits for its end."""
    with _gate.passing():
        yield


@contextmanager
def held(lock: AbstractContextManager[object]) -> Iterator[None]:
    """Holds a lock for a short time, for whose end a fork waits: a child finds it free and what it guards whole."""
    with _gate.passing(), lock:
        yield


def _before() -> None:
    _gate.close()
    for connections in list(_open):
        connections.close()


def _after_in_parent() -> None:
    _gate.open()


def _after_in_child() -> None:
    global _gate
    _gate = _Gate()  # threads that waited at the parent's gate are not in this process


os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
