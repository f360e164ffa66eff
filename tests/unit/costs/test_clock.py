import time

import pytest

from farthing.costs import Clock, FakeClock, SystemClock, as_clock
from farthing.errors import InvalidArgument


def test_a_fake_clock_goes_on_when_told() -> None:
    clock = FakeClock(5.0)
    clock.advance(2.5)
    assert (clock.now(), clock.elapsed()) == (7.5, 7.5)


def test_the_systems_clock_tells_the_time_and_never_goes_back() -> None:
    clock = SystemClock()
    before, began = time.time(), clock.elapsed()
    assert before <= clock.now() <= time.time()
    assert clock.elapsed() >= began


def test_a_clock_is_the_one_given_or_the_systems() -> None:
    clock = FakeClock()
    assert as_clock(clock) is clock
    assert isinstance(as_clock(None), SystemClock)


class Stopwatch:
    def elapsed(self) -> float:
        return 0.0


@pytest.mark.parametrize("given", [3, "now", Stopwatch(), FakeClock])
def test_what_does_not_tell_both_times_is_no_clock(given: Clock) -> None:
    with pytest.raises(InvalidArgument, match="must have now"):
        as_clock(given)
