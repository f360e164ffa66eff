"""How far a share of few examples, such as an accuracy, lies from the share of all by chance."""

from math import sqrt

LEFT = 1.0 / 3.0
"""The part of the binomial deviation that shows from one validation to the next.

All of it where each validation draws its own examples, as on the stream. On the same examples most of it cancels: on
digits 0.28 of it is left between two rounds (median of seeds 100 to 105).
"""


def binomial_deviation(share: float, size: int) -> float:
    """√(p(1 − p)/n), with one success and one failure added: no share of n examples is certain."""
    p = (size * min(max(share, 0.0), 1.0) + 1.0) / (size + 2.0)
    return sqrt(p * (1.0 - p) / size)


def least_deviation(share: float, size: int) -> float:
    """Below this a difference between two validations is chance: of their examples, and at least of one of them."""
    return max(LEFT * binomial_deviation(share, size), 1.0 / size)
