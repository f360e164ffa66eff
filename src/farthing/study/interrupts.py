"""Ctrl-C between two steps, never in the midst of one."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def held_interrupts() -> Iterator[None]:
    """Lets a Ctrl-C wait until the block has ended.

    For blocks that take a trial in a database and note it here: interrupted in between, it would never be given back.
    They must be short. If Ctrl-C raises nothing, in another thread or with a handler of C, nothing is changed.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    came: list[tuple[int, Any]] = []
    signal.signal(signal.SIGINT, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if came:
            handler(*came[0])
