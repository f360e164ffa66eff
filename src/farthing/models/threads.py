"""One BLAS thread: at the sizes of tuning, more of them only wait for each other, and sums depend on their number."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

import scipy.linalg  # noqa: F401  (loads the libraries that the controller must find)
import threadpoolctl


@cache
def _controller() -> threadpoolctl.ThreadpoolController:
    return threadpoolctl.ThreadpoolController()


_lock = Lock()
_inside = 0
"""How many blocks, of all threads together, are being worked through."""
_limits: list[Any] = []
"""The limit in force: set by the first block that begins, undone by the last one that ends."""


@contextmanager
def one_thread() -> Iterator[None]:
    """Linear algebra inside the block uses one thread, so that its bits do not depend on the machine's load.

    The limit is the process's: while one thread suggests, another that recommends must not end it.
    """
    _enter()
    try:
        yield
    finally:
        _leave()


def _enter() -> None:
    global _inside
    with _lock:
        if _inside == 0:
            _let_this_thread_decide()
            _limits.append(_controller().limit(limits=1, user_api="blas"))
        _inside += 1


def _leave() -> None:
    global _inside
    with _lock:
        _inside -= 1
        if _inside == 0:
            _let_this_thread_decide()
            _limits.pop().restore_original_limits()
            _let_this_thread_decide()


def _let_this_thread_decide() -> None:
    """Later versions of threadpoolctl ignore every thread but the one that set a limit first, as long as it lives."""
    openblas: Any = getattr(threadpoolctl, "OpenBLASController", None)
    if hasattr(openblas, "clear_controlling_thread"):
        openblas.clear_controlling_thread(force=True)


def _start_over_in_child() -> None:
    """A fork has none of its parent's other threads, so no block of theirs will end in it."""
    global _lock, _inside
    _lock, _inside = Lock(), 0
    while _limits:
        _limits.pop().restore_original_limits()


os.register_at_fork(after_in_child=_start_over_in_child)
