"""How long a study has been worked on."""

from collections.abc import Iterable


def covered_seconds(runs: Iterable[tuple[float, float]]) -> float:
    """Length of the union of (start, last sign of life) intervals: two runs at once count once."""
    covered = 0.0
    reached = float("-inf")
    for start, end in sorted(runs):
        covered += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return covered
