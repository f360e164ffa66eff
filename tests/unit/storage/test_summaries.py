"""Wall-clock time that counts."""

import pytest

from farthing.storage.summaries import covered_seconds


@pytest.mark.parametrize(
    ("runs", "seconds"),
    [
        ([], 0),
        ([(0, 10)], 10),
        ([(0, 10), (20, 25)], 15),
        ([(0, 10), (5, 15)], 15),
        ([(0, 10), (2, 3)], 10),
        ([(5, 15), (0, 10), (15, 16)], 16),
    ],
)
def test_moments_in_several_runs_count_once(runs: list[tuple[float, float]], seconds: float) -> None:
    assert covered_seconds(runs) == seconds
