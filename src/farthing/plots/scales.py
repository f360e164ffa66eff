"""Whether numbers are better seen by their logarithms."""

import math
from collections.abc import Callable, Iterable

WIDE = 30.0
"""A positive range whose ends differ by more than this factor is drawn on a logarithmic axis."""


def is_wide(numbers: Iterable[float]) -> bool:
    """Whether a logarithmic axis shows these numbers better than a linear one."""
    ordered = sorted(numbers)
    return bool(ordered) and ordered[0] > 0 and ordered[-1] / ordered[0] > WIDE


def scale_for(numbers: Iterable[float]) -> Callable[[float], float]:
    """From a number to its place on the axis that suits them all."""
    return math.log10 if is_wide(numbers) else float
