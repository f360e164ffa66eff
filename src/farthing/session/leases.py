"""The leases of running trials: their owner, their renewal from a background thread, and Ctrl-C while one is taken."""

import logging
import os
import signal
import socket
import threading
import weakref
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from functools import cache
from typing import Any

from farthing.errors import FarthingError
from farthing.execution.platform import machine_marks, start_of
from farthing.storage import Storage
from farthing.trials import Attempt

log = logging.getLogger("farthing")

_all_leases: "weakref.WeakSet[Leases]" = weakref.WeakSet()


class Leases:
    """Renews what is held, three times per lease, as long as this object lives and the process does.

    In a fork of this process it holds nothing: what the parent holds is the parent's to renew.
    """

    def __init__(self, storage: Storage, study: str, *, seconds: float) -> None:
        self.seconds = seconds
        self._storage = storage
        self._study = study
        self._hold_nothing()
        _all_leases.add(self)

    def _hold_nothing(self) -> None:
        self._held: set[Attempt] = set()
        self._numbers: set[int] = set()
        self._run: int | None = None
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        weakref.finalize(self, self._ended.set)

    @property
    def held(self) -> list[Attempt]:
        with self._lock:
            return sorted(self._held, key=lambda attempt: attempt.number)

    def holds_all(self, numbers: AbstractSet[int]) -> bool:
        """Whether an attempt at each of these trials is held, without a list of them."""
        with self._lock:
            return numbers <= self._numbers

    def hold(self, attempt: Attempt) -> None:
        with self._lock:
            self._held.add(attempt)
            self._numbers.add(attempt.number)
            self._ensure_thread()

    def drop(self, attempt: Attempt) -> None:
        with self._lock:
            self._held.discard(attempt)
            self._numbers.discard(attempt.number)

    def begin_run(self) -> None:
        """From now on until `end_run` the study's wall clock runs."""
        run = self._storage.start_run(self._study, lease=self.seconds)
        with self._lock:
            self._run = run
            self._ensure_thread()

    def end_run(self) -> None:
        with self._lock:
            run, self._run = self._run, None
        if run is not None:
            self._storage.touch_run(self._study, run, ends=True)

    def renew(self) -> None:
        with self._lock:
            held, run = sorted(self._held, key=lambda attempt: attempt.number), self._run
        if held:
            taken_over = set(held) - set(self._storage.renew(self._study, held, lease=self.seconds))
            with self._lock:
                self._held -= taken_over
                self._numbers = {attempt.number for attempt in self._held}
        if run is not None:
            self._storage.touch_run(self._study, run)

    def close(self) -> None:
        self._ended.set()
        thread = self._thread
        if thread is not None:
            thread.join(timeout=5)

    def _ensure_thread(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(
                target=_keep_renewing,
                args=(weakref.ref(self), self._ended, self.seconds / 3),
                name="farthing-leases",
                daemon=True,
            )
            self._thread.start()


def _keep_renewing(leases: "weakref.ref[Leases]", ended: threading.Event, interval: float) -> None:
    while not ended.wait(interval):
        current = leases()
        if current is None:
            return
        try:
            current.renew()
        except FarthingError as error:
            log.warning("Leases could not be renewed, trying again in %.0f s: %s", interval, error)
        del current


def _start_over_in_child() -> None:
    """A fork has the memory of its parent but not its threads, and locks as they were at that moment."""
    for leases in list(_all_leases):
        leases._hold_nothing()


@cache
def this_process() -> str:
    """The owner of its leases, as `machine:pid:start`: another process on the machine can tell whether it is alive.

    It is the same for the life of this process, and never given to another, a fork of it included.
    """
    return f"{_machine()}:{os.getpid()}:{start_of(os.getpid())}"


def is_gone(owner: str | None) -> bool:
    """Whether the owner is certainly dead. Of other machines nothing is certain: there the lease must run out."""
    parts = (owner or "").rsplit(":", 2)
    if len(parts) != 3 or parts[0] != _machine() or not parts[1].isdigit():
        return False
    return start_of(int(parts[1])) != parts[2]


@cache
def _machine() -> str:
    """Host, boot and process namespace: within these three a process id means one process at a time."""
    return "/".join([socket.gethostname(), *machine_marks()]).replace(":", "")


@contextmanager
def held_interrupts() -> Iterator[None]:
    """Lets a Ctrl-C, or a SIGTERM that is handled like one, wait until the block has ended.

    For blocks that take a trial in a database and note it here: interrupted in between, it would never be given back.
    They must be short. Signals that raise nothing here, in another thread or with a handler of C, are left alone.
    """
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    handled = {number: handler for number, handler in handlers.items() if callable(handler)}
    if threading.current_thread() is not threading.main_thread() or not handled:
        yield
        return
    came: list[tuple[int, Any]] = []
    for number in handled:
        signal.signal(number, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        for number, handler in handled.items():
            signal.signal(number, handler)
        if came:
            handled[signal.Signals(came[0][0])](*came[0])


os.register_at_fork(after_in_child=_start_over_in_child)
os.register_at_fork(after_in_child=this_process.cache_clear)
