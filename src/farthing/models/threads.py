"""One BLAS thread: at the sizes of tuning, more of them only wait for each other, and sums depend on their number."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import scipy.linalg  # noqa: F401  (loads the libraries that the controller must find)
from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """Linear algebra inside the block uses one thread, so that its bits do not depend on the machine's load."""
    with _controller().limit(limits=1, user_api="blas"):
        yield
