"""Seconds of running count once, whatever wall clocks say."""

import pytest

from farthing.costs import FakeClock
from farthing.space import Float, Space
from farthing.storage import MemoryStorage, StudyRecord
from farthing.storage.lifecycle import StudyRun, next_beginning, seconds_covered
from farthing.trials import Problem

NOW, LEASE = 1000.0, 60.0


@pytest.mark.parametrize(
    ("runs", "seconds", "beginning"),
    [
        ([], 0, 0),
        ([StudyRun(0, 10, NOW, 0)], 10, 10),
        ([StudyRun(0, 10, NOW, 0), StudyRun(10, 5, NOW, 0)], 15, 15),
        ([StudyRun(0, 10, NOW, 0), StudyRun(5, 10, NOW, 0)], 15, 15),
        ([StudyRun(0, 10, NOW, 0), StudyRun(2, 1, NOW, 0)], 10, 10),
        ([StudyRun(0, 10, NOW - 20, LEASE)], 10, 30),
        ([StudyRun(0, 10, NOW - 40, LEASE)], 10, 10),
        ([StudyRun(0, 10, NOW + 3600, LEASE)], 10, 10),
    ],
)
def test_moments_in_several_runs_count_once(runs: list[StudyRun], seconds: float, beginning: float) -> None:
    assert seconds_covered(runs) == seconds
    assert next_beginning(runs, now=NOW) == beginning


class SteppedClock(FakeClock):
    """Its wall clock can be set; what has elapsed cannot."""

    step = 0.0

    def now(self) -> float:
        return super().now() + self.step


@pytest.mark.parametrize("step", [3600.0, -3600.0, 1000 * 86_400.0, -1000 * 86_400.0])
def test_a_step_of_the_wall_clock_is_no_time(step: float) -> None:
    clock = SteppedClock()
    storage = MemoryStorage(clock)
    storage.create_study(StudyRecord("study", Problem(Space({"x": Float(0, 1)}))))
    run = storage.start_run("study", lease=LEASE)
    clock.advance(10)
    clock.step = step
    storage.touch_run("study", run, ends=True)
    clock.step = 0.0
    storage.start_run("study", lease=LEASE)
    assert storage.seconds_run("study") == 10
