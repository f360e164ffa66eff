"""Scrambled Sobol points, bit for bit those of `scipy.stats.qmc.Sobol`, without importing `scipy.stats`.

Importing that takes longer than everything else that a first suggestion does. Stored studies were designed with its
points, so ours must be the same: the direction numbers are those of Joe and Kuo (2008) that SciPy ships, and the
scrambling is a linear matrix scramble with a digital shift (Matoušek, 1998) drawn in SciPy's order.
"""

from functools import cache, lru_cache
from importlib.resources import files

import numpy as np
import numpy.typing as npt
import scipy

from farthing.models.linalg import Array

Words = npt.NDArray[np.uint32]
"""Whole numbers of `BITS` bits."""

BITS = 30
DIRECTION_NUMBERS = "_sobol_direction_numbers.npz"


def sobol_points(dimension: int, power: int, *, rng: np.random.Generator) -> Array:
    """The first 2^power points (2^power, dimension) of the sequence that `rng`, of which a child is spawned, scrambles.

    Longer sequences begin with the shorter ones.
    """
    [child] = rng.spawn(1)
    shift = child.integers(2, size=(dimension, BITS), dtype=np.uint32) @ _powers()
    scramble = np.tril(child.integers(2, size=(dimension, BITS, BITS), dtype=np.uint32))
    directions = _scrambled(_directions(dimension), scramble)
    points = shift[None, :]
    for bit in range(power):  # the reflected Gray code: what follows is what was, backwards, with one more bit set
        points = np.concatenate([points, points[::-1] ^ directions[:, bit]])
    return np.asarray(points * 2.0**-BITS, dtype=np.float64)


def _powers() -> Words:
    return np.asarray(2 ** np.arange(BITS, dtype=np.uint32))


def _scrambled(directions: Words, scramble: Words) -> Words:
    """The directions (d, BITS) with their bits, the highest first, multiplied by L (d, BITS, BITS) modulo two.

    L has ones on its diagonal, whatever was drawn there.
    """
    diagonal = np.arange(BITS)
    L = scramble.astype(float)
    L[:, diagonal, diagonal] = 1.0
    bits = (directions[:, None, :] >> np.arange(BITS - 1, -1, -1, dtype=np.uint32)[:, None]) & 1
    products = (L @ bits).astype(np.uint32) & 1
    return np.asarray(np.einsum("dpj,p->dj", products, _powers()[::-1]))


@lru_cache(maxsize=32)
def _directions(dimension: int) -> Words:
    """Direction numbers (d, BITS), each shifted so that its highest bit stands for a half."""
    polynomials, initial = _joe_and_kuo()
    rows = [[1] * BITS] + [_recurrence(int(polynomials[d]), initial[d].tolist()) for d in range(1, dimension)]
    return np.asarray(np.array(rows[:dimension], dtype=np.uint32).reshape(dimension, BITS) * _powers()[::-1])


def _recurrence(polynomial: int, initial: list[int]) -> list[int]:
    """m_i = 2 a_1 m_{i−1} ⊕ … ⊕ 2^s m_{i−s} ⊕ m_{i−s}, where a are the coefficients of a polynomial of degree s."""
    degree = polynomial.bit_length() - 1
    numbers = initial[:degree]
    for i in range(degree, BITS):
        number = numbers[i - degree]
        for k in range(1, degree + 1):
            if polynomial >> (degree - k) & 1:
                number ^= numbers[i - k] << k
        numbers.append(number)
    return numbers


@cache
def _joe_and_kuo() -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Primitive polynomials (21201,) and initial direction numbers (21201, 18)."""
    with (files(scipy) / "stats" / DIRECTION_NUMBERS).open("rb") as file, np.load(file) as stored:
        return stored["poly"], stored["vinit"]
