"""Cholesky factors that never give up, and what is solved with them.

Factors are lower triangular: K = L Lᵀ. LAPACK is called directly because at the sizes of tuning (n ≈ 100) the checks of
`scipy.linalg` cost as much as the arithmetic.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from math import sqrt
from threading import Lock
from typing import Any

import numpy as np
import scipy.linalg  # noqa: F401  (loads the libraries that the controller must find)
import threadpoolctl
from numpy.typing import NDArray
from scipy.linalg import lapack

from farthing.errors import InvalidArgument

Array = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

log = logging.getLogger(__name__)

JITTERS = (0.0, *(10.0**exponent for exponent in range(-10, 7)))
"""Tried in turn, relative to a variance of ordinary size."""


def cholesky(K: Array, *, against: Array | None = None) -> Array:
    """L with L Lᵀ = K + jitter·I; the jitter is zero unless K needs it, then grows until K is positive definite.

    A factor whose smallest pivot drowns in rounding counts as a failure too: its inverse would be noise. Smallness
    is measured `against` the mean of these variances, by default K's own.
    """
    n = K.shape[0]
    if n == 0:
        return np.zeros((0, 0))
    unit = max(float(np.mean(np.diagonal(K) if against is None else against)), np.finfo(float).tiny)
    for jitter in JITTERS:
        L = _try_cholesky(K + jitter * unit * np.eye(n) if jitter else K, unit)
        if L is not None:
            return L
        log.info("covariance of %d rows is not positive definite with a jitter of %.0e of %.1e", n, jitter, unit)
    raise InvalidArgument(
        "A covariance must be finite, got NaN or infinity in it. Pass finite observations and inputs."
    )


def _try_cholesky(K: Array, unit: float) -> Array | None:
    L, info = lapack.dpotrf(K.T, lower=1, clean=1)
    if info != 0:
        return None
    sound = np.diagonal(L).min() >= 1e-8 * sqrt(unit)  # false for NaN too
    return np.asarray(L) if sound else None


def extend_cholesky(L: Array, B: Array, C: Array) -> Array:
    """The factor of [[K, Bᵀ], [B, C]] from the factor L of K: only the new rows are computed.

    [[L, 0], [S, M]]   with   S = B L⁻ᵀ,   M Mᵀ = C − S Sᵀ
    """
    n, m = L.shape[0], C.shape[0]
    S = solve_lower(L, B.T).T
    extended = np.zeros((n + m, n + m), order="F")  # as LAPACK reads it: anything else is copied at every solve
    extended[:n, :n] = L
    extended[n:, :n] = S
    extended[n:, n:] = cholesky(C - S @ S.T, against=np.diagonal(C))
    return extended


def solve_lower(L: Array, B: Array) -> Array:
    """L⁻¹ B for B of shape (n,) or (n, m)."""
    return _solve_triangular(L, B, transposed=0)


def solve_upper(L: Array, B: Array) -> Array:
    """L⁻ᵀ B for B of shape (n,) or (n, m)."""
    return _solve_triangular(L, B, transposed=1)


def solve_factored(L: Array, B: Array) -> Array:
    """K⁻¹ B."""
    return solve_upper(L, solve_lower(L, B))


def _solve_triangular(L: Array, B: Array, transposed: int) -> Array:
    if B.size == 0:
        return np.zeros_like(B)
    X, _ = lapack.dtrtrs(L, B, lower=1, trans=transposed)
    return np.asarray(X)


def inverse_from_factor(L: Array) -> Array:
    """K⁻¹, whole and symmetric."""
    if L.shape[0] == 0:
        return np.zeros((0, 0))
    half, _ = lapack.dpotri(L, lower=1)
    return np.asarray(half + np.tril(half, -1).T)


def log_determinant(L: Array) -> float:
    """log |K|."""
    return 2.0 * float(np.sum(np.log(np.diagonal(L))))


def keep_freed_memory() -> None:
    """Lets the allocator keep the matrices that are freed, instead of returning them and asking for them again.

    glibc keeps free blocks up to twice the largest block it ever released; this one, never touched, costs nothing.
    Without it every temporary matrix is made of fresh pages: a fit at n = 400 then takes twice as long.
    """
    np.empty(2**21)


# ------------------------------------------------------------
# One BLAS thread: at the sizes of tuning, more of them only wait for each other, and sums depend on their number.


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
